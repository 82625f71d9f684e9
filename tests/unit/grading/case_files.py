"""The shared case files, with the long texts that they only describe."""

import json
from pathlib import Path

CASES = Path(__file__).parents[2] / "cases"
_LONG = {
    "deep_paren": "\\boxed{" + "(" * 3000 + "1" + ")" * 3000 + "}",
    "redos_boxes": "\\boxed{" * 20000,
    "deep_parens": "Thinking ... so \\boxed{" + "(" * 5000 + "1+2+3" + ")" * 5000 + "}",
}


def rows(name: str) -> list[dict]:
    """Read a case file."""
    found = [json.loads(line) for line in (CASES / f"{name}_cases.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in found:
        key = "response" if "response" in row else "pred"
        if f"{key}_recipe" in row:
            row[key] = _LONG[row["id"]]
            assert len(row[key]) == row[f"{key}_len"]
    return found
