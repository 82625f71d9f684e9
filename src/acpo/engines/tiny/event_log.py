"""TensorBoard event files of a run."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from torch.utils.tensorboard import SummaryWriter


class EventLog:
    """Writes scalars under `<kind>/<name>`; use as a context manager.

    Event files hold wall-clock times, so they are for watching, not for comparing: metrics live in parquet.
    """

    def __init__(self, directory: Path, first_update: int):
        """Open the log; events of a killed run from `first_update` on are marked as superseded."""
        self._writer = SummaryWriter(str(directory), purge_step=first_update)

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def scalars(self, kind: str, values: Mapping[str, float], update: int) -> None:
        """Log numbers at an update; what is not a number (an empty bin) is left out."""
        for name, value in values.items():
            if value == value:
                self._writer.add_scalar(f"{kind}/{name}", value, update)
