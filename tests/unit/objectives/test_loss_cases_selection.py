"""Bugs users of other codes met: selecting tokens by entropy (L13 to L16)."""

import pytest
from objective_cases import (
    MEAN,
    accumulate,
    assert_same,
    empty_batch,
    evaluate,
    every_aggregation,
    from_probabilities,
    paper,
    random_batch,
    rows,
    split,
)

from acpo.objectives import TokenBatch


def selected(objective, batch) -> list[list[int]]:
    terms = objective.terms(batch, objective.statistics(batch), "all")
    return [row.nonzero().flatten().tolist() for row in terms.selected]


ENTROPIES = [[5.0, 1.0, 4.0, 2.0, 3.0, 99.0, 99.0], [0.5, 0.1, 0.4, 0.2, 0.3, 0.6, 0.7]]


def entropy_batch() -> TokenBatch:
    p = [[0.5] * 7] * 2
    return from_probabilities(p, p, [1.0, 1.0], [5, 7], ENTROPIES)


def test_l13_padding_entropy_does_not_shift_the_order():
    # Rows of 5 and 7 tokens: floor(0.4 n) = 2 and 2; the 99s are padding.
    assert selected(paper("high_entropy", ratio=0.4), entropy_batch()) == [[0, 2], [5, 6]]
    # Over the batch floor(0.4 * 12) = 4 highest: 5, 4, 3, 2, all in the first row.
    assert selected(paper("high_entropy", ratio=0.4, scope="batch"), entropy_batch()) == [[0, 2, 3, 4], []]
    # floor(0.8 n) = 4 and 5 lowest; over the batch floor(0.8 * 12) = 9.
    assert selected(paper("low_entropy"), entropy_batch()) == [[1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert selected(paper("low_entropy", scope="batch"), entropy_batch()) == [[1, 3], [0, 1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize("denominator", ["selected", "all"])
@pytest.mark.parametrize("name", ["high_entropy", "low_entropy"])
@every_aggregation
def test_l14_batch_scope_does_not_depend_on_the_split(name, aggregation, denominator):
    batch = random_batch(9)
    objective = paper(name, aggregation=aggregation, scope="batch", denominator=denominator)
    whole = evaluate(objective, batch)
    for size in (1, 2, 4):
        assert_same(accumulate(objective, [split(batch, size)]), whole)
    assert_same(accumulate(objective, [split(rows(batch, 0, 6), 3), split(rows(batch, 6, 8), 1)]), whole)


@pytest.mark.parametrize(
    ("scope", "denominator", "aggregation", "loss"),
    [
        # A = 1, rho = 1: each selected token loses 1. Within responses 2 of 5 and 2 of 7 are selected.
        ("response", "selected", MEAN, -1.0),
        ("response", "all", MEAN, -(2 / 5 + 2 / 7) / 2),
        ("response", "selected", "token-mean", -1.0),
        ("response", "all", "token-mean", -4 / 12),
        # Over the batch 4 of 5 and 0 of 7: the second response adds 0 and still counts as a response.
        ("batch", "selected", MEAN, -0.5),
        ("batch", "all", MEAN, -(4 / 5) / 2),
        ("batch", "selected", "token-mean", -1.0),
        ("batch", "all", "token-mean", -4 / 12),
    ],
)
def test_l15_denominator_is_a_choice(scope, denominator, aggregation, loss):
    objective = paper("high_entropy", ratio=0.4, scope=scope, denominator=denominator, aggregation=aggregation)
    outcome = evaluate(objective, entropy_batch())
    assert outcome.value == pytest.approx(loss, abs=1e-12)
    assert outcome.summary["tokens"] == 12
    assert outcome.summary["selected_fraction"] == pytest.approx(4 / 12)


@pytest.mark.parametrize("name", ["high_entropy", "low_entropy"])
def test_l15_metrics_keep_the_full_mask(name):
    batch = random_batch(10)
    ours, full = evaluate(paper(name), batch).summary, evaluate(paper("dapo"), batch).summary
    for key, value in full.items():
        if key != "selected_fraction" and "gradient_std" not in key:
            assert ours[key] == pytest.approx(value, nan_ok=True), key
    assert 0 < ours["selected_fraction"] < 1


@pytest.mark.parametrize("name", ["high_entropy", "low_entropy"])
def test_l16_no_token_to_rank(name):
    for scope in ("response", "batch"):
        objective = paper(name, scope=scope)
        assert selected(objective, empty_batch(2)) == [[], []]


def test_selecting_everything_fails_loudly():
    p = [[0.5] * 4] * 2
    constant = from_probabilities(p, p, [1.0, -1.0], [4, 4], [[0.7] * 4] * 2)
    with pytest.raises(ValueError, match="selected every token"):
        evaluate(paper("high_entropy", scope="batch"), constant)
    # Responses of one token each are legitimately taken whole.
    single = from_probabilities(p, p, [1.0, -1.0], [1, 1], [[0.7] * 4] * 2)
    assert evaluate(paper("high_entropy"), single).summary["selected_fraction"] == 1
    assert evaluate(paper("high_entropy", scope="batch"), single).summary["selected_fraction"] == 1


def test_ties_at_the_batch_threshold_are_kept_all_or_none():
    p = [[0.5] * 10]

    def kept(entropy, ratio):
        batch = from_probabilities(p, p, [1.0], entropy=[entropy])
        return selected(paper("high_entropy", scope="batch", ratio=ratio), batch)[0]

    assert kept([0.0] * 8 + [1.0, 2.0], 0.3) == [8, 9]  # 2 is nearer to 3 than 10
    assert kept([3.0] + [1.0] * 3 + [0.0] * 6, 0.3) == [0, 1, 2, 3]  # 4 is nearer to 3 than 1
    assert selected(paper("high_entropy", ratio=0.3), from_probabilities(p, p, [1.0], entropy=[[1.0] * 10])) == [
        [0, 1, 2]
    ]
