"""The transcription: every number is there, and is found again in the paper where that is at hand."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from acpo.audit.published import BLANK, Number, PublishedTable, published
from acpo.errors import ConfigError

# table: (rows, numbers and dashes)
SIZES = {
    "table1a": (7, 13),
    "table1b": (7, 26),
    "table2": (7, 91),
    "table3": (13, 15),
    "table4": (12, 12),
    "table5": (24, 168),
    "table6": (4, 8),
    "table7": (6, 42),
    "table8": (3, 6),
    "table9": (5, 40),
    "table10": (12, 72),
    "appendix_f": (9, 18),
}
TABULAR = ("table1a", "table1b", "table2", "table3", "table5", "table6", "table7", "table8", "table9", "table10")
NAMES = {
    "Rollout N": "Rollout $N$",
    "Validation N": "Validation $N$",
    "epsilon_low": r"$\epsilon_{\text{low}}$",
    "epsilon_high": r"$\epsilon_{\text{high}}$",
}
NOT_NUMBERS = ("Base Model\tQwen2.5-7B", "Loss Aggregation")


def plain(cell: str) -> str:
    """Undo what the paper's text has around numbers."""
    return cell.replace(r"$\pm$", "±").replace("$-$", "-").replace("$<0.001$", "<0.001").strip()


def section(paper: str, table: str) -> list[list[str]]:
    """Return the lines with tabs between a table's caption and the next line of prose, without empty cells."""
    number = re.match(r"table(\d+)", table)
    assert number
    lines = paper.split(f"\nTable {number[1]}:")[1].split("\n")[1:]
    kept = []
    for line in lines:
        if line.startswith("Table ") or ("\t" not in line and len(line) > 80):
            break
        if "\t" in line and re.search(r"\d", line) and not line.startswith(NOT_NUMBERS):
            kept.append([plain(cell) for cell in line.split("\t") if cell.strip()])
    return kept


def transcribed(table: str) -> list[list[str]]:
    """Return a table's rows as the paper's lines have them."""
    rows = []
    for lines in published().tables[table].panels.values():
        for label, cells in lines.items():
            names = label.split(" ") if table == "table5" else [NAMES.get(label, label)]
            rows.append([*names, *(cell for cell in cells if cell != "")])
    return rows


@pytest.mark.parametrize("table", SIZES)
def test_every_table_has_all_its_rows_and_cells(table: str) -> None:
    one = published().tables[table]
    rows = sum(len(lines) for lines in one.panels.values())
    assert (rows, len(one.frame())) == SIZES[table]


def test_only_these_tables_exist() -> None:
    assert set(published().tables) == set(SIZES)


@pytest.mark.parametrize("table", TABULAR)
def test_every_row_stands_in_the_paper_and_no_row_is_missing(paper: str, table: str) -> None:
    ours = transcribed(table)
    theirs = [[cell.removesuffix(" (Ours)") for cell in line] for line in section(paper, table)]
    if table == "table7":
        theirs = [line[1:] if line[0] in ("N-OnP.", "OffP.") else line for line in theirs]
    numbers = [line for line in theirs if any(re.fullmatch(r"[-+<]?[\d.]+.*", cell) for cell in line[1:])]
    for row in ours:
        assert row in numbers, row
    # Table 1 has two parts under one caption.
    parts = ("table1a", "table1b") if table in ("table1a", "table1b") else (table,)
    assert len(numbers) == sum(len(transcribed(part)) for part in parts)


def test_method_parameters_stand_in_the_paper(paper: str) -> None:
    text = paper.split("\nTable 4:")[1].split("Appendix J")[0]
    theirs = re.findall(r"\$ = ([\d.]+)", text)
    ours = [cell for rows in published().tables["table4"].panels.values() for cells in rows.values() for cell in cells]
    assert ours == theirs


def test_gradient_numbers_stand_in_appendix_f(paper: str) -> None:
    text = paper.split("\nAppendix F ")[1].split("\nAppendix G ")[0]
    for rows in published().tables["appendix_f"].panels.values():
        for label, (norm, angle) in rows.items():
            assert norm in BLANK or f"{norm}%" in text, label
            assert rf"{angle}^∘" in text, label


def test_prose_numbers_stand_in_the_sentence_quoted(paper: str) -> None:
    for name, item in published().prose.items():
        assert item.quote in paper, name


@pytest.mark.parametrize(
    ("printed", "value", "rounding", "spread", "bound"),
    [
        ("20.80", 20.8, 0.005, None, False),
        ("<0.001", 0.001, 0.0005, None, True),
        ("231.0 ± 31.7", 231.0, 0.05, 31.7, False),
        ("+3.8%", 3.8, 0.05, None, False),
        ("-21.2%", -21.2, 0.05, None, False),
        ("20,177", 20177.0, 0.5, None, False),
        ("5.01e-3", 0.00501, 5e-6, None, False),
        ("1e-6", 1e-6, 5e-7, None, False),
    ],
)
def test_numbers_are_read_as_printed(
    printed: str, value: float, rounding: float, spread: float | None, bound: bool
) -> None:
    number = Number.parse(printed)
    assert number.value == pytest.approx(value)
    assert number.rounding == pytest.approx(rounding)
    assert (number.spread, number.bound) == (spread, bound)


@pytest.mark.parametrize("printed", ["", "–", "nan", "1.2.3.4e", "about 3", "12 34", "1e", "0.1 ± "])
def test_what_is_no_number_is_refused(printed: str) -> None:
    with pytest.raises(ValueError, match=r"no number|could not convert"):
        Number.parse(printed)


def test_a_row_of_another_length_is_refused() -> None:
    table = published().tables["table8"].model_dump()
    table["panels"][""]["4"] = ["75.20"]
    with pytest.raises(ValidationError, match="1 cells for 2 columns"):
        PublishedTable.model_validate(table)


def test_an_unknown_number_of_the_prose_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="rank_acpo"):
        published().said("rank_acpoo")


def test_a_blank_cell_is_no_number() -> None:
    with pytest.raises(KeyError, match="blank"):
        published().tables["table2"].number("", "Base Model", ("AMC", "OffP."))


def test_transcription_is_part_of_the_package() -> None:
    import acpo.audit

    assert (Path(acpo.audit.__file__).parent / "published.yaml").is_file()
