"""The command: six files, and what is wrong in one line."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from audit_study import write_scores

from acpo.audit.verdict import Audit
from acpo.config import Study
from acpo.report.latex import breakable
from acpo.store import read_json

ROOT = Path(__file__).parents[3]


def run(monkeypatch: pytest.MonkeyPatch, results: Path, output: Path) -> int:
    line = [
        "audit_claims", "--config", str(ROOT / "config.yaml"), "--results", str(results), "--output-dir", str(output)
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", line)
    try:
        runpy.run_path(str(ROOT / "scripts" / "audit_claims.py"), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_both_audits_in_three_forms_say_the_same(
    shipped: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_scores(tmp_path / "results", shipped, lambda method, _: 0.4 if method == "acpo" else 0.3)
    assert run(monkeypatch, tmp_path / "results", tmp_path / "out") == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"{name}.{ending}" for name in ("ledger", "published") for ending in ("html", "json", "tex")]
    for name in ("ledger", "published"):
        audit = read_json(tmp_path / "out" / f"{name}.json", Audit)
        page = (tmp_path / "out" / f"{name}.html").read_text()
        tex = (tmp_path / "out" / f"{name}.tex").read_text()
        assert tex.isascii(), "every sign has its command"
        assert page.count("<tr>") == len(audit.rows) + 1
        for row in audit.rows:
            assert breakable(row.claim) in tex
            assert breakable(row.recomputed) in tex
            assert str(row.verdict) in page
    told = capsys.readouterr().out
    assert "needs results/theory/statements.json; make it with: snakemake --cores 1 theory." in told
    ledger = json.loads((tmp_path / "out" / "ledger.json").read_text())
    verdicts = {row["id"]: row["verdict"] for row in ledger["rows"]}
    assert verdicts["table1a"] == "reproduced"


def test_the_same_results_give_the_same_bytes(shipped: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_scores(tmp_path / "results", shipped, lambda *_: 0.3)
    contents = []
    for name in ("one", "two"):
        assert run(monkeypatch, tmp_path / "results", tmp_path / name) == 0
        contents.append([path.read_bytes() for path in sorted((tmp_path / name).iterdir())])
    assert contents[0] == contents[1]


def test_a_damaged_result_ends_in_one_line_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "mini_base.json").write_text('{"schema_version": 1, "cell"')
    assert run(monkeypatch, results, tmp_path / "out") == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert "mini_base.json" in errors[0]
    assert not (tmp_path / "out").exists()
