"""Files are whole or absent, and what is damaged is refused by name."""

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pydantic import BaseModel

from acpo.store import (
    StoreError,
    atomic_directory,
    atomic_file,
    read_json,
    read_table,
    write_json,
    write_table,
    write_text,
)

SCHEMA = pa.schema([("name", pa.string()), ("score", pa.float64())])
FRAME = pd.DataFrame({"name": [f"row {i}" for i in range(40)], "score": [i / 7 for i in range(40)]})


class Thing(BaseModel):
    name: str
    sizes: dict[str, int]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


class TestAtomicFile:
    def test_writes_and_replaces(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "file.txt"
        write_text(path, "one")
        write_text(path, "two")
        assert path.read_text() == "two"
        assert names(path.parent) == ["file.txt"]
        assert path.stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize("failure", [RuntimeError("writer"), KeyboardInterrupt()])
    def test_a_failing_writer_leaves_the_old_file(self, tmp_path: Path, failure: BaseException) -> None:
        path = tmp_path / "file.txt"
        write_text(path, "old")

        def write() -> None:
            with atomic_file(path) as temporary:
                temporary.write_text("half of the ne")
                raise failure

        with pytest.raises(type(failure)):
            write()
        assert path.read_text() == "old"
        assert names(tmp_path) == ["file.txt"]

    def test_nothing_is_there_before_the_end(self, tmp_path: Path) -> None:
        path = tmp_path / "file.txt"
        with atomic_file(path) as temporary:
            temporary.write_text("new")
            assert not path.exists()

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
    def test_a_failing_flush_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        path = tmp_path / "file.txt"
        write_text(path, "old")

        def fail(descriptor: int) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match=rf"^cannot write {path}: {os.strerror(code)}\. Nothing was left"):
            write_text(path, "new")
        assert path.read_text() == "old"
        assert names(tmp_path) == ["file.txt"]

    def test_flushed_before_renamed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, events, replace = tmp_path / "file.txt", [], Path.replace
        monkeypatch.setattr(os, "fsync", lambda descriptor: events.append("directory" if path.exists() else "file"))
        monkeypatch.setattr(Path, "replace", lambda self, to: (events.append("rename"), replace(self, to)))
        write_text(path, "new")
        assert events == ["file", "rename", "directory"]

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(StoreError, match=rf"cannot write {tmp_path}/file/x\.json: "):
            write_text(tmp_path / "file" / "x.json", "new")
        (tmp_path / "directory").mkdir()
        with pytest.raises(StoreError, match="cannot write"):
            write_text(tmp_path / "directory", "new")
        assert names(tmp_path) == ["directory", "file"]

    @pytest.mark.parametrize("kind", ["text", "table", "directory"])
    def test_a_full_disk(self, tmp_path: Path, kind: str) -> None:
        """A process whose files may not grow past 4 kB: the write itself fails, half-way."""
        path = tmp_path / "result"
        if kind == "directory":
            with atomic_directory(path) as temporary:
                (temporary / "part").write_text("old")
        else:
            write_text(path, "old")
        child = os.fork()
        if not child:  # pragma: no cover - another process
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            os._exit(_fill(path, kind))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        assert names(tmp_path) == ["result"]
        assert (path / "part" if kind == "directory" else path).read_text() == "old"


def _fill(path: Path, kind: str) -> int:
    try:
        if kind == "text":
            write_text(path, "x" * 100_000)
        elif kind == "table":
            write_table(path, pd.DataFrame({"noise": list(os.urandom(100_000))}))
        else:
            with atomic_directory(path) as temporary:
                (temporary / "part").write_bytes(os.urandom(100_000))
    except StoreError as error:
        told = str(error)
        return 17 if told.startswith(f"cannot write {path}: ") and "File too large. Nothing was left" in told else 1
    return 0


class TestAtomicDirectory:
    def test_is_replaced_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "model"
        for files in (("a", "b"), ("b", "c")):
            with atomic_directory(path) as temporary:
                for name in files:
                    (temporary / name).write_text(" ".join(files))
        assert names(tmp_path) == ["model"]
        assert {file.name: file.read_text() for file in path.iterdir()} == {"b": "b c", "c": "b c"}

    def test_a_failing_writer_leaves_the_old_one(self, tmp_path: Path) -> None:
        path = tmp_path / "model"
        with atomic_directory(path) as temporary:
            (temporary / "a").write_text("old")

        def write() -> None:
            with atomic_directory(path) as temporary:
                (temporary / "a").write_text("new")
                raise RuntimeError("writer")

        with pytest.raises(RuntimeError, match="writer"):
            write()
        assert names(tmp_path) == ["model"]
        assert (path / "a").read_text() == "old"

    def test_a_failing_flush_leaves_the_old_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "model"
        with atomic_directory(path) as temporary:
            (temporary / "a").write_text("old")

        def fail(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def write() -> None:
            with atomic_directory(path) as temporary:
                (temporary / "a").write_text("new")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match=rf"^cannot write {path}: No space left on device\."):
            write()
        assert (path / "a").read_text() == "old"
        assert names(tmp_path) == ["model"]

    def test_leftovers_of_a_killed_process_do_not_matter(self, tmp_path: Path) -> None:
        (tmp_path / ".model.old.tmp").mkdir()
        (tmp_path / ".model.old.tmp" / "a").write_text("stale")
        with atomic_directory(tmp_path / "model") as temporary:
            (temporary / "a").write_text("new")
        assert names(tmp_path) == ["model"]


class TestTables:
    def test_same_content_same_bytes(self, tmp_path: Path) -> None:
        write_table(tmp_path / "a.parquet", FRAME, SCHEMA)
        write_table(tmp_path / "b.parquet", FRAME.set_index(FRAME.index[::-1]), SCHEMA)
        assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
        pd.testing.assert_frame_equal(read_table(tmp_path / "a.parquet", SCHEMA), FRAME)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"score": [0.5]}, "column name: expected string, found no such column"),
            ({"name": [0.5], "score": ["b"]}, "column name: expected string, found double"),
            ({"name": [1], "score": [0.5]}, "column name: expected string, found int64"),
        ],
    )
    def test_another_schema_is_refused(self, tmp_path: Path, columns: dict[str, list[object]], message: str) -> None:
        path = tmp_path / "table.parquet"
        write_table(path, pd.DataFrame(columns))
        with pytest.raises(StoreError, match=rf"^{path}: {message}\. Delete the file and run"):
            read_table(path, SCHEMA)

    def test_truncation_anywhere_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "table.parquet"
        write_table(path, FRAME, SCHEMA)
        content = path.read_bytes()
        for length in range(0, len(content), 7):
            path.write_bytes(content[:length])
            with pytest.raises(StoreError, match=rf"^{path}: cannot be read"):
                read_table(path, SCHEMA)

    def test_a_flipped_bit_is_refused_or_harmless(self, tmp_path: Path) -> None:
        """Never another table, never another exception."""
        path = tmp_path / "table.parquet"
        write_table(path, FRAME, SCHEMA)
        content = path.read_bytes()
        accepted = []
        for position in range(len(content)):
            path.write_bytes(content[:position] + bytes([content[position] ^ 0x04]) + content[position + 1 :])
            try:
                found = read_table(path, SCHEMA)
            except StoreError:
                continue
            if not found.equals(FRAME):
                accepted.append(position)
        assert accepted == []

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match=r"absent\.parquet: no such file$"):
            read_table(tmp_path / "absent.parquet", SCHEMA)


class TestJson:
    def test_round_trip(self, tmp_path: Path) -> None:
        thing = Thing(name="ε", sizes={"a": 1})
        write_json(tmp_path / "thing.json", thing)
        assert read_json(tmp_path / "thing.json", Thing) == thing

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_what_json_cannot_say_is_refused(self, tmp_path: Path, value: float) -> None:
        write_json(tmp_path / "x.json", {"value": 1.0})
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "x.json", {"value": value})
        assert (tmp_path / "x.json").read_text() == '{\n "value": 1.0\n}\n'

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('{"name": "a"}', "sizes: Field required"),
            ('{"name": "a", "sizes": {"b": "many"}}', "sizes.b: Input should be a valid integer"),
            ('{"name": 5, "sizes": {}}', "name: Input should be a valid string"),
            ('{"name": "a", "siz', "the whole file: Invalid JSON"),
            ("", "the whole file: Invalid JSON"),
        ],
    )
    def test_the_field_is_named(self, tmp_path: Path, content: str, message: str) -> None:
        path = tmp_path / "thing.json"
        path.write_text(content)
        with pytest.raises(StoreError) as caught:
            read_json(path, Thing)
        assert str(caught.value).startswith(f"{path}: {message}")
        assert "delete it and run the same command again" in str(caught.value)

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_bytes(b"\xff\xfe\x80")
        with pytest.raises(StoreError, match=r"x\.json: cannot be read"):
            read_json(tmp_path / "x.json", Thing)
        with pytest.raises(StoreError, match="cannot be read"):
            read_json(tmp_path, Thing)


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")
    program = (
        "import os, signal, sys; from pathlib import Path; from acpo.store import atomic_file\n"
        "with atomic_file(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
