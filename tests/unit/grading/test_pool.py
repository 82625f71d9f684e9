import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from acpo import provenance
from acpo.grading.pool import Pool

EASY = {"predicted": "x+1", "golds": ["1+x"]}


def descendants(pid: int) -> dict[int, str]:
    """Processes below one, with their state (Z: zombie)."""
    parents, states = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)], states[int(entry.name)] = int(fields[1]), fields[0]
    found, grown = {pid}, True
    while grown:
        grown = {child for child, parent in parents.items() if parent in found} - found
        found |= grown
    return {each: states[each] for each in found - {pid} if each in states}


def test_outcomes_keep_the_order_of_the_jobs():
    jobs = [{"predicted": str(k), "golds": [str(k - k % 2)]} for k in range(50)]
    with Pool(workers=2) as pool:
        assert [right for right, _ in pool.map(jobs)] == [k % 2 == 0 for k in range(50)]


def test_a_hanging_answer_is_a_counted_timeout_and_the_next_is_graded():
    with Pool(workers=1, seconds=0.3) as pool:
        start = time.monotonic()
        assert pool.run({"kind": "hang"}) == (False, "timeout")
        assert time.monotonic() - start < 5
        assert pool.run(EASY) == (True, "equal")
        assert pool.counts == {"timeout": 1}


def test_memory_is_limited_and_counted():
    with Pool(workers=1) as pool:
        assert pool.run({"kind": "eat", "bytes": 2 * 1024**3}) == (False, "memory")
        assert pool.run(EASY) == (True, "equal")
        assert pool.counts == {"memory": 1}


def test_a_worker_that_dies_is_counted_and_replaced():
    with Pool(workers=2) as pool:
        outcomes = list(pool.map([EASY, {"kind": "exit", "code": 9}, EASY, EASY]))
        assert outcomes == [(True, "equal"), (False, "crashed"), (True, "equal"), (True, "equal")]
        assert pool.counts == {"crashed": 1}


def _no_strays(before: dict[int, str]) -> bool:
    for _ in range(50):
        left = set(descendants(os.getpid())) - set(before)
        if not left:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_a_thousand_timeouts_leave_no_zombie_and_no_process():
    before = descendants(os.getpid())
    with Pool(workers=2, seconds=0.01) as pool:
        assert {reason for _, reason in pool.map([{"kind": "hang"}] * 1000)} == {"timeout"}
        assert pool.counts["timeout"] == 1000
        now = {pid: state for pid, state in descendants(os.getpid()).items() if pid not in before}
        assert len(now) <= 3, now  # the zygote and two workers
        assert "Z" not in now.values()
    assert _no_strays(before)


def test_leaving_a_batch_early_leaves_a_working_pool():
    before = descendants(os.getpid())
    with Pool(workers=2, seconds=0.5) as pool:
        outcomes = pool.map([EASY, {"kind": "hang"}, {"kind": "hang"}])
        assert next(outcomes) == (True, "equal")
        outcomes.close()
        assert pool.run(EASY) == (True, "equal")
    assert _no_strays(before)


def test_threads_share_a_pool():
    results: list[bool] = []
    with Pool(workers=2) as pool:
        threads = [threading.Thread(target=lambda: results.append(pool.run(EASY)[0])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [True] * 8


PARENT = """
import os, sys, time
from acpo.grading.pool import Pool
pool = Pool(workers=2, seconds=60)
pool.run({"predicted": "x+1", "golds": ["1+x"]})
print(os.getpid(), pool._zygote.pid, *[worker.pid for worker in pool._workers], flush=True)
pool.run({"kind": "hang"})
"""


def test_workers_end_when_their_parent_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) >= 3
        time.sleep(0.2)
        parent.kill()
    for _ in range(100):
        alive = [pid for pid in pids if Path(f"/proc/{pid}/stat").exists() and _state(pid) != "Z"]
        if not alive:
            return
        time.sleep(0.05)
    pytest.fail(f"still there: {alive}")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def test_a_change_of_the_workers_changes_the_hash_of_the_grader():
    reached = provenance.code_hash(["acpo.grading.math"])
    assert reached
    assert "acpo.grading.symbolic" in provenance._meaning("acpo.grading.zygote")[1]
    assert "acpo.grading.zygote" in provenance._meaning("acpo.grading.pool")[1]


def test_workers_end_when_the_pool_is_closed():
    before = descendants(os.getpid())
    with Pool(workers=2) as pool:
        list(pool.map([EASY] * 4))
        assert set(descendants(os.getpid())) - set(before)
    assert _no_strays(before)
