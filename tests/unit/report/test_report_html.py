"""The HTML report: one file, offline, complete; also opened in a real browser."""

import re
import subprocess
import sys
from contextlib import closing
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from report_fixtures import METHODS, fill, study_values

from acpo.config import Study, parse_study
from acpo.report import details, registry
from acpo.report.explorer.libraries import libraries
from acpo.report.gaps import missing_cells
from acpo.report.page import render_report
from acpo.report.sources import Results

SCRIPTS = Path(__file__).parents[3] / "scripts"
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Collects tags with attributes and checks that they nest."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_nothing_is_loaded_from_elsewhere(report: str) -> None:
    page = Page(report)
    for _, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), value
    assert "http" not in re.sub(r'data:[^"]*|http-equiv', "", report)
    assert "url(" not in report
    assert "@import" not in report


def test_only_the_pages_own_scripts_may_run(report: str) -> None:
    page = Page(report)
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv"))
    assert policy is not None
    allowed = next(part for part in policy.split(";") if "script-src" in part).split()[1:]
    scripts = [script for script in page.all("script") if "type" not in script]
    assert len(scripts) == 1
    assert len(allowed) == len(set(allowed)) == 1 + len(libraries())
    assert all(source.startswith("'sha256-") for source in allowed)
    assert "default-src 'none'" in policy


def test_structure_is_accessible(report: str) -> None:
    page = Page(report)
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1
    assert all(image["alt"] for image in page.all("img"))
    assert all(head.get("scope") for head in page.all("th"))
    scrolling = [box for box in page.all("div") if "scroll" in (box.get("class") or "")]
    assert all(box["tabindex"] == "0" and box["aria-label"] for box in scrolling)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in page.all("a") if link["href"]} <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_it_shows_the_study(report: str) -> None:
    for label in METHODS.values():
        assert label in report
    assert "12 of 13" in report
    assert "Mini-Countdown, CISPO, OffP." in report
    for origin in ("c0ffee0123456789", "deadbeef01234567", "0123456789abcdef", "5.10.4", "Linux-x86_64"):
        assert origin in report
    assert len(Page(report).all("img")) == len(registry.figure_names())
    assert len(report) < 10_000_000


@pytest.mark.slow
@pytest.mark.slow
def test_same_inputs_same_bytes(results: Results) -> None:
    assert render_report(results) == render_report(Results(results.study, results.root))


def test_labels_are_escaped(tmp_path: Path) -> None:
    values = study_values()
    values["methods"]["dapo"]["label"] = "<script>alert(1)</script>"
    report = render_report(Results(parse_study(values), tmp_path))
    assert "<script>alert" not in report
    assert "&lt;script&gt;alert" in report


def test_an_empty_results_folder_is_a_report_too(tmp_path: Path, study: Study) -> None:
    report = render_report(Results(study, tmp_path))
    assert "0 of 13" in report
    assert "No cell has a result yet." in report
    Page(report)


def test_details_of_a_cell(results: Results) -> None:
    rows = details.score_rows(results)
    row = next(row for row in rows if (row.cell, row.checkpoint) == ("mini_ar_lopti_nonp", "last"))
    # Level 0.25 + 0.007 = 0.257 for seed 0, then 0.261, 0.265: mean 0.261, SD 0.004, SE 0.004 / sqrt(3).
    assert (row.avg, row.seed_sd, row.seed_standard_error) == ("26.10", "0.40", "0.23")
    seed = row.seeds[1]
    assert (seed.avg, seed.standard_error, seed.truncation, seed.extraction) == (
        "26.10",
        "1.10",
        "1.25",
        "99.00",
    )
    assert (seed.tokens, seed.wall, seed.pass_at_k) == (
        "27.3",
        "32.2 s",
        {1: "26.10", 2: "34.10", 4: "41.10"},
    )
    base = next(row for row in rows if row.cell == "mini_base")
    assert (base.regime, base.seed_sd) == ("–", "–")


def test_gaps_name_cells_and_seeds(tmp_path: Path) -> None:
    values = study_values()
    results = fill(tmp_path, parse_study(values), leave_out=("mini_dapo_nonp",), logs=False)
    values["seeds"] = [0, 1, 2, 7]
    gaps = {gap.name: gap.lacking for gap in missing_cells(Results(parse_study(values), results.root))}
    assert gaps["mini_dapo_nonp"] == "no result"
    assert gaps["mini_acpo_nonp"] == "no training seed 7"
    assert "mini_base" not in gaps


@pytest.mark.parametrize(
    ("seconds", "printed"), [(None, "–"), (31.24, "31.2 s"), (245.0, "4 min 05 s"), (7380.0, "2 h 03 min")]
)
def test_duration(seconds: float | None, printed: str) -> None:
    assert details.duration(seconds) == printed


def run_script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_scripts_write_what_they_promise(config: Path, results: Results, tmp_path: Path) -> None:
    common = ("--config", config, "--results", results.root)
    out = tmp_path / "out"
    runs = [
        run_script("make_table.py", *common, "--table", "table1", "--output-dir", out),
        run_script("plot_figure.py", *common, "--figure", "figure7", "--output-dir", out),
        run_script("make_report.py", *common, "--output", out / "report.html"),
    ]
    assert [(done.returncode, done.stderr) for done in runs] == [(0, "")] * 3
    assert sorted(path.name for path in out.iterdir()) == [
        "figure7_mini.pdf",
        "figure7_mini.png",
        "report.html",
        "table1.csv",
        "table1.html",
        "table1.tex",
    ]


def test_scripts_fail_in_one_line(config: Path, tmp_path: Path) -> None:
    common = ("--config", config, "--results", tmp_path)
    done = run_script("make_table.py", *common, "--table", "tabel1", "--output-dir", tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "error: unknown table 'tabel1'; did you mean 'table1'?\n",
    )
    (tmp_path / "mini_base.json").write_text('{"schema_version": 1, "cell"')
    done = run_script("make_report.py", *common, "--output", tmp_path / "report.html")
    assert done.returncode == 1
    assert "mini_base.json" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "report.html").exists()


WIDTH, HEIGHT = 1200, 9000
"""Of the browser's window: high enough for every figure."""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)")
def test_a_browser_shows_it_without_complaint(report: str, tmp_path: Path) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "shot.png"
    page.write_text(report, encoding="utf-8")
    with closing(Browser(tmp_path / "profile", WIDTH, HEIGHT)) as browser:
        browser.open(page)
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False
        )
        browser.picture(picture)
        assert browser.complaints == []
    assert_shows_content(picture)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)")
def test_the_browser_check_notices_a_complaint(report: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report.replace("</main>", "<script>document.title = 'no'</script></main>"), encoding="utf-8")
    with closing(Browser(tmp_path / "profile")) as browser:
        browser.open(page)
        assert "Content Security Policy" in browser.complaints[0]
        assert browser.run("document.title") == "Study report"


def assert_shows_content(picture: Path) -> None:
    """The page is not blank: dark ink at the top, and the figures' colours (ACPO's line) further down."""
    from matplotlib.image import imread

    pixels = imread(picture)[..., :3]
    assert pixels.shape[:2] == (HEIGHT, WIDTH)
    assert (pixels[:400].max(axis=2) < 0.4).sum() > 500
    acpo = (abs(pixels - (0.8, 0.475, 0.655)) < 0.05).all(axis=2)
    assert acpo[600:].sum() > 200
