from acpo.data.fetch import find_in_mirror
from acpo.data.overlap import as_text, overlap, runs
from acpo.data.registry import source
from acpo.tasks import load_task

SPLITS = ("math500", "aime24", "aime25", "amc", "amc23", "minerva", "olympiad")
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"


def test_runs_of_thirteen_words():
    assert len(list(runs(LONG))) == 2
    assert list(runs("too short")) == []
    assert list(runs(LONG.upper().replace(" ", ", "))) == list(runs(LONG))


def test_counts_by_hand():
    training = [("t0", LONG), ("t1", "What is $1 + 1$?"), ("t2", f"{LONG} and more words after it")]
    benchmarks = {
        "near": [("n0", f"Before it {LONG}"), ("n1", "nothing in common here")],
        "same": [("s0", "What is $1+1$ ?"), ("s1", "What is $1-1$?")],
    }
    report = overlap("t", iter(training), benchmarks)
    assert report.training_questions == 3
    near, same = report.benchmarks["near"], report.benchmarks["same"]
    assert (near.questions, near.exact, near.sharing_a_run, near.sharing_half, near.too_short_for_a_run) == (
        2,
        0,
        1,
        1,
        1,
    )
    assert (same.exact, same.sharing_a_run, same.longest_first[0].training) == (1, 0, "t1")
    assert "| same | 2 | 1 | 0 | 0 |" in as_text(report)


def test_the_real_prefix_holds_two_olympiad_problems(mirror):
    def questions(split):
        files = {split: find_in_mirror(source(split), mirror)}
        return [(problem.id, problem.prompt) for problem in load_task("math").problems(split, 0, files)]

    report = overlap("orz57k_prefix", questions("orz57k_prefix"), {split: questions(split) for split in SPLITS})
    print(as_text(report))
    assert {name: found.exact for name, found in report.benchmarks.items()} == {
        **dict.fromkeys(SPLITS, 0),
        "olympiad": 2,
    }
    assert report.benchmarks["olympiad"].sharing_half >= 5
