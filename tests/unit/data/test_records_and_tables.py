import json
import zipfile

import pytest

from acpo.data.fetch import find_in_mirror
from acpo.data.records import arrow_rows, json_array, json_lines, parquet_rows
from acpo.data.registry import source
from acpo.data.tables import Table, most_rows, render, table, zipped_tables
from acpo.data.verify import DataError

CELLS = [["", "2015", "", "2016", ""], ["", "men", "women", "men", "women"], ["total", "1", "2", "3", "4"]]
CELLS += [[f"row {k}", "5", "6", "7", "8"] for k in range(20)]


def archive(path, tables):
    """Write tables the way HiTab's archive has them, its other members included."""
    with zipfile.ZipFile(path, "w") as made:
        for name, content in tables.items():
            made.writestr(f"tables/raw/{name}.json", json.dumps(content))
            made.writestr(f"tables/hmt/{name}.json", json.dumps({"title": "not this one"}))
            made.writestr(f"__MACOSX/tables/raw/._{name}.json", b"\x00\x05")
    return path


RAW = {
    "title": "people by sex",
    "top_header_rows_num": 2,
    "left_header_columns_num": 1,
    "merged_regions": [{"first_row": 0, "last_row": 0, "first_column": 1, "last_column": 2}],
    "texts": CELLS,
}


def test_tables_come_from_the_archive(tmp_path):
    path = archive(tmp_path / "tables.zip", {"7": RAW, "8": {**RAW, "title": "other"}})
    found = zipped_tables(path, ["7"])
    assert list(found) == ["7"]
    assert found["7"].title == "people by sex"
    assert found["7"].header_rows == 2


def test_a_missing_table_is_named(tmp_path):
    path = archive(tmp_path / "tables.zip", {"7": RAW})
    with pytest.raises(DataError, match="'9'"):
        zipped_tables(path, ["7", "9"])


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK\x03\x04 cut off"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "tables.zip").write_bytes(content)
    with pytest.raises(DataError, match="zip"):
        zipped_tables(tmp_path / "tables.zip", ["7"])


def test_a_cut_off_archive_is_refused(tmp_path):
    path = archive(tmp_path / "tables.zip", {"7": RAW})
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(DataError, match="zip"):
        zipped_tables(path, ["7"])


def test_header_rows_are_counted_where_the_record_does_not_say():
    assert table({"title": "t", "texts": CELLS}, "here").header_rows == 2
    assert table({"title": "t", "texts": [["a", "b"], ["1", "2"]]}, "here").header_rows == 1
    with pytest.raises(DataError, match="here"):
        table({"title": "t"}, "here")


def test_a_table_is_written_row_by_row():
    shown = Table("two", (("name", "n|m"), ("a", "1")), 1)
    assert render(shown) == "Table: two\n| name | n/m |\n| a | 1 |"


def test_shortening_keeps_the_header_and_says_what_is_missing():
    shown = table(RAW, "here")
    whole = render(shown)
    for budget in range(len(whole) + 20):
        rows = most_rows(shown, lambda text, budget=budget: len(text) <= budget)
        header = render(shown, 0)
        if rows is None:
            assert budget < len(header)
            continue
        text = render(shown, rows)
        assert len(text) <= budget
        assert text.splitlines()[:3] == whole.splitlines()[:3]
        assert rows == 21 or text.endswith(f"({21 - rows} more rows are not shown.)")


def test_damaged_records_are_named(tmp_path):
    file = tmp_path / "file"
    file.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(DataError, match="line 2"):
        list(json_lines(file))
    file.write_text('{"a": 1}\n[2]\n')
    with pytest.raises(DataError, match=r"line 2.*object"):
        list(json_lines(file))
    file.write_bytes(b'{"a": 1}\n\xff\xfe\n')
    with pytest.raises(DataError, match="file"):
        list(json_lines(file))
    file.write_text("<html>")
    with pytest.raises(DataError, match="JSON array"):
        list(json_array(file))
    for reader in (arrow_rows, lambda path: list(parquet_rows(path, ("a",), 0, 1))):
        with pytest.raises(DataError, match="file"):
            reader(file)


def test_arrays_are_read_whole_or_up_to_the_cut(tmp_path):
    file = tmp_path / "file"
    file.write_text('[ {"a": 1}, [2] ,3 ]')
    assert list(json_array(file)) == [{"a": 1}, [2], 3]
    file.write_text('[{"a": 1}, {"a": "é')
    assert list(json_array(file, partial=True)) == [{"a": 1}]
    with pytest.raises(DataError, match="after 1 whole records"):
        list(json_array(file))


def test_the_real_cut_off_file_has_1785_whole_records(mirror):
    place = find_in_mirror(source("orz57k_prefix"), mirror)
    assert len(list(json_array(place, partial=True))) == 1785
    with pytest.raises(DataError, match="1,785 whole records"):
        list(json_array(place))
