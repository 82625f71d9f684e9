from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acpo.grading import countdown, hitab


def _countdown(text, numbers, target):
    return countdown.grade(f"<answer>{text}</answer>", countdown.write_gold(numbers, target))


@pytest.mark.parametrize(
    ("text", "numbers", "target"),
    [
        (r"\frac{6}{(1/3)}", [1, 3, 6], 18),
        (r"\dfrac{8}{2} \times 3", [8, 2, 3], 12),
        (r"\left(1+2\right) \cdot 3", [1, 2, 3], 9),
        ("$(1 + 2) * 3$", [1, 2, 3], 9),
        ("(1+2)*3 = 9", [1, 2, 3], 9),
        ("2-5=-3", [2, 5], -3),
        ("-(1-2)*3", [1, 2, 3], 3),
        ("(１＋２)＊３", [1, 2, 3], 9),
    ],
)
def test_countdown_accepts(text, numbers, target):
    assert _countdown(text, numbers, target).correct, _countdown(text, numbers, target)


@pytest.mark.parametrize(
    ("text", "numbers", "target"),
    [
        ("1+2+3=3+3", [1, 2, 3], 6),
        ("1+2+3=6=6", [1, 2, 3], 6),
        ("+1+2+3", [1, 2, 3], 6),
        ("1+(-2)+3", [1, 2, 3], 2),
        ("1 2+3", [1, 2, 3], 15),
        ("1,2+3", [1, 2, 3], 15),
        ("2**3", [2, 3], 8),
        ("7%4", [7, 4], 3),
        ("2^{3}", [2, 3], 8),
        ("(1+2)(3)", [1, 2, 3], 9),
        ("1.0+2+3", [1, 2, 3], 6),
        ("1e0+2+3", [1, 2, 3], 6),
        ("1_0+2", [10, 2], 12),
        ("½*2", [1, 2, 2], 1),
        ("\\sqrt{4}", [4], 2),
        ("1+2+3 apples", [1, 2, 3], 6),
        ("(1+2]+3", [1, 2, 3], 6),
    ],
)
def test_countdown_refuses(text, numbers, target):
    assert not _countdown(text, numbers, target).correct


@pytest.mark.parametrize(
    ("fits", "exceeds", "reason"),
    [
        ("10+" + "1+" * 248 + "1", "10+10+" + "1+" * 247 + "1", "longer than 500 characters"),
        ("(" * 49 + "1" + ")" * 49, "(" * 50 + "1" + ")" * 50, "nested deeper than 50 levels"),
        ("9" * 20, "9" * 21, "a number with leading zeros or too many digits"),
    ],
    ids=["length", "depth", "digits"],
)
def test_countdown_accepts_up_to_each_cap(fits, exceeds, reason):
    def verdict(text):
        numbers = [int(number) for number in text.strip("()").split("+")]
        return _countdown(text, numbers, sum(numbers))

    assert verdict(fits).correct, verdict(fits)
    assert not verdict(exceeds).correct
    assert verdict(exceeds).reason == f"refused: {reason}"


def _expressions():
    leaf = st.integers(0, 99).map(lambda n: (str(n), Fraction(n), [n]))

    def join(parts):
        (left, a, used), operator, (right, b, more) = parts
        if operator == "/" and b == 0:
            operator = "+"
        value = {"+": a + b, "-": a - b, "*": a * b}.get(operator)
        return f"({left} {operator} {right})", a / b if value is None else value, used + more

    return st.recursive(leaf, lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(join), max_leaves=6)


@settings(max_examples=200, deadline=None)
@given(_expressions())
def test_countdown_agrees_with_exact_arithmetic(expression):
    text, value, numbers = expression
    whole = value.denominator == 1
    verdict = _countdown(text, numbers, int(value))
    assert verdict.correct is whole, verdict
    assert not _countdown(text, numbers, int(value) + 1).correct
    assert not _countdown(text, [*numbers, 1], int(value)).correct


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="0123456789+-*/(){}=. \\fracdivtimes$²٣½\x00<>", max_size=80))
def test_countdown_never_fails_on_any_text(text):
    _countdown(text, [1, 2, 3], 6)


def _hitab(text, gold):
    return hitab.grade(f"<answer>{text}</answer>", hitab.write_gold(gold)).correct


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("$1,234.5", [1234.5]),
        ("1,234,567", [1234567]),
        ("-5.2", [-5.2]),
        ("52.13", [52.1]),
        ("12.5%", [12.5]),
        ("2.5 million", [2500000]),
        ("3 billion", [3e9]),
        ("\\text{Women}", ["women"]),
        ("The Netherlands", ["netherlands"]),
        ("215; 197", [215.0, 197.0]),
        ("197, 215", [215.0, 197.0]),
        ("1,234, 5,678", [1234, 5678]),
        ("women, 65 to 74 years", ["65 to 74 years", "women"]),
        ("mining, oil and gas; construction", ["construction", "mining, oil and gas"]),
        ("mining, quarrying and oil and gas extraction", ["mining, quarrying and oil and gas extraction"]),
        ("1,036 m/s", ["1,036 m/s"]),
        ("$120,000 and over", ["$120,000 and over"]),
        ("13; 7; 3; 3", [13, 7, 3, 3]),
        ("2013-14", ["2013-14"]),
        ("lillestrøm SK", ["lillestrøm sk"]),
        ("P.E.I.", ["p.e.i"]),
        ("sask., man.", ["sask", "man"]),
        ("18 percent", [18.0]),
        ("1.2 million dollars", [1200000]),
        ("１８", [18]),
    ],
)
def test_hitab_accepts(text, gold):
    assert _hitab(text, gold)


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("52", [52.1]),
        ("52.2", [52.1]),
        ("5.2", [-5.2]),
        ("0.521", [52.1]),
        ("5210", [52.1]),
        ("men", ["women"]),
        ("women and men", ["women"]),
        ("215", [215.0, 197.0]),
        ("215; 215", [215.0, 197.0]),
        ("around 52.1", [52.1]),
        ("52.1 or 53", [52.1]),
        ("inf", [0]),
        ("", [""]),
        ("", [0]),
        ("2013", ["2013-14"]),
        ("52.1.3", [52.1]),
        ("٣", [3]),
        ("5³", [53]),
        ("9" * 500, [1]),
        ("1e-999", [0]),
    ],
)
def test_hitab_refuses(text, gold):
    assert not _hitab(text, gold)


def test_hitab_released_is_exact_match():
    assert hitab.grade_released("\\boxed{a, b}", '["a", "b"]').correct
    assert not hitab.grade_released("\\boxed{b, a}", '["a", "b"]').correct
    assert not hitab.grade_released("nothing", "[]").correct
