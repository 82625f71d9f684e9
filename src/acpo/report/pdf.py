"""LaTeX to PDF: bounded in time, without a shell, the same bytes for the same source."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from acpo.errors import ConfigError
from acpo.store import StoreError

PACKAGES = "texlive-latex-base texlive-latex-recommended"
PASSES = 4
"""At most; long tables and the table of contents settle in three."""
_ERROR = re.compile(r"^(?:!|[^\s:]+:\d+:) ")
_SHOWN = 6


def compile_pdf(source: Path, seconds: float) -> bytes:
    """Compile a LaTeX file in its own folder until its references have settled.

    Args:
        source: The file. What it reads lies beside it; nothing is written there.
        seconds: How long all passes may take together.

    Returns:
        The PDF.

    Raises:
        ConfigError: there is no pdflatex; names the Debian packages that have it.
        StoreError: LaTeX found an error, whose first lines are given, or took too long.
    """
    if shutil.which("pdflatex") is None:
        raise ConfigError(f"no pdflatex to make a PDF of {source} with: apt-get install {PACKAGES}")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / source.with_suffix(".pdf").name
        notes = made.with_suffix(".aux")
        seen = b""
        for _ in range(PASSES):
            seconds -= _run(source, Path(folder), seconds)
            now = notes.read_bytes()
            if now == seen:
                break
            seen = now
        return made.read_bytes()


def _run(source: Path, folder: Path, seconds: float) -> float:
    """Make one pass; returns how long it took."""
    line = ["pdflatex", "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error", "-file-line-error"]
    before = os.times().elapsed
    try:
        done = subprocess.run(
            [*line, f"-output-directory={folder}", source.name], cwd=source.parent, env=_environment(folder),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=max(seconds, 1), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"{source}: LaTeX took longer than it may ({error.timeout:.0f} s for a pass)") from error
    if done.returncode != 0:
        told = done.stdout.decode("utf-8", "replace").splitlines()
        raise StoreError(f"{source}: LaTeX: {' | '.join(first_errors(told)) or f'exit status {done.returncode}'}")
    return os.times().elapsed - before


def first_errors(log: list[str]) -> list[str]:
    """Return the first error of a LaTeX log and the lines after it, without empty ones."""
    for number, line in enumerate(log):
        if _ERROR.match(line):
            return [text.strip() for text in log[number : number + _SHOWN] if text.strip()]
    return []


def _environment(folder: Path) -> dict[str, str]:
    # Fixed dates and no settings of the user: the same bytes on every machine with the same TeX.
    fixed = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "max_print_line": "1000", "HOME": str(folder)}
    return {"PATH": os.environ["PATH"], "LC_ALL": "C", **fixed}
