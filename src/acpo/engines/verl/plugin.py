"""What makes verl train our objectives: the environment variable VERL_USE_EXTERNAL_MODULES names this module.

Every process of a run then has the objectives in its registry of policy losses, their worker as the class of actors,
and the recording trainer as verl's synchronous one. On a CPU, `acpo.engines.verl.cpu` must be named before it.
"""

from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
from verl.workers.engine_workers import ActorRolloutRefWorker

from acpo.engines.verl.trainer import RecordingTrainer
from acpo.engines.verl.worker import ObjectiveWorker

ActorRolloutRefWorker.actor_worker_cls = ObjectiveWorker
TRAINER_REGISTRY["sync"] = RecordingTrainer  # register_trainer refuses a name that is taken
