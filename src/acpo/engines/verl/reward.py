"""The reward that verl trains on: the verdict of the task's own grader, bounded in time and memory by it."""

from typing import Any

from acpo.tasks import load_task


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,  # noqa: ARG001
    **_settings: Any,
) -> dict[str, float]:
    """Grade one response, as the embedded engine does.

    Args:
        data_source: The task's name.
        solution_str: The response, which may be any text.
        ground_truth: Gold text that the task's grader understands.
        extra_info: What verl adds; unused.
        **_settings: What else a version of verl may pass; unused.

    Returns:
        `score`, the reward, and `acc`, from which verl makes its validation metric: 1 where correct, else 0.

    Raises:
        ConfigError: no such task.
    """
    correct = float(load_task(data_source).grade(solution_str, ground_truth).correct)
    return {"score": correct, "acc": correct}
