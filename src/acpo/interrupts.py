"""Ctrl-C while a script still imports its libraries: one line, no traceback. `acpo.cli` imports this first."""

import sys
from types import TracebackType

EXIT_STATUS = 130  # what a shell reports of a command that Ctrl-C ended
MESSAGE = "interrupted"


def _stems_from_ctrl_c(error: BaseException | None) -> bool:
    """Say whether an exception is Ctrl-C, or what an extension module made of it while it was loaded."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if _stems_from_ctrl_c(error):
        print(MESSAGE, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report
