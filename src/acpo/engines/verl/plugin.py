"""What makes verl train our objectives: the environment variable VERL_USE_EXTERNAL_MODULES names this module.

Every process of a run then has the objectives in its registry of policy losses, their worker as the class of actors,
the recording trainer as verl's synchronous one, and transformers among its rollouts. On a CPU,
`acpo.engines.verl.cpu` must be named before it.
"""

from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.workers.engine_workers import ActorRolloutRefWorker

import acpo.engines.verl.transformers_rollout  # noqa: F401  (registers itself)
from acpo.engines.verl.trainer import RecordingTrainer
from acpo.engines.verl.worker import ObjectiveWorker

ActorRolloutRefWorker.actor_worker_cls = ObjectiveWorker
TRAINER_REGISTRY["sync"] = RecordingTrainer  # register_trainer refuses a name that is taken
