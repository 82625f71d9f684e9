import contextlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from math_answers import RESPONSES, RIGHT, WRONG

from acpo.grading import math
from acpo.grading.extract import boxed, stated, tagged
from acpo.grading.normalize import fold
from acpo.grading.parser import MalformedError, UnsupportedError, read


@pytest.mark.parametrize(("predicted", "gold"), RIGHT)
def test_same_answers_are_right(predicted, gold, pool):
    verdict = math.grade(f"So \\boxed{{{predicted}}}.", gold, pool)
    assert verdict.correct, verdict


@pytest.mark.parametrize(("predicted", "gold"), WRONG)
def test_different_answers_are_wrong(predicted, gold, pool):
    verdict = math.grade(f"So \\boxed{{{predicted}}}.", gold, pool)
    assert not verdict.correct, verdict


@pytest.mark.parametrize(("response", "gold", "right"), RESPONSES)
def test_the_answer_is_found_in_a_response(response, gold, right, pool):
    assert math.grade(response, gold, pool).correct is right


def test_the_last_box_is_found_among_unclosed_braces_and_words():
    assert boxed("a } b \\boxed{1} { \\boxed{\\{2\\}}").text == "\\{2\\}"
    assert boxed("\\boxed{1 \n and later \\boxed{2}").text == "2"
    assert boxed("\\boxed{1 + \\boxed{2}").text is None


def test_only_explicit_statements_count():
    assert stated("We computed 42 and 43.").text is None
    assert stated("Answer: 1\nThe answer is 2, since 3 < 4.").text == "2"


def test_tags_inside_thinking_do_not_count():
    assert tagged("<think><answer>1</answer>").text is None
    assert tagged("so far <answer>1</answer></think> <answer>2</answer>").text == "2"
    assert tagged("<answer>1</answer> \\boxed{2}").text == "2"
    assert tagged("<answer>1</answer> <answer>2").text is None


@pytest.mark.parametrize(
    ("answer", "right"), [("204", True), ("0204", True), ("204.0", True), (r"\frac{408}{2}", True), ("1204", False)]
)
def test_aime_answers_are_integers_to_999(answer, right, pool):
    gold = math.write_gold(["204"], integers=(0, 999))
    assert math.grade(f"\\boxed{{{answer}}}", gold, pool).correct is right


@pytest.mark.parametrize(("answer", "right"), [("4.25", True), ("4.1", True), ("4.31", False), ("4.2\\%", True)])
def test_absolute_tolerance_of_the_benchmark(answer, right, pool):
    gold = math.write_gold(["4.2"], absolute="1e-1", unit="%")
    assert math.grade(f"\\boxed{{{answer}}}", gold, pool).correct is right


@pytest.mark.parametrize(
    ("answer", "gold", "relative", "right"),
    [
        ("24.311", "24.310", "1e-4", True),
        ("24.32", "24.310", "1e-4", False),
        ("24.311", "24.310", None, False),
        (r"1.39001 \times 10^9", "1.39e9", "1e-4", True),
        ("-0.87501", "-0.875", "1e-4", True),
        ("-0.3333", "-1./3", "1e-4", False),
        ("-1/3", "-1./3", "1e-4", True),
        (r"\arcsin(10/13)", "np.arcsin(10/13)", None, True),
        (r"\sin^{-1}\frac{10}{13}", "np.arcsin(10/13)", None, True),
        ("1501", "1500", "1e-4", False),
        ("15000.5", "15000", "1e-4", False),
        ("0.0000672", ".0000672", None, True),
        (r"\frac{1}{2a}(e^{at}-e^{-at})", r"\frac{1}{2a}(\exp{a*t} - \exp{-a*t})", None, True),
    ],
)
def test_minerva_golds(answer, gold, relative, right, pool):
    assert math.grade(f"\\boxed{{{answer}}}", math.write_gold([gold], relative=relative), pool).correct is right


@pytest.mark.parametrize(
    ("answer", "right"), [("84, 69", True), ("69,84", True), ("69", False), ("69, 84, 90", False), ("(69, 84)", False)]
)
def test_several_answers_in_any_order(answer, right, pool):
    assert math.grade(f"\\boxed{{{answer}}}", math.write_gold(["$69$,$84$"], several=True), pool).correct is right


def test_several_boxes_make_one_list(pool):
    gold = math.write_gold(["100,200"], several=True)
    assert math.grade("\\boxed{100} and \\boxed{200}", gold, pool).correct
    assert math.grade("\\boxed{100,200}", gold, pool).correct
    assert not math.grade("\\boxed{200}", gold, pool).correct


def test_an_empty_gold_is_never_right(pool):
    for response in ("\\boxed{}", "\\boxed{0}", ""):
        assert not math.grade(response, "", pool).correct
        assert not math.grade(response, math.write_gold([""]), pool).correct


def test_two_streams_of_verdicts_may_be_read_side_by_side(pool):
    pairs = [("\\boxed{x+1}", "1+x")] * 3
    both = zip(math.grade_many(pairs, pool), math.grade_many(pairs, pool), strict=True)
    assert all(first.correct and second.correct for first, second in both)


def test_unknown_gold_properties_are_refused():
    with pytest.raises(ValueError, match="tolerance"):
        math.write_gold(["1"], tolerance=1)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789abcxyzefi+-*/^_(){}[]|!,.:;=<>\\%$ '&~πé²٣\x00", max_size=60))
def test_reading_any_text_ends_in_a_tree_or_a_named_refusal(text):
    with contextlib.suppress(MalformedError, UnsupportedError):
        read(fold(text))


@settings(max_examples=100, deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_numbers_equal_their_other_spellings(top, bottom):
    gold = f"{top}/{bottom}"
    sign = "-" if top < 0 else ""
    assert math.grade(f"\\boxed{{{sign}\\frac{{{abs(top)}}}{{{bottom}}}}}", gold).correct
    assert not math.grade(f"\\boxed{{{top + bottom}/{bottom}}}", gold).correct


def test_the_gold_text_is_json_with_only_what_was_given():
    assert json.loads(math.write_gold(["1"], relative=None, unit="")) == {"answers": ["1"]}
    assert re.match(r'\{"answers"', math.write_gold(["1"], integers=(0, 9)))
