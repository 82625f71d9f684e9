"""Questions about hierarchical tables (HiTab)."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from acpo.data.records import Record, json_lines
from acpo.data.tables import Table, most_rows, render, tables_beside_samples, zipped_tables
from acpo.data.verify import DataError
from acpo.errors import ConfigError, nearest
from acpo.grading import hitab as grader
from acpo.streams import stream
from acpo.tasks.base import Problem, Task, Verdict

_CELL = re.compile(r"\((\d+), \d+\)")
SUBSET = 300
SPLITS = {
    "train": ("hitab_train", "hitab_tables"),
    "dev": ("hitab_dev", "hitab_tables"),
    "test": ("hitab_test", "hitab_test_tables"),
    "test_released": ("hitab_test_released", "hitab_test_tables"),
    "test300": ("hitab_test", "hitab_test_tables"),
}


class HiTab(Task):
    """Table question answering; `test` has the corrected questions and answers, `test_released` the original ones."""

    ability = "table_qa"
    grader_version = grader.VERSION
    instruction = (
        "Write the final answer between <answer> and </answer>: the value or the words from the table and "
        "nothing else; "
        "separate several answers with semicolons."
    )
    prompt_style = "base"
    training_splits = frozenset({"train"})

    def sources(self, split: str) -> tuple[str, ...]:
        """Name the samples and the tables of a split; see `Task.sources`."""
        if split not in SPLITS:
            raise ConfigError(f"hitab has no split {split!r}; {nearest(split, SPLITS)}")
        return SPLITS[split]

    def problems(self, split: str, root_seed: int, files: Mapping[str, Path]) -> Iterator[Problem]:
        """Yield a split's questions with their tables, in the file's order.

        `test300` is a subset of 300 of `test`, drawn from the root seed. Where a prompt is too long, its table
        loses rows from the bottom, which its text and the manifest say; a header is never cut: where it alone is too
        long the filter of over-long prompts drops and counts the question. See `Task.problems`.
        """
        samples_key, tables_key = self.sources(split)
        samples = list(json_lines(files[samples_key]))
        if split == "test300":
            chosen = stream(root_seed, "hitab", split).permutation(len(samples))[:SUBSET]
            samples = [samples[place] for place in sorted(chosen)]
        tables = _tables(files[tables_key], samples)
        for sample in samples:
            yield _problem(split, sample, tables, files[samples_key])

    def grade(self, response: str, gold: str) -> Verdict:
        """Grade one response (see `acpo.grading.hitab`)."""
        return grader.grade(response, gold)

    def grade_released(self, response: str, gold: str) -> Verdict:
        """Grade by exact match."""
        return grader.grade_released(response, gold)


def _tables(path: Path, samples: list[Record]) -> dict[str, Table]:
    if path.suffix == ".zip":
        return zipped_tables(path, {str(sample["table_id"]) for sample in samples})
    return tables_beside_samples(path)


def _problem(split: str, sample: Record, tables: Mapping[str, Table], origin: Path) -> Problem:
    try:
        shown, name = tables[str(sample["table_id"])], f"{split}/{sample['id']}"
        asked, answer = str(sample["question"]).strip(), sample["answer"]
    except KeyError as error:
        raise DataError(f"{origin}: a sample without field or table {error}. Fetch the files of hitab again") from error
    gold, cells = grader.write_gold(answer), json.dumps(sample.get("reference_cells_map", {}))
    last_row = max((int(row) for row in _CELL.findall(cells)), default=0)

    def shorten(fits: Callable[[str], bool]) -> Problem | None:
        rows = most_rows(shown, lambda text: fits(_ask(text, asked)))
        if rows is None:
            return None
        lost = last_row >= shown.header_rows + rows
        notes = ("table shortened", *(("table shortened above a cell that the answer uses",) if lost else ()))
        return Problem(name, _ask(render(shown, rows), asked), gold, notes)

    return Problem(name, _ask(render(shown), asked), gold, shorten=shorten)


def _ask(table: str, question: str) -> str:
    return f"{table}\n\nQuestion: {question}"


TASK = HiTab()
