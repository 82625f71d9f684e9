"""The ledger: it covers the paper, says what is missing, and refuses what does not fit."""

import json
import re
from pathlib import Path

import pytest
from audit_study import evidence, write_cell, write_logs, write_scores
from pydantic import ValidationError

from acpo.audit.checks import CHECKS
from acpo.audit.ledger import Ledger, judge, ledger
from acpo.audit.verdict import Audit, Verdict
from acpo.cells import Cell
from acpo.config import Study, parse_study
from acpo.store import StoreError

PLACES = " | ".join(entry.place for entry in ledger().entries)
NEEDS = re.compile(r"^Not testable here: needs .+; make it with: .+\.$")


def numbered(kind: str) -> set[int]:
    """Return the numbers that the ledger's places name, ranges included (`Eq. 8-10, 28-39`)."""
    found: set[int] = set()
    for listed in re.findall(rf"{kind} ((?:\d+(?:-\d+)?(?:, )?)+)", PLACES):
        for part in filter(None, listed.split(", ")):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def test_every_figure_table_equation_and_lemma_has_an_entry() -> None:
    assert numbered("Fig.") >= set(range(1, 8))
    assert numbered("Table") >= set(range(1, 11))
    assert set(range(1, 61)) - numbered("Eq.") == set()
    for name in ("Lemma 2.1", "Prop. 2.2", "Cor. 2.3", "Algorithm 1"):
        assert name in PLACES
    for appendix in "CDEFIJKLM":
        assert f"App. {appendix}" in PLACES


def test_every_check_is_used_and_exists() -> None:
    assert {entry.check for entry in ledger().entries if entry.check} == set(CHECKS)


def test_without_results_every_untested_claim_says_what_it_needs(shipped: Study, tmp_path: Path) -> None:
    audit = judge(evidence(tmp_path, shipped))
    excused = {entry.id: entry.reason for entry in ledger().entries if entry.reason}
    assert len(audit.rows) == len(ledger().entries)
    for row in audit.rows:
        if row.verdict is not Verdict.NOT_TESTABLE:
            assert row.command.endswith("snakemake --cores 1 audit")
            assert row.recomputed
        elif row.id in excused:
            assert row.why == excused[row.id]
        else:
            assert NEEDS.match(row.why), row.why
    testable = {row.id for row in audit.rows if row.verdict is not Verdict.NOT_TESTABLE}
    assert testable == {
        "objective_grpo", "advantage", "gradient_grpo", "logit_coefficient", "objective_acpo", "table3", "table4",
        "welch",
    }  # fmt: skip


def by_id(audit: Audit) -> dict[str, tuple[Verdict, str]]:
    return {row.id: (row.verdict, row.why) for row in audit.rows}


def test_a_missing_cell_is_named(shipped: Study, tmp_path: Path) -> None:
    write_scores(tmp_path, shipped, lambda *_: 0.3)
    (tmp_path / "mini_cispo_offp.json").unlink()
    verdict, why = by_id(judge(evidence(tmp_path, shipped)))["table1a"]
    assert verdict is Verdict.NOT_TESTABLE
    assert "needs results/mini_cispo_offp.json; make it with: snakemake --cores 2 results/mini_cispo_offp.json" in why


def test_one_training_seed_infers_nothing(shipped: Study, tmp_path: Path) -> None:
    write_scores(tmp_path, shipped, lambda method, _: 0.4 if method == "acpo" else 0.3, seeds=(0,))
    verdict, why = by_id(judge(evidence(tmp_path, shipped)))["table1a"]
    assert verdict is Verdict.NOT_TESTABLE
    assert "two training seeds or more of mini_acpo_nonp and mini_ar_lopti_nonp (there is 1)" in why


def test_one_regime_shows_no_change_between_regimes(tmp_path: Path, values: dict[str, object]) -> None:
    values["grid"]["regimes"] = ["offp"]  # type: ignore[index]
    study = parse_study(values)
    write_scores(tmp_path, study, lambda *_: 0.3)
    verdict, why = by_id(judge(evidence(tmp_path, study)))["figure3"]
    assert verdict is Verdict.NOT_TESTABLE
    assert "needs two regimes in the grid" in why


def test_results_of_another_configuration_are_no_evidence(
    shipped: Study, tmp_path: Path, values: dict[str, object]
) -> None:
    write_scores(tmp_path, shipped, lambda *_: 0.3)
    write_logs(tmp_path, shipped, lambda *_: {})
    values["suites"]["mini"]["training"]["learning_rate"] = 1e-5  # type: ignore[index]
    found = by_id(judge(evidence(tmp_path, parse_study(values))))
    for claim in ("table1a", "figure2a"):
        assert found[claim][0] is Verdict.NOT_TESTABLE
        assert "of this configuration (it was made with another)" in found[claim][1]


def test_another_label_changes_no_evidence(shipped: Study, tmp_path: Path, values: dict[str, object]) -> None:
    write_scores(tmp_path, shipped, lambda method, _: 0.4 if method == "acpo" else 0.3)
    values["methods"]["acpo"]["label"] = "Adaptive"  # type: ignore[index]
    assert by_id(judge(evidence(tmp_path, parse_study(values))))["table1a"][0] is Verdict.REPRODUCED


def test_a_damaged_cell_is_refused_by_name(shipped: Study, tmp_path: Path) -> None:
    write_scores(tmp_path, shipped, lambda *_: 0.3)
    path = tmp_path / "mini_acpo_nonp.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(StoreError, match=r"mini_acpo_nonp\.json"):
        judge(evidence(tmp_path, shipped))


@pytest.mark.parametrize("content", ["{", "\xff not json", '{"statements": '])
def test_a_damaged_theory_file_is_refused_by_name(shipped: Study, tmp_path: Path, content: str) -> None:
    (tmp_path / "theory").mkdir()
    (tmp_path / "theory" / "statements.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(StoreError, match=r"statements\.json.*snakemake --cores 1 theory"):
        judge(evidence(tmp_path, shipped))


def test_a_cell_of_another_name_is_refused(shipped: Study, tmp_path: Path) -> None:
    write_cell(tmp_path, shipped, Cell("mini", "dapo", "nonp"), {0: 0.3, 1: 0.3})
    (tmp_path / "mini_dapo_nonp.json").rename(tmp_path / "mini_acpo_nonp.json")
    with pytest.raises(StoreError, match="expected 'mini_acpo_nonp'"):
        judge(evidence(tmp_path, shipped))


ENTRY = {"id": "x", "place": "Sec. 1", "kind": "claim", "statement": "s", "published": "p", "command": "audit"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"check": "acpo_leeds"}, "unknown check 'acpo_leeds'; did you mean 'acpo_leads'"),
        ({"check": "acpo_leads", "arguments": {"familly": "math"}}, "familly"),
        ({"check": "derivation"}, "statement"),
        ({}, "give a check, or a reason"),
        ({"check": "acpo_leads", "reason": "because"}, "give a check, or a reason"),
        ({"reason": "because", "command": "adit"}, "unknown command 'adit'; did you mean 'audit'"),
        ({"reason": "because", "verdict": "reproduced"}, "verdict"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Ledger.model_validate({"commands": {"audit": "snakemake audit"}, "entries": [ENTRY | changes]})


def test_no_two_entries_share_an_id() -> None:
    entry = ENTRY | {"reason": "because"}
    with pytest.raises(ValidationError, match="two entries have the id 'x'"):
        Ledger.model_validate({"commands": {"audit": "a"}, "entries": [entry, entry]})


def test_an_audit_survives_its_file(shipped: Study, tmp_path: Path) -> None:
    audit = judge(evidence(tmp_path, shipped))
    assert Audit.model_validate(json.loads(audit.model_dump_json())) == audit
