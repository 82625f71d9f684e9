"""Nodes of a cluster have no network: only the local rules that fetch may use one, and only their code can."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import ROOT, SMALL, command, environment
from tests.workflow.test_dag import RULES

SPEAKING = {
    *("http.client", "urllib.request", "ftplib", "requests", "httpx", "aiohttp"),
    *("huggingface_hub.hf_hub_download", "huggingface_hub.snapshot_download", "huggingface_hub.HfApi"),
}
FETCHING = {"acpo.data.download.download", "acpo.data.fetch.fetch", "acpo.data.model_files.fetch_model"}


def imports(file: Path) -> set[str]:
    """List the modules and names that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    return found


def test_one_corner_of_the_code_speaks_to_a_network_and_fetching_scripts_alone_call_it() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]
    speaking = {file.stem for file in files if imports(file) & SPEAKING}
    assert speaking == {"download", "fetch", "model_files"}
    calling = {file.stem for file in files if imports(file) & FETCHING and file.parent.name != "data"}
    assert calling == {file.stem for file in (ROOT / "scripts").glob("fetch_*.py")}


def test_fetching_rules_are_local_and_the_only_ones_that_may() -> None:
    local = set(re.findall(r"^    (\w+),$", "".join(re.findall(r"^localrules:\n((?: .*\n)+)", RULES, re.M)), re.M))
    rules = {text.split(":")[0]: text for text in re.split(r"^rule ", RULES, flags=re.MULTILINE)[1:]}
    fetching = {name for name, text in rules.items() if re.search(r"/fetch_\w+\.py", text)}
    assert fetching
    assert fetching <= local
    assert {"all", "make_table", "plot_figure", "make_report"} < local
    assert not {"train_policy", "sample_responses", "grade_samples", "make_base"} & local
    assert {name for name, text in rules.items() if "HF_HUB_OFFLINE=0" in text} == fetching


@pytest.mark.slow
def test_a_study_without_any_network(tmp_path: Path) -> None:
    """In a name space of its own with no interface up, not even the loopback one."""
    alone = ["unshare", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot make a network name space here; tests/slurm refuses connections in Python instead")
    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**SMALL, "grid": {"methods": ["acpo"], "regimes": ["offp"]}}))
    line = command(tmp_path, "--cores", "2", "--configfile", str(tmp_path / "small.yaml"))
    done = subprocess.run([*alone, *line], capture_output=True, text=True, env=environment(), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "results/report.html").exists()
