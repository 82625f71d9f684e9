"""Read HiTab's tables and write them as text, shortened from the bottom where that is needed, never in the header."""

import json
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from acpo.data.records import Record, json_lines
from acpo.data.verify import DataError

MOST_HEADER_ROWS = 6
LARGEST_MEMBER = 20_000_000


@dataclass(frozen=True)
class Table:
    """A table: its title, its cells row by row, and how many rows from the top are headers."""

    title: str
    cells: tuple[tuple[str, ...], ...]
    header_rows: int


def table(record: Record, where: str) -> Table:
    """Read a table as HiTab stores it: `title`, `texts`, and where given `top_header_rows_num`.

    Raises:
        DataError: no cells; names where.
    """
    texts = record.get("texts")
    if not isinstance(texts, list) or not texts or not all(isinstance(row, list) for row in texts):
        raise DataError(f"{where}: expected a table with rows in `texts`. Fetch the file again")
    cells = tuple(tuple(" ".join(str(cell).split()) for cell in row) for row in texts)
    headers = record.get("top_header_rows_num")
    return Table(str(record.get("title", "")), cells, int(headers) if headers else _header_rows(cells))


def _header_rows(cells: tuple[tuple[str, ...], ...]) -> int:
    """Count header rows where the record does not say: the first row, and those below it whose first cell is empty."""
    count = 1
    while count < min(len(cells) - 1, MOST_HEADER_ROWS) and cells[count] and not cells[count][0]:
        count += 1
    return count


def zipped_tables(path: Path, names: Collection[str]) -> dict[str, Table]:
    """Read tables from `tables.zip`, where each is a member ending in `raw/<table id>.json`.

    Args:
        path: The archive.
        names: Which tables.

    Raises:
        DataError: no archive, damaged, or a table missing; names the file and the table.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                Path(info.filename).stem: info
                for info in archive.infolist()
                if Path(info.filename).suffix == ".json" and Path(info.filename).parent.name == "raw"
            }
            missing = sorted(set(names) - set(members))
            if missing:
                raise DataError(
                    f"{path}: {len(missing)} tables are missing, the first is {missing[0]!r}. Fetch the file again"
                )
            return {
                name: _member(archive, members[name], f"{path}: {members[name].filename}")
                for name in sorted(set(names))
            }
    except (zipfile.BadZipFile, OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a whole zip archive of tables: {error}. Delete it and fetch it again") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Table:
    if info.file_size > LARGEST_MEMBER:
        raise DataError(f"{where}: {info.file_size:,} bytes is more than any table has")
    return table(json.loads(archive.read(info).decode("utf-8")), where)


def tables_beside_samples(path: Path) -> dict[str, Table]:
    """Read tables from a JSON-lines file of samples that each carry their `table`."""
    return {
        str(row["table_id"]): table(row.get("table") or {}, f"{path}: {row['table_id']}") for row in json_lines(path)
    }


def _line(row: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"


def render(shown: Table, rows: int | None = None) -> str:
    """Write a table as text: its title, its header rows, then one line a row.

    Args:
        shown: The table.
        rows: How many rows below the header to keep from the top (None: all); a last line says how many are left out.
    """
    head = [f"Table: {shown.title}"] if shown.title else []
    lines = [_line(row) for row in shown.cells]
    head += lines[: shown.header_rows]
    body = lines[shown.header_rows :]
    if rows is None or rows >= len(body):
        return "\n".join(head + body)
    return "\n".join([*head, *body[:rows], left_out(len(body) - rows)])


def most_rows(shown: Table, fits: Callable[[str], bool]) -> int | None:
    """Find how many rows below the header can be kept; None where the title and the header alone do not fit.

    Args:
        shown: The table.
        fits: Tests a rendered table.
    """
    low, high = 0, len(shown.cells) - shown.header_rows
    if not fits(render(shown, 0)):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(render(shown, middle)) else (low, middle - 1)
    return low


def left_out(rows: int) -> str:
    """The line that says how many rows are not shown."""
    return f"({rows} more rows are not shown.)"
