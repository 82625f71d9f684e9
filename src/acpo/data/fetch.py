"""Get a pinned file: from a mirror directory if it is there, else from its origin; always verified."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from acpo.data.download import download
from acpo.data.registry import Source
from acpo.data.verify import DataError, verify
from acpo.store import StoreError, atomic_file, fsync_directory


def fetch(
    source: Source, destination: Path, mirror: Path | None = None, sleep: Callable[[float], None] = time.sleep
) -> Path:
    """Place the pinned file at `destination`.

    A file that is already there and right is kept. A mirror is looked up first, by `source.relative_path`; a file in it
    that is wrong is an error, not a reason to download.

    Args:
        source: What to get.
        destination: Where to put it.
        mirror: Directory of files in the layout `<owner>/<repository>/<revision>/<path>`.
        sleep: Waits between attempts (replaced in tests).

    Returns:
        `destination`.

    Raises:
        DataError: not to be had, or not the pinned file; `destination` is left as it was.
        StoreError: the disk refuses.
    """
    if destination.exists():
        verify(source, destination)
        return destination
    mirrored = find_in_mirror(source, mirror)
    if mirrored is not None:
        verify(source, mirrored)
        with atomic_file(destination) as temporary:
            shutil.copyfile(mirrored, temporary)
        return destination
    if source.host == "hub":
        _from_hub(source, destination)
    else:
        _from_origin(source, destination, sleep)
    return destination


def find_in_mirror(source: Source, mirror: Path | None) -> Path | None:
    """Return where a mirror holds a source's file; None without a mirror or such a file.

    Raises:
        DataError: the mirror is no directory.
    """
    if mirror is None:
        return None
    if not mirror.is_dir():
        raise DataError(f"{mirror}: the mirror is not a directory; correct the config key `mirror` or leave it out")
    place = mirror / source.relative_path
    return place if place.is_file() else None


def _from_origin(source: Source, destination: Path, sleep: Callable[[float], None]) -> None:
    """Download beside the destination, verify, rename. A wrong file is removed, a partial one kept for resuming."""
    part = destination.with_name(f".{destination.name}.part")
    download(source.url, part, source.size, sleep=sleep)
    try:
        verify(source, part)
    except DataError:
        part.unlink(missing_ok=True)
        raise
    try:
        with part.open("rb") as handle:
            os.fsync(handle.fileno())
        part.replace(destination)
        fsync_directory(destination.parent)
    except OSError as error:
        raise StoreError(
            f"cannot place {destination}: {error.strerror or error}. Run the same command again"
        ) from error


def _from_hub(source: Source, destination: Path) -> None:
    """Download with the hub's own client at the pinned revision, verify, copy into place."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise DataError(
            f"{source.key} comes from the Hugging Face hub: install huggingface_hub, or use a mirror"
        ) from error
    cache = destination.with_name(f".{destination.name}.hub")
    try:
        got = hf_hub_download(
            source.repository,
            source.path,
            repo_type="dataset",
            revision=source.revision,
            local_dir=str(cache),
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise DataError(
            f"{source.url}: the hub cannot be reached or refuses ({type(error).__name__}: {error}). Check the "
            "network, or put "
            f"the file into a mirror directory as {source.relative_path}"
        ) from error
    try:
        verify(source, Path(got))
        with atomic_file(destination) as temporary:
            shutil.copyfile(got, temporary)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
