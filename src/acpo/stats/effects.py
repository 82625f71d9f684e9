"""Effect sizes that do not depend on the scale of scores."""

import numpy as np
from scipy import stats


def cliffs_delta(differences: np.ndarray) -> float:
    """Return Cliff's delta within pairs: how many paired differences are above 0 minus how many are below, as a share.

    Args:
        differences: [pairs]; here a question's mean accuracy under the treatment minus that under the baseline.
    """
    return float(np.sign(differences).mean())


def probability_of_improvement(treatment: np.ndarray, baseline: np.ndarray) -> float:
    """Return the chance that a run of the treatment scores higher than one of the baseline; ties count half.

    Args:
        treatment: Scores of its training runs, [runs].
        baseline: The same of the baseline.

    Source: Agarwal et al. 2021; the Mann-Whitney U over the number of pairs.
    """
    return float(stats.mannwhitneyu(treatment, baseline).statistic) / (len(treatment) * len(baseline))
