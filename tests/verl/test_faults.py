"""What a user meets when something breaks: one clear line, a state to go on from, no process left behind."""

import shutil
from pathlib import Path

import pytest
from small_study import SmallStudy
from test_end_to_end import check_run
from verl_study import Training, is_alive, make_verl_study

pytestmark = pytest.mark.verl

CELL = "mini_verl_acpo_offp"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """The suite mini_verl."""
    return make_verl_study(tmp_path_factory.mktemp("faults"), "mini_verl")


def test_missing_model(study: SmallStudy, tmp_path: Path) -> None:
    broken = SmallStudy(tmp_path / "study")
    shutil.copytree(study.root, broken.root)
    shutil.rmtree(broken.base)
    broken.base.mkdir()
    training = Training.start(broken, CELL, tmp_path / "run")
    assert training.wait() == 1
    assert training.said().splitlines()[-1].startswith(f"error: {broken.base}: no model: lacks config.json")
    assert not (tmp_path / "run").exists()


def test_killed_worker_then_a_half_written_checkpoint(study: SmallStudy, tmp_path: Path) -> None:
    """ACPO; a worker dies as one does without memory, then the newest checkpoint is cut off; all is made up for."""
    run = tmp_path / "run"
    training = Training.start(study, CELL, run)
    training.until(lambda run: (run / "states" / "latest_checkpointed_iteration.txt").exists())
    workers = [
        process for process in training.seen if is_alive(process) and "WorkerDict" in " ".join(process.cmdline())
    ]
    assert workers
    for worker in workers:
        worker.kill()
    assert training.wait() == 1
    last = training.said().splitlines()[-1]
    assert last.startswith(f"error: {CELL} seed 0: verl ended with status 1 after rollout ")
    assert "a worker process died" in last
    assert "the same command goes on" in last
    assert training.leaves_no_orphans()
    step = (run / "states" / "latest_checkpointed_iteration.txt").read_text()
    shard = run / "states" / f"global_step_{step}" / "actor" / "model_world_size_1_rank_0.pt"
    shard.write_bytes(shard.read_bytes()[:1000])
    resumed = Training.start(study, CELL, run)
    assert resumed.wait() == 0
    assert f"global_step_{step}: half-written or damaged" in resumed.said()
    assert resumed.leaves_no_orphans()
    check_run(study, run)


def test_second_start_is_refused_and_signals_end_the_first(study: SmallStudy, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = Training.start(study, CELL, run)
    first.until(lambda run: (run / "states" / "fingerprint").exists())
    second = Training.start(study, CELL, run)
    assert second.wait() == 1
    assert "another process is training this run" in second.said().splitlines()[-1]
    first.until(lambda run: (run / "tensorboard").exists())
    first.process.terminate()
    first.until(lambda run: (run / "stop").exists())
    first.process.terminate()
    assert first.wait() == 75
    assert "stopped by SIGTERM" in first.said().splitlines()[-1]
    assert first.leaves_no_orphans()
