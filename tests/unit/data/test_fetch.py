import errno
import hashlib
import http.server
import threading
from dataclasses import replace

import pytest

from acpo.data import download as download_module
from acpo.data import registry
from acpo.data.fetch import fetch
from acpo.data.registry import Source
from acpo.data.verify import DataError
from acpo.store import StoreError

CONTENT = bytes(range(256)) * 4000
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


class Server:
    """A local server whose answers a test chooses, one after the other; the last repeats."""

    def __init__(self):
        self.plan, self.requests = ["whole"], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append(self.headers.get("Range"))
                how = outer.plan.pop(0) if len(outer.plan) > 1 else outer.plan[0]
                getattr(self, how)()

            def whole(self):
                self._send(CONTENT)

            def ranged(self):
                wanted = self.headers.get("Range")
                start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
                extra = {"Content-Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"}
                self._send(CONTENT[start:], 206 if wanted else 200, extra)

            def cut(self):
                self._send(CONTENT[: len(CONTENT) // 3], length=len(CONTENT))
                self.close_connection = True

            def cut_without_length(self):
                self.send_response(200)
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(CONTENT[:1000])
                self.close_connection = True

            def wrong(self):
                self._send(b"x" * len(CONTENT))

            def page(self):
                self._send(PAGE)

            def missing(self):
                self._send(b"", 404)

            def busy(self):
                self._send(b"", 503)

            def _send(self, body, status=200, extra=None, length=None):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                for key, value in (extra or {}).items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *arguments: None
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server(monkeypatch):
    made = Server()
    template = f"http://127.0.0.1:{made.server.server_port}/{{repository}}/{{revision}}/{{path}}"
    monkeypatch.setitem(registry.URL_TEMPLATES, "git", template)
    yield made
    made.close()


PINNED = Source(
    "sample", "owner/name", "0" * 40, "data/sample.bin", 1, "MIT", "nobody", size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)  # fmt: skip
BLOB = replace(
    PINNED,
    size=None,
    sha256=None,
    git_blob=hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT, usedforsecurity=False).hexdigest(),
)


class Waits(list):
    """Records the waits between attempts instead of making them."""

    def __call__(self, seconds):
        self.append(seconds)


def nothing_left(directory):
    return sorted(path.name for path in directory.iterdir()) == []


@pytest.mark.parametrize("pinned", [PINNED, BLOB])
def test_a_file_is_downloaded_and_verified(server, tmp_path, pinned):
    assert fetch(pinned, tmp_path / "out").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_right_file_is_kept_and_a_wrong_one_refused(server, tmp_path):
    (tmp_path / "out").write_bytes(CONTENT)
    fetch(PINNED, tmp_path / "out")
    assert server.requests == []
    (tmp_path / "out").write_bytes(b"other")
    with pytest.raises(DataError, match="not the pinned file of sample"):
        fetch(PINNED, tmp_path / "out")


def test_an_interrupted_transfer_goes_on_where_it_stopped(server, tmp_path):
    server.plan = ["cut", "ranged"]
    waits = Waits()
    assert fetch(PINNED, tmp_path / "out", sleep=waits).read_bytes() == CONTENT
    assert server.requests == [None, f"bytes={len(CONTENT) // 3}-"]
    assert waits == [1.0]


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.plan = ["cut", "whole"]
    assert fetch(PINNED, tmp_path / "out", sleep=Waits()).read_bytes() == CONTENT


def test_a_later_run_resumes(server, tmp_path):
    server.plan = ["cut", "busy"]
    with pytest.raises(DataError, match="5 attempts failed"):
        fetch(PINNED, tmp_path / "out", sleep=Waits())
    assert not (tmp_path / "out").exists()
    server.plan = ["ranged"]
    assert fetch(PINNED, tmp_path / "out").read_bytes() == CONTENT
    assert server.requests[-1] == f"bytes={len(CONTENT) // 3}-"


def test_waits_grow_between_attempts(server, tmp_path):
    server.plan, waits = ["busy"], Waits()
    with pytest.raises(DataError, match="503"):
        fetch(PINNED, tmp_path / "out", sleep=waits)
    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_a_refusal_is_not_repeated_and_says_what_to_do(server, tmp_path):
    server.plan = ["missing"]
    with pytest.raises(DataError, match=r"404.*mirror"):
        fetch(PINNED, tmp_path / "out", sleep=Waits())
    assert len(server.requests) == 1
    assert nothing_left(tmp_path)


def test_a_wrong_hash_names_both_and_leaves_nothing(server, tmp_path):
    server.plan = ["wrong"]
    with pytest.raises(DataError) as caught:
        fetch(PINNED, tmp_path / "out")
    assert PINNED.sha256 in str(caught.value)
    assert hashlib.sha256(b"x" * len(CONTENT)).hexdigest() in str(caught.value)
    assert nothing_left(tmp_path)


def test_a_page_instead_of_data_is_recognised(server, tmp_path):
    server.plan = ["page"]
    with pytest.raises(DataError, match="web page"):
        fetch(BLOB, tmp_path / "out")
    assert nothing_left(tmp_path)


def test_a_truncated_download_of_unknown_size_is_caught_by_its_hash(server, tmp_path):
    server.plan = ["cut_without_length"]
    with pytest.raises(DataError, match="not the pinned file"):
        fetch(BLOB, tmp_path / "out")
    assert nothing_left(tmp_path)


def test_no_network_is_named_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setitem(registry.URL_TEMPLATES, "git", "http://127.0.0.1:9/{repository}/{revision}/{path}")
    waits = Waits()
    with pytest.raises(DataError, match=r"5 attempts failed.*<owner>/<repository>/<revision>/<path>"):
        fetch(PINNED, tmp_path / "out", sleep=waits)
    assert nothing_left(tmp_path)


def test_a_full_disk_is_named_and_leaves_no_file(server, tmp_path, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *arguments):
            pass

        def write(self, piece):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download_module, "_opened", lambda part, mode: Full())
    with pytest.raises(StoreError, match="No space left on device"):
        fetch(PINNED, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot write"):
        fetch(PINNED, tmp_path / "file" / "out")


def _mirror(tmp_path, content):
    place = tmp_path / "mirror" / PINNED.relative_path
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    return tmp_path / "mirror"


def test_the_mirror_comes_first(server, tmp_path):
    assert fetch(PINNED, tmp_path / "out", _mirror(tmp_path, CONTENT)).read_bytes() == CONTENT
    assert server.requests == []


def test_a_wrong_file_in_the_mirror_is_an_error_not_a_download(server, tmp_path):
    with pytest.raises(DataError, match="not the pinned file"):
        fetch(PINNED, tmp_path / "out", _mirror(tmp_path, CONTENT[:-1]))
    assert server.requests == []
    assert not (tmp_path / "out").exists()


def test_a_file_that_the_mirror_lacks_is_downloaded(server, tmp_path):
    (tmp_path / "mirror").mkdir()
    assert fetch(PINNED, tmp_path / "out", tmp_path / "mirror").read_bytes() == CONTENT


def test_a_mirror_that_is_no_directory_is_an_error(tmp_path):
    with pytest.raises(DataError, match="mirror"):
        fetch(PINNED, tmp_path / "out", tmp_path / "nowhere")


def test_the_hub_is_asked_for_the_pinned_revision(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    asked = {}

    def fake(repository, path, repo_type, revision, local_dir):
        asked.update(repository=repository, path=path, repo_type=repo_type, revision=revision)
        (tmp_path / "got").write_bytes(CONTENT)
        return str(tmp_path / "got")

    monkeypatch.setattr(hub, "hf_hub_download", fake)
    assert fetch(replace(PINNED, host="hub"), tmp_path / "out").read_bytes() == CONTENT
    assert asked == {
        "repository": "owner/name", "path": "data/sample.bin", "repo_type": "dataset", "revision": "0" * 40,
    }  # fmt: skip


def test_a_hub_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def fake(*arguments, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr(hub, "hf_hub_download", fake)
    with pytest.raises(DataError, match="hub cannot be reached"):
        fetch(replace(PINNED, host="hub"), tmp_path / "out")
    assert nothing_left(tmp_path)
