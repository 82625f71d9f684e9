"""Published models: fetched from a mirror or a stub of the hub, verified, linked to; and what is refused."""

import hashlib
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
from safetensors.numpy import save_file
from small_study import ROOT, script

from acpo.cells import Cell
from acpo.config import Study, load_study
from acpo.data import model_files
from acpo.data.model_files import MANIFEST, ModelManifest, fetch_model, verify_model
from acpo.data.verify import DataError
from acpo.engines.published import file_hashes, link_base
from acpo.errors import ConfigError
from acpo.provenance import weights_hash
from acpo.results import RunRecord
from acpo.sections import HubModel
from acpo.store import StoreError, read_json

NAME, REPOSITORY, COMMIT = "qwen2_5_7b", "Qwen/Qwen2.5-7B", "d149729398750b98c0af14eb82c78cfe92750796"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def hub_model(**changes: Any) -> HubModel:
    model = load_study(ROOT / "config.yaml").models[NAME]
    return HubModel.model_validate(model.model_dump() | {"files": {}, "revision": COMMIT} | changes)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A model repository of two shards, with files that nobody needs."""
    place = tmp_path / "origin"
    place.mkdir()
    for number, shard in enumerate(SHARDS):
        save_file({f"weight{number}": np.full((600, 600), number, np.float32)}, place / shard)
    index = {"weight_map": {"weight0": SHARDS[0], "weight1": SHARDS[1]}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    (place / "config.json").write_text('{"model_type": "qwen2"}')
    (place / "tokenizer_config.json").write_text("{}")
    (place / "merges.txt").write_text("a b")
    (place / "README.md").write_text("not fetched")
    (place / "pytorch_model.bin").write_bytes(b"\x80")
    (place / "modeling.py").write_text("raise SystemExit")
    return place


WANTED = {*SHARDS, "model.safetensors.index.json", "config.json", "tokenizer_config.json", "merges.txt"}


@pytest.fixture
def mirror(files: Path, tmp_path: Path) -> Path:
    """The repository as a mirror without a manifest."""
    shutil.copytree(files, tmp_path / "mirror/models" / NAME)
    return tmp_path / "mirror"


class Hub:
    """Answers as the hub does for one repository; `cut` and `changed` name files that arrive short, or wrong."""

    def __init__(self, files: Path):
        self.files, self.commit, self.cut, self.changed, self.asked = files, COMMIT, set(), set(), []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.split("?")[0]
                outer.asked.append(path)
                if path.startswith(f"/api/models/{REPOSITORY}/revision/"):
                    self._send(json.dumps(outer.listing()).encode())
                    return
                name = path.removeprefix(f"/{REPOSITORY}/resolve/{outer.commit}/")
                if not (outer.files / name).is_file():
                    self._send(b"", 404)
                    return
                content = (outer.files / name).read_bytes()
                self._send(bytes(len(content)) if name in outer.changed else content, cut=name in outer.cut)

            def _send(self, body: bytes, status: int = 200, cut: bool = False) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if cut else body)
                self.close_connection = cut

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *arguments: None  # type: ignore[method-assign]
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def listing(self) -> dict[str, Any]:
        siblings = []
        for file in sorted(self.files.iterdir()):
            content = file.read_bytes()
            blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
            sibling = {"rfilename": file.name, "size": len(content), "blobId": blob}
            if file.suffix == ".safetensors":
                sibling["lfs"] = {
                    "sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1
                }  # fmt: skip
            siblings.append(sibling)
        return {"id": REPOSITORY, "sha": self.commit, "siblings": siblings, "private": False, "tags": []}


@pytest.fixture
def hub(files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("acpo.data.download.ATTEMPTS", 1)
    monkeypatch.setattr("acpo.data.download.download.__defaults__", (None, 1, lambda seconds: None))
    hub = Hub(files)
    threading.Thread(target=hub.server.serve_forever, daemon=True).start()
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


class TestFromTheHub:
    def test_fetches_what_a_model_needs_and_nothing_that_runs(self, hub: Hub, files: Path, tmp_path: Path) -> None:
        manifest = fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)
        assert {file.name for file in (tmp_path / "model").iterdir()} == WANTED | {MANIFEST}
        assert manifest.sha256 == {name: hashlib.sha256((files / name).read_bytes()).hexdigest() for name in WANTED}
        assert (manifest.commit, manifest.origin, manifest.notes) == (COMMIT, "hub", [])
        assert verify_model(NAME, hub_model(), tmp_path / "model") == manifest
        assert f"/api/models/{REPOSITORY}/revision/{COMMIT}" in hub.asked

    def test_without_a_commit_the_newest_is_taken_and_said(
        self, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        manifest = fetch_model(NAME, hub_model(revision=None), tmp_path / "model", endpoint=hub.address)
        assert manifest.commit == COMMIT
        note = f"not pinned: models.{NAME}.revision is null; at the first fetch it was {COMMIT}"
        assert manifest.notes == [note]
        assert f"warning: {tmp_path / 'model'}: {note}" in capsys.readouterr().err

    def test_another_commit_than_the_pinned_one_is_refused(self, hub: Hub, tmp_path: Path) -> None:
        hub.commit = "0" * 40
        with pytest.raises(DataError, match=f"asked for the commit {COMMIT}, the hub answers with 000"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)

    @pytest.mark.parametrize("name", [SHARDS[1], "merges.txt"])
    def test_a_file_that_is_not_what_the_hub_says_is_refused(self, hub: Hub, tmp_path: Path, name: str) -> None:
        hub.changed.add(name)
        with pytest.raises(DataError, match=rf"{name}\.part: not the pinned file"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)
        assert not (tmp_path / "model" / MANIFEST).exists()
        assert not (tmp_path / "model" / name).exists()

    def test_goes_on_after_an_interruption(self, hub: Hub, tmp_path: Path) -> None:
        hub.cut.add(SHARDS[1])
        with pytest.raises(DataError, match=f"{SHARDS[1]}: 1 attempts failed"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)
        assert not (tmp_path / "model" / MANIFEST).exists()
        hub.cut.clear()
        hub.asked.clear()
        fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)
        assert [path for path in hub.asked if SHARDS[0] in path] == []
        assert {file.name for file in (tmp_path / "model").iterdir()} == WANTED | {MANIFEST}

    def test_a_hash_in_the_configuration_goes_before_the_hubs_word(self, hub: Hub, tmp_path: Path) -> None:
        model = hub_model(files={SHARDS[0]: "1" * 64})
        with pytest.raises(DataError, match=f"expected sha256 {'1' * 64}"):
            fetch_model(NAME, model, tmp_path / "model", endpoint=hub.address)

    def test_no_hub(self, hub: Hub, tmp_path: Path) -> None:
        hub.server.shutdown()
        hub.server.server_close()
        with pytest.raises(DataError, match=rf"the hub cannot be reached or refuses .*models/{NAME}/ and give it with"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)

    def test_only_pickled_weights_are_refused(self, hub: Hub, files: Path, tmp_path: Path) -> None:
        for shard in SHARDS:
            (files / shard).unlink()
        with pytest.raises(DataError, match=r"weights only as pytorch_model\.bin, which can run code"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)

    def test_a_missing_shard_is_named(self, hub: Hub, files: Path, tmp_path: Path) -> None:
        (files / SHARDS[1]).unlink()
        with pytest.raises(DataError, match=f"{SHARDS[1]} is in the index of its weights, but not among its files"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)
        assert not (tmp_path / "model" / MANIFEST).exists()

    @pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
    def test_a_missing_configuration_is_named(self, hub: Hub, files: Path, tmp_path: Path, name: str) -> None:
        (files / name).unlink()
        with pytest.raises(DataError, match=f"models.{NAME}: {name} is not among the files"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)

    @pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
    def test_code_of_the_repository_is_refused(self, hub: Hub, files: Path, tmp_path: Path, name: str) -> None:
        (files / name).write_text('{"auto_map": {"AutoModel": "modeling.Model"}}')
        with pytest.raises(DataError, match=rf"its {name} asks to run code from the repository \(auto_map\): refused"):
            fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)


class TestFromAMirror:
    def test_needs_no_network_and_says_what_is_unknown(self, mirror: Path, tmp_path: Path) -> None:
        manifest = fetch_model(NAME, hub_model(), tmp_path / "model", mirror, endpoint="http://127.0.0.1:1")
        assert {file.name for file in (tmp_path / "model").iterdir()} == WANTED | {MANIFEST}
        assert (manifest.origin, manifest.commit) == ("mirror", None)
        assert manifest.notes[0].startswith("the mirror has no manifest.json")

    def test_a_fetched_model_is_a_mirror(self, hub: Hub, tmp_path: Path) -> None:
        first = fetch_model(NAME, hub_model(), tmp_path / "mirror/models" / NAME, endpoint=hub.address)
        again = fetch_model(NAME, hub_model(), tmp_path / "model", tmp_path / "mirror", endpoint="http://127.0.0.1:1")
        assert again == first.model_copy(update={"origin": "mirror"})

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda place: (place / SHARDS[0]).write_bytes(b"x"), f"{SHARDS[0]}: not the pinned file"),
            (lambda place: (place / SHARDS[0]).unlink(), rf"{SHARDS[0]} is in its manifest\.json but not there"),
        ],
    )
    def test_damage_is_refused(self, hub: Hub, tmp_path: Path, damage: Any, message: str) -> None:
        place = tmp_path / "mirror/models" / NAME
        fetch_model(NAME, hub_model(), place, endpoint=hub.address)
        damage(place)
        with pytest.raises(DataError, match=message):
            fetch_model(NAME, hub_model(), tmp_path / "model", tmp_path / "mirror")
        assert not (tmp_path / "model" / MANIFEST).exists()

    def test_another_commit_is_refused(self, hub: Hub, tmp_path: Path) -> None:
        fetch_model(NAME, hub_model(), tmp_path / "mirror/models" / NAME, endpoint=hub.address)
        with pytest.raises(DataError, match=rf"is {REPOSITORY} at {COMMIT}, models\.{NAME} says .* at 0000"):
            fetch_model(NAME, hub_model(revision="0" * 40), tmp_path / "model", tmp_path / "mirror")

    def test_a_file_that_the_configuration_names_must_be_there(self, mirror: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"vocab\.json is not among the files"):
            fetch_model(NAME, hub_model(files={"vocab.json": "1" * 64}), tmp_path / "model", mirror)

    def test_what_no_longer_belongs_is_removed_and_what_is_right_kept(self, mirror: Path, tmp_path: Path) -> None:
        directory = tmp_path / "model"
        fetch_model(NAME, hub_model(), directory, mirror)
        before = (directory / SHARDS[0]).stat().st_ino
        (directory / "old.safetensors").write_bytes(b"x")
        (directory / "merges.txt").write_text("damaged")
        fetch_model(NAME, hub_model(), directory, mirror)
        assert {file.name for file in directory.iterdir()} == WANTED | {MANIFEST}
        assert (directory / SHARDS[0]).stat().st_ino == before
        assert (directory / "merges.txt").read_text() == "a b"

    def test_by_the_script(self, mirror: Path, tmp_path: Path) -> None:
        done = script("fetch_model", "--model", NAME, "--output", tmp_path / "model", "--mirror", mirror)
        assert done.returncode == 0, done.stderr
        assert f"6 files of {REPOSITORY} at None" in done.stdout
        done = script("fetch_model", "--model", "qwen2_5_8b", "--output", tmp_path / "model", "--mirror", mirror)
        assert (done.returncode, done.stderr) == (
            1, "error: --model: no published model 'qwen2_5_8b'; did you mean 'qwen2_5_7b'?\n",
        )  # fmt: skip


class TestVerify:
    @pytest.fixture
    def directory(self, mirror: Path, tmp_path: Path) -> Path:
        fetch_model(NAME, hub_model(), tmp_path / "model", mirror)
        return tmp_path / "model"

    def test_one_changed_bit(self, directory: Path) -> None:
        content = bytearray((directory / SHARDS[1]).read_bytes())
        content[-1] ^= 1
        (directory / SHARDS[1]).write_bytes(content)
        with pytest.raises(DataError, match=rf"{SHARDS[1]}: damaged: expected sha256 .*delete .* and fetch again"):
            verify_model(NAME, hub_model(revision=None), directory)

    def test_a_missing_and_an_added_file(self, directory: Path) -> None:
        (directory / "merges.txt").rename(directory / "extra.txt")
        with pytest.raises(DataError, match=r"extra\.txt: not in manifest\.json"):
            verify_model(NAME, hub_model(revision=None), directory)
        (directory / "extra.txt").unlink()
        with pytest.raises(DataError, match=r"merges\.txt: missing, but in manifest\.json"):
            verify_model(NAME, hub_model(revision=None), directory)

    def test_no_manifest(self, directory: Path) -> None:
        (directory / MANIFEST).unlink()
        with pytest.raises(StoreError, match=r"manifest\.json: no such file"):
            verify_model(NAME, hub_model(revision=None), directory)

    def test_another_commit(self, hub: Hub, tmp_path: Path) -> None:
        fetch_model(NAME, hub_model(), tmp_path / "model", endpoint=hub.address)
        with pytest.raises(DataError, match=rf"is {REPOSITORY} at {COMMIT}, models\.{NAME} says {REPOSITORY} at 0000"):
            verify_model(NAME, hub_model(revision="0" * 40), tmp_path / "model")

    def test_a_hash_that_the_configuration_has_since_been_given(self, directory: Path) -> None:
        with pytest.raises(DataError, match=rf"merges\.txt: damaged: expected sha256 {'1' * 64}"):
            verify_model(NAME, hub_model(files={"merges.txt": "1" * 64}), directory)

    def test_an_unknown_commit_passes_and_is_recorded(self, directory: Path) -> None:
        manifest = verify_model(NAME, hub_model(), directory)
        assert manifest.commit is None
        assert all(name.startswith(f"{REPOSITORY}@unknown commit/") for name in file_hashes(hub_model(), manifest))
        unpinned = file_hashes(hub_model(revision=None), manifest)
        assert all(name.startswith(f"unpinned {REPOSITORY}@") for name in unpinned)


class TestLinkBase:
    BASE = Cell("orz", "base", None)

    @pytest.fixture
    def directory(self, hub: Hub, shipped: Study, tmp_path: Path) -> Path:
        model = shipped.models[NAME]
        assert isinstance(model, HubModel)
        fetch_model(NAME, model, tmp_path / "results/models" / NAME, endpoint=hub.address)
        return tmp_path / "results/models" / NAME

    def test_links_and_records_every_hash(self, shipped: Study, directory: Path, tmp_path: Path) -> None:
        run = tmp_path / "results/runs/orz_base/seed0"
        link_base(shipped, self.BASE, directory, run)
        record = read_json(run / "run.json", RunRecord)
        manifest = read_json(directory / MANIFEST, ModelManifest)
        assert record.provenance.data_hashes == {
            f"{REPOSITORY}@{COMMIT}/{name}": value for name, value in manifest.sha256.items()
        }
        assert record.checkpoints["last"].weights_sha256 == weights_hash(run / "last")
        assert (run / "last").is_symlink()
        assert (run / "last" / SHARDS[0]).samefile(directory / SHARDS[0])
        (tmp_path / "results").rename(tmp_path / "moved")
        assert (tmp_path / "moved/runs/orz_base/seed0/last/config.json").exists()

    def test_again_over_an_old_one(self, shipped: Study, directory: Path, tmp_path: Path) -> None:
        run = tmp_path / "results/runs/orz_base/seed0"
        (run / "last").mkdir(parents=True)
        for _ in range(2):
            link_base(shipped, self.BASE, directory, run)
        assert (run / "last").is_symlink()

    def test_a_damaged_model_is_not_linked(self, shipped: Study, directory: Path, tmp_path: Path) -> None:
        (directory / SHARDS[0]).write_bytes(b"x")
        with pytest.raises(DataError, match=f"{SHARDS[0]}: damaged"):
            link_base(shipped, self.BASE, directory, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_model_that_the_study_makes(self, shipped: Study, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"suites\.mini\.model: mini_decoder has no `source: hub`"):
            link_base(shipped, Cell("mini", "base", None), tmp_path, tmp_path)


def test_weights_of_several_files_have_one_hash(tmp_path: Path) -> None:
    """sha256 of what `sha256sum *.safetensors` prints."""
    (tmp_path / "b.safetensors").write_bytes(b"2")
    (tmp_path / "a.safetensors").write_bytes(b"1")
    listing = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in
                      [("a.safetensors", b"1"), ("b.safetensors", b"2")])  # fmt: skip
    assert weights_hash(tmp_path) == hashlib.sha256(listing.encode()).hexdigest()
    (tmp_path / "b.safetensors").unlink()
    assert weights_hash(tmp_path) == hashlib.sha256(b"1").hexdigest()
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(StoreError, match="no safetensors file"):
        weights_hash(tmp_path)


def test_names_stay_inside_the_directory() -> None:
    for name in ("../x.json", "a/b.json", ".hidden.json", "x.bin", "x.py", "x.json.py"):
        assert not model_files._WANTED.fullmatch(name), name
