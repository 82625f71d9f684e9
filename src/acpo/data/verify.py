"""Check that a file is exactly the pinned one, and say what it is when it is not."""

import hashlib
from pathlib import Path

from acpo.data.registry import Source
from acpo.provenance import file_hash
from acpo.store import StoreError

_PAGE_STARTS = (b"<!doctype", b"<html", b"<head", b"<?xml")
_LFS_START = b"version https://git-lfs"


class DataError(StoreError):
    """A data file is missing, damaged or not the pinned one; the message names it and says what to do."""


def git_blob_id(path: Path) -> str:
    """Return git's id of a file's content: sha1 over `blob <size>`, a zero byte and the content."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as handle:
        for chunk in iter(lambda: handle.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def found_hash(source: Source, path: Path) -> str:
    """Return the hash of a file in the kind that its source pins."""
    return f"sha256 {file_hash(path)}" if source.sha256 else f"git blob {git_blob_id(path)}"


def looks_like(path: Path) -> str:
    """Guess what a wrong file is, for the message."""
    with path.open("rb") as handle:
        start = handle.read(64).lstrip().lower()
    if not start:
        return "it is empty"
    if start.startswith(_PAGE_STARTS):
        return "it is a web page, not data: a proxy or a login page answered instead"
    if start.startswith(_LFS_START):
        return "it is a pointer to a large file, not the file"
    return ""


def verify(source: Source, path: Path) -> None:
    """Check a file's size and hash.

    Args:
        source: What it must be.
        path: Where it lies.

    Raises:
        DataError: missing, or not the pinned file; names the file, both hashes and what to do.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected {source.key} from {source.url}")
    found = found_hash(source, path)
    if found == source.expected and source.size in (None, path.stat().st_size):
        return
    size = f"; expected {source.size:,} bytes" if source.size is not None else ""
    guess = looks_like(path)
    raise DataError(
        f"{path}: not the pinned file of {source.key}: expected {source.expected}, found {found} "
        f"({path.stat().st_size:,} bytes{size}){'; ' + guess if guess else ''}. "
        f"Delete it and fetch again, or put the file of {source.url} there"
    )
