import pytest

from acpo.grading.pool import Pool


@pytest.fixture(scope="session")
def pool():
    with Pool(workers=2) as made:
        yield made
        assert made.counts["grader error"] == 0
