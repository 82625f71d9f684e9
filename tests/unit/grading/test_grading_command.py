import json

import pandas as pd
import pytest

from acpo.grading.__main__ import main
from acpo.store import read_table


def ask(capsys, *arguments):
    code = main(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_one_answer_with_its_reason(capsys):
    code, out, _ = ask(capsys, "--task", "math", "--pred", "\\boxed{1/2}", "--gold", "0.5")
    assert (code, json.loads(out)) == (0, {"correct": True, "extracted": "1/2", "reason": "equal", "grader": "math-1"})
    code, out, _ = ask(capsys, "--task", "math", "--pred", "1/2", "--gold", "0.5")
    assert code == 1
    assert json.loads(out)["reason"] == "no box and no stated answer"


def test_countdown_takes_numbers_and_target(capsys):
    arguments = ("--task", "countdown", "--numbers", "1", "2", "3", "--target", "6")
    assert ask(capsys, *arguments, "--pred", "<answer>1+2+3</answer>")[0] == 0
    assert ask(capsys, *arguments, "--pred", "\\boxed{6}")[0] == 1


def test_an_answer_may_start_with_a_minus_sign(capsys):
    assert ask(capsys, "--task", "math", "--pred", "\\boxed{-1/2}", "--gold", "-\\frac{1}{2}")[0] == 0
    assert ask(capsys, "--task", "math", "--pred", "-5", "--gold", "-5")[0] == 1
    assert ask(capsys, "--task", "math", "--pred", "\\boxed{0}", "--gold", "")[0] == 1


def test_released_semantics(capsys):
    arguments = ("--task", "countdown", "--numbers", "7", "2", "1", "--target", "3", "--pred", "\\boxed{7//2*1}")
    assert ask(capsys, *arguments)[0] == 1
    assert ask(capsys, *arguments, "--released")[0] == 0


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_file_is_graded_in_its_own_format(capsys, tmp_path, ending):
    rows = [
        {"response": "\\boxed{5}", "gold": "5", "question": "a"},
        {"response": "none", "gold": "5", "question": "b"},
    ]
    source, output = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    if ending == "parquet":
        pd.DataFrame(rows).to_parquet(source)
    else:
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = ask(capsys, "--task", "math", "--input", str(source), "--output", str(output))
    assert (code, json.loads(out)["right"], json.loads(out)["rows"]) == (0, 1, 2)
    assert "2/2" in err
    if ending == "parquet":
        graded = read_table(output).to_dict("records")
    else:
        graded = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["correct"] for row in graded] == [True, False]
    assert [row["question"] for row in graded] == ["a", "b"]
    assert {row["grader_version"] for row in graded} == {"math-1"}


def test_golds_of_a_table_may_be_lists(capsys, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"pred": "\\boxed{b, a}", "answer": ["a", "b"]}) + "\n")
    arguments = ("--task", "hitab", "--input", str(source), "--output", str(tmp_path / "out.jsonl"))
    code, out, _ = ask(capsys, *arguments, "--response-column", "pred", "--gold-column", "answer")
    assert (code, json.loads(out)["right"]) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "maths", "--pred", "1", "--gold", "1"), "'maths' is not part of this version"),
        (("--task", "math", "--input", "nowhere.jsonl", "--output", "out.jsonl"), "nowhere.jsonl"),
        (("--task", "countdown", "--pred", "1", "--gold", "not json"), "Error"),
    ],
)
def test_faults_of_the_command_are_named(capsys, arguments, message):
    code, _, err = ask(capsys, *arguments)
    assert code == 2
    assert message in err


def test_a_row_without_its_column_is_named(capsys, tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "1", "gold": "1"}\n')
    code, _, err = ask(capsys, "--task", "math", "--input", str(source), "--output", str(tmp_path / "out.jsonl"))
    assert code == 2
    assert "row 0" in err
    assert "'response'" in err
