"""Code hashes follow meaning, and a record says where a result comes from."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acpo import provenance
from acpo.cells import CellNames
from acpo.config import Study, digest
from acpo.provenance import Clock, code_hash, file_hash, training_modules

FILES = {
    "__init__.py": "",
    "top.py": '"""Doc."""\nfrom acpo.middle import half\n\n\ndef top(x):\n    """Doc."""\n    return half(x) + 1\n',
    "middle.py": "import acpo.bottom.deep\n\n\ndef half(x):\n    return acpo.bottom.deep.value(x) / 2\n",
    "bottom/__init__.py": "NAME = 'bottom'\n",
    "bottom/deep.py": "def value(x):\n    from acpo.late import LATE\n\n    return x + LATE\n",
    "late.py": "LATE = 1\n",
    "apart.py": "APART = 1\n",
}

Hash = Callable[..., str]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of its own in place of this one."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    provenance._meaning.cache_clear()
    yield tmp_path
    provenance._meaning.cache_clear()


def fresh(*modules: str) -> str:
    provenance._meaning.cache_clear()
    return code_hash(modules or ["acpo.top"])


class TestCodeHash:
    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("top.py", "return half(x) + 1", "return half(x) + 1  # a comment"),
            ("top.py", '    """Doc."""\n', '    """Other words."""\n'),
            ("top.py", '"""Doc."""\nfrom', "from"),
            ("top.py", "half(x) + 1", "(half( x )\n            + 1)"),
            ("middle.py", "\n\n\ndef", "\n\n\n\n# why\ndef"),
            ("bottom/deep.py", "def value(x):\n", 'def value(x):\n    """Doc."""\n'),
            ("apart.py", "APART = 1", "APART = 2"),
        ],
    )  # fmt: skip
    def test_words_and_layout_change_nothing(self, package: Path, file: str, old: str, new: str) -> None:
        before = fresh()
        changed = FILES[file].replace(old, new)
        assert changed != FILES[file]
        (package / file).write_text(changed)
        assert fresh() == before

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("top.py", "+ 1", "+ 2"),
            ("middle.py", "/ 2", "/ 3"),
            ("bottom/deep.py", "x + LATE", "x - LATE"),
            ("late.py", "LATE = 1", "LATE = 2"),
            ("late.py", "LATE = 1", "LATE = 1.0"),
            ("late.py", "LATE = 1", "LATE = '1'"),
            ("top.py", "def top(x)", "def top(x, y=1)"),
        ],
    )
    def test_code_that_is_reached_changes_it(self, package: Path, file: str, old: str, new: str) -> None:
        before = fresh()
        changed = FILES[file].replace(old, new)
        assert changed != FILES[file]
        (package / file).write_text(changed)
        assert fresh() != before

    def test_only_reached_modules_count(self, package: Path) -> None:
        assert fresh("acpo.top") != fresh("acpo.apart")
        assert fresh("acpo.top") != fresh("acpo.top", "acpo.apart")
        assert fresh("acpo.top", "acpo.middle") == fresh("acpo.middle", "acpo.top") == fresh("acpo.top")

    def test_a_module_that_is_not_there(self, package: Path) -> None:
        with pytest.raises(ValueError, match=r"acpo\.absent is not a module of this package"):
            fresh("acpo.absent")

    def test_swapping_two_modules_content_is_seen(self, package: Path) -> None:
        before = fresh("acpo.apart", "acpo.late")
        (package / "apart.py").write_text(FILES["late.py"])
        (package / "late.py").write_text(FILES["apart.py"])
        assert fresh("acpo.apart", "acpo.late") != before


class TestThisPackage:
    def reached(self, *modules: str) -> set[str]:
        provenance._meaning.cache_clear()
        code_hash(modules)
        waiting, reached = list(modules), set()
        while waiting:
            module = waiting.pop()
            if module not in reached:
                reached.add(module)
                waiting.extend(provenance._meaning(module)[1])
        return reached

    def test_one_method_does_not_reach_another(self) -> None:
        acpo = self.reached("acpo.objectives.acpo")
        assert {"acpo.objectives.binning", "acpo.objectives.clipping"} < acpo
        assert not {"acpo.objectives.dapo", "acpo.objectives.cispo"} & acpo

    def test_training_reaches_engine_task_and_objective(self, shipped: Study) -> None:
        names = CellNames(shipped)
        reached = self.reached(*training_modules(shipped, names.parse("mini_acpo_offp")))
        assert {
            "acpo.engines.tiny.model", "acpo.engines.tiny.sampler", "acpo.engines.tiny.supervised", "acpo.streams",
            "acpo.tasks.countdown_mini", "acpo.objectives.acpo", "acpo.objectives.advantage", "acpo.objectives.pooling",
        } < reached  # fmt: skip
        assert not {module for module in reached if module.startswith("acpo.report")}

    def test_verl_reaches_what_it_finds_by_name(self, shipped: Study) -> None:
        names = CellNames(shipped)
        ours = {"acpo.engines.verl.worker", "acpo.engines.verl.losses", "acpo.engines.verl.trainer"}
        ours |= {"acpo.engines.verl.transformers_rollout", "acpo.engines.verl.reward", "acpo.objectives.acpo"}
        on_a_gpu = self.reached(*training_modules(shipped, names.parse("orz_acpo_offp")))
        on_a_cpu = self.reached(*training_modules(shipped, names.parse("mini_verl_acpo_offp")))
        assert ours < on_a_gpu
        assert on_a_cpu - on_a_gpu == {"acpo.engines.verl.cpu", "acpo.tasks.countdown_mini"}
        assert "acpo.engines.tiny.supervised" not in on_a_gpu

    def test_bases_of_one_model_are_made_by_the_same_code(self, shipped: Study) -> None:
        names = CellNames(shipped)
        made = training_modules(shipped, names.parse("mini_verl_base"))
        assert made == training_modules(shipped, names.parse("mini_base"))
        assert "acpo.engines.tiny.supervised" in self.reached(*made)


def test_file_hash(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert file_hash(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2


def test_a_record_says_what_made_it() -> None:
    record = Clock().provenance({"a": 1}, ["acpo.streams"], {"data": "0" * 64})
    assert record.configuration_hash == digest({"a": 1})
    assert record.code_hash == code_hash(["acpo.streams"])
    assert len(record.git_commit) == 40 or record.git_commit == "not a git checkout"
    assert record.packages["torch"].startswith("2.")
    assert 0 <= record.wall_seconds < 60
    assert 20 < record.peak_memory_mb < 20_000
