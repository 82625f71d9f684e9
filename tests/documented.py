"""The files that the documentation shows, as a reader would write them."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def documented_files(page: str) -> dict[str, str]:
    """Take the files that a page of the documentation shows: a `file:` comment, then a fenced block."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    files = {}
    for part in text.split("<!-- file: ")[1:]:
        name, rest = part.split(" -->", 1)
        files[name] = rest.split("```", 2)[1].split("\n", 1)[1]
    return files
