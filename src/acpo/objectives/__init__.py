"""The paper's objectives on batches of tokens, in plain torch; one file per method.

A trainer computes `statistics` of every micro-batch of a mini-batch, pools them (`pooled_statistics`), and
sums `loss` over micro-batches and ranks; a mini-batch held at once is `objective(batch)`.
"""

from acpo.objectives.advantage import group_advantage
from acpo.objectives.base import Loss, Objective
from acpo.objectives.batch import TokenBatch
from acpo.objectives.metrics import LOG_BINS, UpdateMetrics
from acpo.objectives.pooling import pooled_statistics
from acpo.objectives.registry import make_objective, objective_names, parameters_model
from acpo.objectives.statistics import Statistics, merge

__all__ = [
    "LOG_BINS",
    "Loss",
    "Objective",
    "Statistics",
    "TokenBatch",
    "UpdateMetrics",
    "group_advantage",
    "make_objective",
    "merge",
    "objective_names",
    "parameters_model",
    "pooled_statistics",
]
