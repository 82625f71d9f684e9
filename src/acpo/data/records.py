"""Read the records of raw files (JSON lines, JSON arrays, Arrow, parquet), naming file and place of any damage."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from acpo.data.verify import DataError

Record = dict[str, Any]
_REMEDY = "The file is damaged or of another version: delete it and fetch it again"


def json_lines(path: Path) -> Iterator[Record]:
    """Yield the objects of a JSON-lines file.

    Raises:
        DataError: a line that is not a JSON object; names the file and the line.
    """
    with path.open("rb") as handle:
        for place, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode("utf-8"))
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                raise DataError(f"{path}: line {place}: {error}. {_REMEDY}") from error
            yield _object(value, f"{path}: line {place}")


def _object(value: Any, where: str) -> Record:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, found {type(value).__name__}. {_REMEDY}")
    return value


def json_array(path: Path, partial: bool = False) -> Iterator[Any]:
    """Yield the elements of a JSON array.

    Args:
        path: The file.
        partial: Whether a cut-off end is expected; whole elements before it are yielded.

    Raises:
        DataError: not an array, or (unless `partial`) cut off; says how many whole elements there are.
    """
    text, decoder = (
        path.read_bytes().decode("utf-8", errors="replace" if partial else "strict"),
        json.JSONDecoder(),
    )
    position = _skip(text, 0)
    if text[position : position + 1] != "[":
        raise DataError(f"{path}: expected a JSON array. {_REMEDY}")
    position, count = _skip(text, position + 1), 0
    while text[position : position + 1] != "]":
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            if partial:
                return
            raise DataError(f"{path}: cut off or damaged after {count:,} whole records: {error}. {_REMEDY}") from error
        yield value
        count += 1
        position = _skip(text, position)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def arrow_rows(path: Path) -> list[Record]:
    """Read an Arrow stream file.

    Raises:
        DataError: not an Arrow stream, or cut off.
    """
    try:
        with pa.memory_map(str(path)) as handle:
            return pa.ipc.open_stream(handle).read_all().to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not an Arrow stream: {error}. {_REMEDY}") from error


def parquet_rows(path: Path, columns: tuple[str, ...], start: int, stop: int) -> Iterator[Record]:
    """Yield some rows of a parquet file without reading the rest.

    Args:
        path: The file.
        columns: Which columns.
        start: First row.
        stop: One past the last row.

    Raises:
        DataError: damaged, a column missing, or fewer rows than `stop`.
    """
    try:
        file = pq.ParquetFile(path)
        missing = set(columns) - set(file.schema_arrow.names)
        if missing or file.metadata.num_rows < stop:
            raise DataError(
                f"{path}: expected at least {stop:,} rows with columns {', '.join(columns)}; "
                f"found {file.metadata.num_rows:,} rows with {', '.join(file.schema_arrow.names)}. {_REMEDY}"
            )
        at = 0
        for batch in file.iter_batches(batch_size=8192, columns=list(columns)):
            if at >= stop:
                return
            if at + batch.num_rows > start:
                yield from batch.slice(max(0, start - at), stop - max(start, at)).to_pylist()
            at += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a whole parquet file: {error}. {_REMEDY}") from error
