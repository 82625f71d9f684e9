"""The report in a real browser: sort, filter, choose a question, compare two cells, by keyboard where it matters."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from explorer_fixtures import HOSTILE, PROMPT, QUESTIONS

from acpo.cells import Cell
from acpo.report.explorer.questions import read_graded
from acpo.report.explorer.responses import pack_responses
from acpo.report.page import render_report
from acpo.report.sources import Results

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def written(explored: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(render_report(explored), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser: Browser, written: Path) -> Iterator[Browser]:
    """The report, just opened. No test may make it complain, ask for anything outside, or run what a model wrote."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.call("Page.navigate", url="about:blank")
    browser.open(written)
    yield browser
    assert browser.complaints == []
    assert all(address.startswith(("file:", "data:", "blob:", "about:")) for address in browser.requests)
    assert sum(address.startswith("file:") for address in browser.requests) == 1
    assert browser.run("document.title") == "Study report"


def column(page: Browser, title: str, number: int) -> list[str]:
    """Read a column of the table of that title."""
    script = f"""[...document.querySelector('table[data-title="{title}"]').tBodies[0].rows]
        .map((row) => row.cells[{number}].textContent)"""
    return page.run(script)


def focus(page: Browser, selector: str) -> None:
    page.run(f"document.querySelector({json.dumps(selector)}).focus()")


def test_keyboard_sorts_a_table(page: Browser) -> None:
    button = 'table[data-title="Cells"] th:nth-child(6) button'
    before = column(page, "Cells", 5)
    focus(page, button)
    page.press("Enter")
    assert page.run(f"document.querySelector('{button}').closest('th').ariaSort") == "ascending"
    assert column(page, "Cells", 5) == sorted(before, key=float)
    page.press("Enter")
    assert page.run(f"document.querySelector('{button}').closest('th').ariaSort") == "descending"
    assert column(page, "Cells", 5) == sorted(before, key=float, reverse=True)
    focus(page, 'table[data-title="Cells"] th:nth-child(1) button')
    page.press("Enter")
    assert page.run("document.querySelectorAll('table[data-title=\"Cells\"] [aria-sort]').length") == 1
    assert column(page, "Cells", 0) == sorted(column(page, "Cells", 0))


def test_numbers_sort_by_their_value_not_by_their_print(page: Browser) -> None:
    page.choose("compare-a", "mini_base")
    page.choose("compare-b", "mini_acpo_offp")
    focus(page, "#compare-list th:nth-child(4) button")
    page.press("Enter")
    texts = column(page, "Questions that changed", 3)
    page.run(
        "[...document.querySelectorAll('#compare-list .dt-paging button')].find((b) => b.innerText === '2').click()"
    )
    changes = [float(text) for text in texts + column(page, "Questions that changed", 3)]
    assert (len(changes), changes) == (QUESTIONS, sorted(changes))
    assert len({change for change in changes if change < 0}) > 1  # as text "-12.5" comes before "-50.0"
    focus(page, 'table[data-title="Comparisons"] th:nth-child(5) button')
    page.press("Enter")
    differences = [float(text) for text in column(page, "Comparisons", 4)]
    assert differences == sorted(differences) != sorted(differences, reverse=True)


def test_words_and_choices_filter_a_table(page: Browser) -> None:
    focus(page, 'input[aria-label="Filter Cells"]')
    page.press(*"acpo offp")
    assert set(column(page, "Cells", 0)) == {"mini_acpo_offp"}
    bar = "document.querySelector('input[aria-label=\"Filter Cells\"]').closest('.controls')"
    assert page.run(f"{bar}.querySelector('output').textContent") == "2 of 9 rows"
    page.run(f"""(() => {{ const select = [...{bar}.querySelectorAll('label')]
        .find((label) => label.textContent.startsWith('Checkpoint')).querySelector('select');
        select.value = 'best'; select.dispatchEvent(new Event('change')); }})()""")
    assert column(page, "Cells", 4) == ["best"]


def test_verdicts_of_the_audit_are_filtered(page: Browser) -> None:
    assert len(column(page, "The ledger", 4)) == 4
    page.run("""(() => { const words = document.querySelector('input[aria-label="Filter The ledger"]');
        const select = words.closest('.controls').querySelector('select'); select.value = 'reproduced';
        select.dispatchEvent(new Event('change')); })()""")
    assert column(page, "The ledger", 4) == ["reproduced"]


def test_a_question_is_chosen_and_its_responses_are_text(page: Browser) -> None:
    page.choose("questions-cell", "mini_acpo_offp")
    page.choose("questions-checkpoint", "best")
    page.choose("questions-seed", "1")
    assert page.run("document.querySelector('#questions-list th:nth-child(4)').textContent") == "Right of 4, seed 1"
    focus(page, "#questions-list tbody a")
    page.press("Enter")
    page.wait_for("!document.getElementById('question').hidden")
    assert page.run("document.querySelector('#question h3').textContent") == (
        "q0: mini_acpo_offp, seed 1, best checkpoint"
    )
    assert page.run("document.activeElement.id") == "question"
    responses = page.run("[...document.querySelectorAll('#question td pre')].map((node) => node.textContent)")
    assert responses[0] == "acpo tries 1 + 0 = 1 , 0 yes"
    assert responses[1] == HOSTILE
    assert page.run("document.querySelector('#question pre.prompt').textContent") == PROMPT
    assert page.run("document.querySelectorAll('#question img, #question b, #question-list img').length") == 0
    assert page.run("document.querySelectorAll('img[src=x]').length") == 0
    verdicts = page.run("[...document.querySelectorAll('#question tbody tr')].map((row) => row.className)")
    assert len(verdicts) == 4
    assert set(verdicts) <= {"right", "wrong"}


def test_two_cells_are_compared_and_lead_to_their_responses(page: Browser, explored: Results) -> None:
    page.choose("compare-a", "mini_acpo_nonp")
    page.choose("compare-b", "mini_dapo_nonp")
    tallies = read_graded(explored).evidence.tallies
    ours, theirs = (tallies[Cell("mini", method, "nonp"), "test", "last"] for method in ("acpo", "dapo"))
    change = 100 * (ours.question_means.mean(0) - theirs.question_means.mean(0))
    facts = page.run("document.getElementById('compare-summary').textContent")
    assert f"{change.mean():+.2f} (95 % interval" in facts
    assert f"A better on {(change > 0).sum()}, B better on {(change < 0).sum()}" in facts
    assert "mini_acpo_nonp - mini_dapo_nonp" in facts
    shown = [float(text) for text in column(page, "Questions that changed", 4)]
    assert shown == pytest.approx(sorted(abs(change), reverse=True)[: len(shown)], abs=0.05)
    focus(page, "#compare-list tbody td:nth-child(7) a")
    page.press("Enter")
    page.wait_for("!document.getElementById('question').hidden")
    question = page.run("document.querySelector('#compare-list tbody td').textContent")
    assert page.run("document.querySelector('#question h3').textContent") == (
        f"{question}: mini_dapo_nonp, seed 0, last checkpoint"
    )
    assert page.run("document.getElementById('questions-cell').value") == "mini_dapo_nonp"


def test_swapped_cells_mirror_the_comparison(page: Browser) -> None:
    words = "document.querySelector('#compare-summary dd').textContent"
    page.choose("compare-a", "mini_acpo_offp")
    page.choose("compare-b", "mini_base")
    forward = page.run(words)
    page.choose("compare-a", "mini_base")
    page.choose("compare-b", "mini_acpo_offp")
    assert page.run(words).split()[0] == "-" + forward.split()[0].removeprefix("+")
    page.choose("compare-b", "mini_base")
    assert "two different cells" in page.run("document.getElementById('compare-summary').textContent")


def test_curves_follow_the_choices(page: Browser, explored: Results) -> None:
    traces = "document.getElementById('curves-plot').data"
    assert page.run(f"{traces}.length") == 2 * 2 * 2  # regimes x methods x (band, mean)
    page.choose("curves-quantity", "reward_mean")
    drawn = page.run(f"{traces}.filter((trace) => trace.name === 'ACPO').map((trace) => [...trace.y])")
    logs = explored.rollouts(Cell("mini", "acpo", "nonp"))
    expected = np.mean([log["reward_mean"].to_numpy() for log in logs.values()], axis=0)
    assert drawn[0] == pytest.approx(expected.tolist(), rel=1e-5)
    page.run("document.getElementById('curves-seeds').click()")
    assert page.run(f"{traces}.length") == 2 * 2 * (2 + 2)
    focus(page, "#curves-methods input[value=dapo]")
    page.press(" ")
    assert page.run(f"{traces}.length") == 2 * (2 + 2)
    assert page.run("document.getElementById('dynamics-plot').data.length") == 5 * (2 + 2)
    assert page.run("document.getElementById('curves-plot').getAttribute('aria-label')")


def test_dark_pages_have_dark_plots(page: Browser) -> None:
    colour = "document.getElementById('curves-plot').layout.font.color"
    page.dark(False)
    light = page.run(colour)
    page.dark(True)
    page.wait_for(f"{colour} !== '{light}'")
    page.dark(False)
    page.wait_for(f"{colour} === '{light}'")


def test_every_control_has_a_name_and_is_reached_by_keyboard(page: Browser) -> None:
    unnamed = page.run("""[...document.querySelectorAll('main input, main select, main button, main a')]
        .filter((node) => !(node.ariaLabel || node.labels?.[0]?.textContent.trim() || node.textContent.trim()))
        .map((node) => node.outerHTML)""")
    assert unnamed == []
    assert page.run("document.querySelectorAll('main button:not([tabindex=\"-1\"])').length") > 50
    focus(page, "#questions-cell")
    page.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.run("document.activeElement.id") != "questions-cell"
    assert page.run(outline) == "solid"


def test_a_link_opens_its_question(browser: Browser, written: Path) -> None:
    browser.complaints.clear()
    browser.call("Page.navigate", url="about:blank")
    asked = "place=mini%2Ftest&cell=mini_dapo_offp&checkpoint=last&seed=1&question=q3"
    browser.open(written, f"#question?{asked}")
    browser.wait_for("!document.getElementById('question').hidden")
    assert browser.run("document.querySelector('#question h3').textContent") == (
        "q3: mini_dapo_offp, seed 1, last checkpoint"
    )
    browser.run("location.hash = '#question?place=mini%2Ftest&cell=nonsense&checkpoint=x&seed=9&question=%3Cimg%3E'")
    browser.wait_for("document.querySelector('#question h3').textContent.startsWith('<img>')")
    assert "no responses" in browser.run("document.getElementById('question').textContent")
    assert browser.complaints == []


def test_questions_beyond_the_budget_are_listed_without_a_link(
    browser: Browser, explored: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acpo.report.page.pack_responses", lambda results, found: pack_responses(results, found, 3000))
    path = tmp_path / "small.html"
    path.write_text(render_report(explored), encoding="utf-8")
    browser.open(path)
    kept = pack_responses(explored, read_graded(explored), 3000).shown["mini", "test"]
    focus(browser, 'input[aria-label="Filter Questions"]')
    browser.press(*"in this file")
    assert sorted(column(browser, "Questions", 0)) == sorted(kept)
    assert browser.run("document.querySelectorAll('#questions-list tbody a').length") == len(kept) < QUESTIONS


def test_without_a_script_the_page_still_reads(browser: Browser, written: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=written.as_uri())
        browser.wait_for("document.querySelectorAll('table').length > 5 && document.readyState === 'complete'")
        shown = (
            """(selector) => [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility()).length"""
        )
        assert browser.run(f"({shown})('.interactive')") == 0
        assert browser.run(f"({shown})('.without-script')") >= 4
        assert browser.run(f"({shown})('table[data-title=\"Comparisons\"] tbody tr')") == 8
        assert browser.run(f"({shown})('figure.plot img')") >= 7
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_an_empty_study_starts_too(browser: Browser, explored: Results, tmp_path: Path) -> None:
    browser.complaints.clear()
    path = tmp_path / "empty.html"
    path.write_text(render_report(Results(explored.study, tmp_path / "nothing")), encoding="utf-8")
    browser.open(path)
    assert browser.complaints == []
    assert "snakemake --cores 2 statistics" in browser.run("document.getElementById('comparisons').textContent")
