"""Download one file: in pieces, resumable, with retries that wait longer each time."""

import http.client
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO

from acpo.data.verify import DataError
from acpo.progress import Progress
from acpo.store import StoreError

CHUNK = 1 << 18
TIMEOUT_SECONDS = 30.0
ATTEMPTS = 5
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
_FINAL_STATUSES = frozenset({400, 401, 403, 404, 410, 451})


class InterruptedTransferError(Exception):
    """A transfer stopped early; what has arrived is kept and the next attempt goes on from there."""


def download(
    url: str,
    part: Path,
    size: int | None = None,
    attempts: int = ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Download `url` to `part`, going on from what `part` already holds.

    Args:
        url: Where from.
        part: Partial file; kept after a failure so that a later run resumes.
        size: Expected bytes, where known.
        attempts: How often to try.
        sleep: Waits between attempts (replaced in tests).

    Raises:
        DataError: the server refuses, or every attempt failed; names the URL and says what to do.
        StoreError: the disk refuses (full, no permission).
    """
    problem: Exception | None = None
    for attempt in range(attempts):
        if attempt:
            sleep(min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), LONGEST_WAIT_SECONDS))
        try:
            _transfer(url, part, size)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416:
                part.unlink(missing_ok=True)
            if error.code in _FINAL_STATUSES:
                raise DataError(f"{url}: the server answered {error.code} {error.reason}. {_remedy(part)}") from error
            problem = error
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            InterruptedTransferError,
            TimeoutError,
            ConnectionError,
        ) as error:
            problem = error
    raise DataError(f"{url}: {attempts} attempts failed, the last with: {problem}. {_remedy(part)}") from problem


def _remedy(part: Path) -> str:
    return (
        f"Check the network and run the same command again (it goes on from {part.name}), or copy the file into "
        "a mirror "
        "directory as <owner>/<repository>/<revision>/<path> and give it with --config mirror=<directory>"
    )


def _transfer(url: str, part: Path, size: int | None) -> None:
    """Make one attempt."""
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have > size:
        part.unlink()
        have = 0
    if size is not None and have == size:
        return
    headers = {"User-Agent": "acpo-fetch", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
        resumed = response.status == 206 and _starts_at(response.headers.get("Content-Range"), have)
        start = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else size
        with _opened(part, "ab" if resumed else "wb") as handle:
            _copy(response, handle, part, start, total)
    if total is not None and part.stat().st_size < total:
        raise InterruptedTransferError(f"the transfer stopped at {part.stat().st_size:,} of {total:,} bytes")


def _starts_at(content_range: str | None, have: int) -> bool:
    return content_range is not None and content_range.startswith(f"bytes {have}-")


def _opened(part: Path, mode: str) -> IO[bytes]:
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        return part.open(mode)
    except OSError as error:
        raise _disk_error(part, error) from error


def _copy(response: http.client.HTTPResponse, handle: IO[bytes], part: Path, start: int, total: int | None) -> None:
    pieces = -(-(total - start) // CHUNK) if total else 1
    with Progress(f"download {part.name.strip('.').removesuffix('.part')}", max(1, pieces), unit="bytes") as progress:
        while True:
            piece = response.read(CHUNK)
            if not piece:
                return
            try:
                handle.write(piece)
                handle.flush()
            except OSError as error:
                raise _disk_error(part, error) from error
            progress.advance(len(piece))


def _disk_error(part: Path, error: OSError) -> StoreError:
    free = ""
    for directory in part.parents:
        if directory.exists():
            free = f" ({shutil.disk_usage(directory).free:,} bytes free)"
            break
    return StoreError(
        f"cannot write {part}: {error.strerror or error}{free}. "
        "Free space or fix the permission, then run the same command again: it goes on from what has arrived"
    )
