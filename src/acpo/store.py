"""Files that are either whole or absent: atomic writes, and reads that refuse what fails its schema."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


class StoreError(Exception):
    """A file could not be written or read; the message names it and says what to do."""


def _refused(path: Path, error: OSError) -> StoreError:
    """Say that the operating system refused a write."""
    return StoreError(
        f"cannot write {path}: {error.strerror or error}. Nothing was left half-written: "
        "free space or fix the permission, then run the same command again"
    )


def fsync_directory(directory: Path) -> None:
    """Flush a directory entry, so that a rename in it survives a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`.

    On any failure, a full disk included, the temporary file is removed and `path` is left as it was.

    Args:
        path: The final place of the file. Its directory is made when missing.

    Raises:
        StoreError: the operating system refused (disk full, no permission); the message names `path`.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        temporary = Path(name)
        os.close(descriptor)
        temporary.chmod(0o644)
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
        temporary = None
        fsync_directory(path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory beside `path`; on success fsync its files and rename it to `path`.

    An existing `path` is replaced: it is moved aside first and removed last.

    Raises:
        StoreError: as in `atomic_file`.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
        temporary.chmod(0o755)
        yield temporary
        for file in sorted(temporary.rglob("*")):
            if file.is_file():
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
        fsync_directory(temporary)
        old = path.with_name(f".{path.name}.old.tmp")
        shutil.rmtree(old, ignore_errors=True)
        if path.exists():
            path.rename(old)
        temporary.rename(path)
        temporary = None
        shutil.rmtree(old, ignore_errors=True)
        fsync_directory(path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: BaseModel | dict[str, Any]) -> None:
    """Write a pydantic model or a plain mapping as indented JSON, atomically. NaN is refused."""
    content = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, model: type[Model]) -> Model:
    """Read a JSON file into a pydantic model.

    Raises:
        StoreError: missing, truncated, or not what `model` describes; names the file and the field.
    """
    text = _read(path, lambda: path.read_text(encoding="utf-8"))
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise StoreError(
            f"{path}: {field}: {first['msg']}. The file is damaged or from another version: "
            "delete it and run the same command again"
        ) from error


def write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema | None = None) -> None:
    """Write a data frame as parquet, atomically, with the same bytes for the same content."""
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False).replace_schema_metadata(None)
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read_table(path: Path, schema: pa.Schema | None = None) -> pd.DataFrame:
    """Read a parquet file; with `schema`, refuse one whose columns or types differ.

    Raises:
        StoreError: missing, truncated or of another schema; names the file and the column.
    """
    table = _read(path, lambda: pq.read_table(path, page_checksum_verification=True))
    for field in schema or ():
        if field.name not in table.column_names or table.schema.field(field.name).type != field.type:
            found = table.schema.field(field.name).type if field.name in table.column_names else "no such column"
            raise StoreError(
                f"{path}: column {field.name}: expected {field.type}, found {found}. "
                "Delete the file and run the same command again"
            )
    return table.to_pandas()


Content = TypeVar("Content")


def _read(path: Path, reader: Callable[[], Content]) -> Content:
    try:
        return reader()
    except FileNotFoundError as error:
        raise StoreError(f"{path}: no such file") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path}: cannot be read ({error}). It is damaged: delete it and run the same command again"
        ) from error
