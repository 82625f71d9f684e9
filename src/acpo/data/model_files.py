"""Published models: fetched at a pinned commit, every file hashed, safetensors only; a suite's base run links to them.

A model lies in `results/models/<name>/` with a manifest, written last, of the commit and the sha256 of every file. What
a file must be is said, in this order, by the configuration, by the manifest of a mirror, by the hub at that commit; a
file that none of them knows is taken as it is at the first fetch and verified ever after.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acpo.data.fetch import fetch
from acpo.data.registry import Source
from acpo.data.verify import DataError, found_hash
from acpo.provenance import file_hash
from acpo.results import Record
from acpo.sections import HubModel
from acpo.store import read_json, write_json

MANIFEST = "manifest.json"
HUB = "https://huggingface.co"
_WANTED = re.compile(r"[A-Za-z0-9][\w.-]*\.(safetensors|json|txt|jinja|model)|LICENSE")
_NEEDED = ("config.json", "tokenizer_config.json")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


class ModelManifest(Record):
    """`manifest.json`: where a model comes from and what each of its files is; `notes` say what could not be known."""

    schema_version: Literal[1] = 1
    name: str
    repository: str
    commit: str | None
    origin: Literal["mirror", "hub"]
    sha256: dict[str, str]
    notes: list[str]


@dataclass(frozen=True)
class HubFile(Source):
    """A file of a model repository; a mirror has it as `models/<name>/<path>`."""

    endpoint: str = HUB

    @property
    def relative_path(self) -> str:
        """See `Source.relative_path`."""
        return f"models/{self.key}/{self.path}"

    @property
    def url(self) -> str:
        """See `Source.url`."""
        return f"{self.endpoint}/{self.repository}/resolve/{self.revision}/{self.path}"


def fetch_model(
    name: str, model: HubModel, directory: Path, mirror: Path | None = None, endpoint: str = HUB
) -> ModelManifest:
    """Place a model's files in `directory`, the manifest last; what is there already and right is kept.

    Args:
        name: Its name in the configuration.
        model: Its repository, commit and known hashes.
        directory: Where to.
        mirror: A directory with `models/<name>/`; if it has that, the network is not used.
        endpoint: Address of the hub.

    Raises:
        DataError: not to be had, not what was pinned, incomplete, in a format that runs code, or in need of code of
            its own; files that were verified stay for the next try.
        StoreError: the disk refuses.
    """
    (directory / MANIFEST).unlink(missing_ok=True)
    place = mirror / "models" / name if mirror is not None else None
    in_mirror = place is not None and place.is_dir()
    notes: list[str] = []
    if place is not None and in_mirror:
        commit, files = _of_mirror(name, model, place, notes)
    else:
        commit, files = _of_hub(name, model, endpoint)
    if model.revision is None:
        notes.append(f"not pinned: models.{name}.revision is null; at the first fetch it was {commit or 'unknown'}")
    _check_names(name, model, [file.path for file in files], files[0].url if files else model.repository)
    for file in files:
        target = directory / file.path
        if target.exists() and not _is(file, target):
            target.unlink()
        fetch(file, target, mirror if in_mirror else None)
    _check_content(name, directory)
    kept = {file.path for file in files}
    for stale in directory.iterdir():
        if stale.name not in kept:
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
    hashes = {file.path: file.sha256 or file_hash(directory / file.path) for file in files}
    manifest = ModelManifest(
        name=name, repository=model.repository, commit=commit, origin="mirror" if in_mirror else "hub",
        sha256=hashes, notes=notes,
    )  # fmt: skip
    for note in notes:
        print(f"warning: {directory}: {note}", file=sys.stderr)
    write_json(directory / MANIFEST, manifest)
    return manifest


def verify_model(name: str, model: HubModel, directory: Path) -> ModelManifest:
    """Check every file of a fetched model; one whose commit is not known passes by its hashes, as its manifest says.

    Raises:
        DataError: of another repository or commit than configured, or a file is missing, changed or too many.
        StoreError: no manifest.
    """
    manifest = read_json(directory / MANIFEST, ModelManifest)
    pinned = (None, manifest.commit) if manifest.commit else (None, model.revision)
    remedy = f"delete {directory} and fetch again"
    if manifest.repository != model.repository or model.revision not in pinned:
        raise DataError(
            f"{directory}: is {manifest.repository} at {manifest.commit}, models.{name} says {model.repository} at "
            f"{model.revision}: {remedy}"
        )
    there = {file.name for file in directory.iterdir()} - {MANIFEST}
    for path in sorted(there ^ manifest.sha256.keys()):
        raise DataError(f"{directory / path}: {'not in' if path in there else 'missing, but in'} {MANIFEST}: {remedy}")
    for path, expected in (manifest.sha256 | model.files).items():
        found = file_hash(directory / path)
        if found != expected:
            raise DataError(f"{directory / path}: damaged: expected sha256 {expected}, found {found}: {remedy}")
    return manifest


def _of_mirror(name: str, model: HubModel, place: Path, notes: list[str]) -> tuple[str | None, list[HubFile]]:
    """List a mirror's files with the hashes that its manifest, if it has one, and the configuration say."""
    names = sorted(path.name for path in place.iterdir() if path.is_file())
    if (place / MANIFEST).is_file():
        manifest = read_json(place / MANIFEST, ModelManifest)
        if manifest.repository != model.repository or model.revision not in (None, manifest.commit):
            raise DataError(
                f"{place}: is {manifest.repository} at {manifest.commit}, models.{name} says {model.repository} at "
                f"{model.revision}: correct the mirror or the configuration"
            )
        commit, known = manifest.commit, manifest.sha256
        missing = sorted(known.keys() - set(names))
        if missing:
            raise DataError(f"{place}: {missing[0]} is in its {MANIFEST} but not there: complete the mirror")
        names = sorted(known)
    else:
        commit, known = None, {}
        notes.append(f"the mirror has no {MANIFEST}: its files were taken as they were, their commit is not known")
    known = known | model.files
    paths = [path for path in names if _WANTED.fullmatch(path) and path != MANIFEST]
    if not any(path.endswith(".safetensors") for path in paths):
        _refuse_formats(str(place), names)
    return commit, [
        HubFile(
            name, model.repository, commit or "unknown", path, 0, "", "",
            sha256=known.get(path) or file_hash(place / path),
        )
        for path in paths
    ]  # fmt: skip


def _of_hub(name: str, model: HubModel, endpoint: str) -> tuple[str, list[HubFile]]:
    """List a repository's files at the pinned commit, or the newest, with the hashes that the hub states."""
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        info = HfApi(endpoint=endpoint).model_info(
            model.repository, revision=model.revision or "main", files_metadata=True, timeout=30
        )
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        first = str(error).strip().splitlines()
        raise DataError(
            f"{endpoint}/{model.repository}: the hub cannot be reached or refuses ({type(error).__name__}: "
            f"{first[0] if first else ''}). Check the network, or put the files into a mirror directory as "
            f"models/{name}/ and give it with --config mirror=<directory>"
        ) from error
    if info.sha is None or model.revision not in (None, info.sha):
        raise DataError(f"{model.repository}: asked for the commit {model.revision}, the hub answers with {info.sha}")
    siblings = info.siblings or []
    wanted = [sibling for sibling in siblings if _WANTED.fullmatch(sibling.rfilename) and sibling.rfilename != MANIFEST]
    if not any(sibling.rfilename.endswith(".safetensors") for sibling in wanted):
        _refuse_formats(model.repository, [sibling.rfilename for sibling in siblings])
    return info.sha, [
        HubFile(
            name, model.repository, info.sha, sibling.rfilename, 0, "", "", size=sibling.size,
            sha256=model.files.get(sibling.rfilename) or (sibling.lfs.sha256 if sibling.lfs else None),
            git_blob=sibling.blob_id, endpoint=endpoint,
        )
        for sibling in wanted
    ]  # fmt: skip


def _refuse_formats(origin: str, names: Iterable[str]) -> None:
    pickled = sorted(name for name in names if name.endswith(_PICKLED))
    reason = f"has its weights only as {pickled[0]}, which can run code" if pickled else "has no safetensors file"
    raise DataError(f"{origin}: {reason}: choose a model with safetensors")


def _check_names(name: str, model: HubModel, paths: list[str], origin: str) -> None:
    """Refuse a listing that lacks what a model needs or what the configuration names."""
    for needed in (*_NEEDED, *model.files):
        if needed not in paths:
            raise DataError(f"models.{name}: {needed} is not among the files of {origin.rsplit('/', 1)[0]}")


def _is(file: HubFile, path: Path) -> bool:
    return found_hash(file, path) == file.expected


def _check_content(name: str, directory: Path) -> None:
    """Refuse a model that needs code of its own, or whose index names weights that are not there."""
    index = directory / "model.safetensors.index.json"
    try:
        configs = {path: json.loads((directory / path).read_text(encoding="utf-8")) for path in _NEEDED}
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()) if index.exists() else set()
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(f"{directory}: its configuration or the index of its weights is damaged ({error})") from error
    for path, config in configs.items():
        if "auto_map" in config:
            raise DataError(f"models.{name}: its {path} asks to run code from the repository (auto_map): refused")
    for shard in sorted(map(str, shards)):
        if Path(shard).name != shard or not (directory / shard).is_file():
            raise DataError(f"models.{name}: {shard} is in the index of its weights, but not among its files")
