import re

import pytest

from acpo.data.fetch import find_in_mirror
from acpo.data.registry import SOURCES, source
from acpo.data.verify import DataError, found_hash, git_blob_id, verify
from acpo.errors import ConfigError
from acpo.tasks import load_task

NOT_IN_THE_MIRROR = {"orz57k", "hitab_train", "hitab_tables", "countdown"}


def test_every_source_is_pinned():
    for key, pinned in SOURCES.items():
        assert key == pinned.key
        assert re.fullmatch("[0-9a-f]{40}", pinned.revision), key
        assert bool(pinned.sha256) != bool(pinned.git_blob), key
        assert re.fullmatch("[0-9a-f]{64}", pinned.sha256 or "0" * 64)
        assert re.fullmatch("[0-9a-f]{40}", pinned.git_blob or "0" * 40)
        assert pinned.licence
        assert pinned.citation
        assert pinned.revision in pinned.url
        assert pinned.url.endswith(pinned.path)


def test_every_split_names_sources_that_exist():
    for name in ("math", "countdown", "hitab"):
        splits = vars(__import__(f"acpo.tasks.{name}", fromlist=["SPLITS"]))["SPLITS"]
        for split in splits:
            assert set(load_task(name).sources(split)) <= set(SOURCES)


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(ConfigError, match="math500"):
        source("maths500")


@pytest.mark.parametrize("key", sorted(set(SOURCES) - NOT_IN_THE_MIRROR))
def test_the_mirror_proves_the_hash(key, mirror):
    place = find_in_mirror(source(key), mirror)
    assert place is not None
    verify(source(key), place)


def test_the_mirror_has_nothing_else_to_prove(mirror):
    for key in NOT_IN_THE_MIRROR:
        assert find_in_mirror(source(key), mirror) is None


def test_a_git_blob_id_is_what_git_computes(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"hello\n")
    assert git_blob_id(file) == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_cut_off_file_is_not_taken_for_the_whole(mirror):
    place = find_in_mirror(source("orz57k_prefix"), mirror)
    assert found_hash(source("orz57k"), place) != source("orz57k").expected
    with pytest.raises(DataError, match="not the pinned file of orz57k"):
        verify(source("orz57k"), place)
