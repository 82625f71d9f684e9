"""TensorBoard event files of a run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from torch.utils.tensorboard import SummaryWriter

from acpo.store import StoreError


class EventLog:
    """Writes scalars under `<kind>/<name>`; use as a context manager.

    Event files hold wall-clock times, so they are for watching, not for comparing: metrics live in parquet.
    """

    def __init__(self, directory: Path, first_update: int):
        """Open the log; events of a killed run from `first_update` on are marked as superseded.

        Raises:
            StoreError: the operating system refused, here or in a later call.
        """
        self._directory = directory
        with self._refusals():
            self._writer = SummaryWriter(str(directory), purge_step=first_update)

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._refusals():
                self._writer.close()
        except StoreError:
            if error is None:  # a full disk has stopped the run already: that message is the one to show
                raise

    def scalars(self, kind: str, values: Mapping[str, float], update: int) -> None:
        """Log numbers at an update; what is not a number (an empty bin) is left out."""
        with self._refusals():
            for name, value in values.items():
                if value == value:
                    self._writer.add_scalar(f"{kind}/{name}", value, update)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write in {self._directory}: {error.strerror or error}. Free space or fix the permission, "
                "then run the same command again"
            ) from error
