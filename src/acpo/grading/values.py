"""Evaluate a tree at a point: exactly where the value is rational, else with as many digits as asked, within caps."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import comb, factorial, gcd, isqrt, lcm
from typing import Any

import mpmath

from acpo.grading.tree import Node

MOST_BITS = 200_000
LARGEST_MAGNITUDE = 10**7
LARGEST_FACTORIAL = 3000
LARGEST_ANGLE_BITS = 300


class TooLargeError(ValueError):
    """The value, or one on the way to it, is beyond the caps."""


class NoValueError(ValueError):
    """The tree has no single value here (a division by zero, a structure, a word)."""


Value = Any  # Fraction, or a real or complex number of the mpmath context


class Evaluator:
    """Values of trees at one assignment of symbols, with one working precision."""

    def __init__(self, point: Mapping[str, Fraction], digits: int):
        """Work with `digits` decimal digits; `point` gives every free symbol its value."""
        self.mp = mpmath.MPContext()
        self.mp.dps = digits
        self.point = point

    def __call__(self, node: Node) -> Value:
        """Return the value of a tree.

        Raises:
            TooLargeError: beyond the caps.
            NoValueError: no single value.
        """
        reader: Callable[[Node], Value] | None = getattr(self, f"_{node.kind}", None)
        if reader is None:
            raise NoValueError(f"a {node.kind} has no value")
        return self._checked(reader(node))

    def _checked(self, value: Value) -> Value:
        if isinstance(value, Fraction):
            if value.numerator.bit_length() + value.denominator.bit_length() > MOST_BITS:
                raise TooLargeError("too many digits")
            return value
        if not self.mp.isfinite(value):
            raise NoValueError("not finite")
        if value != 0 and abs(self.mp.mag(value)) > LARGEST_MAGNITUDE:
            raise TooLargeError("too large")
        return value

    def real(self, value: Value) -> Value:
        """Convert an exact value to the working precision."""
        return self.mp.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value

    def _number(self, node: Node) -> Value:
        return node.parts[0]

    def _symbol(self, node: Node) -> Value:
        name = str(node.parts[0])
        constants = {"pi": self.mp.pi, "e": self.mp.e, "i": self.mp.mpc(0, 1)}
        if name in constants:
            return +constants[name]
        if name not in self.point:
            raise NoValueError(f"{name} has no value")
        return self.point[name]

    def _add(self, node: Node) -> Value:
        total: Value = Fraction(0)
        for term in node.nodes:
            total = self._plus(total, self(term))
        return total

    def _plus(self, left: Value, right: Value) -> Value:
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return left + right
        return self.real(left) + self.real(right)

    def _neg(self, node: Node) -> Value:
        return -self(node.nodes[0])

    def _mul(self, node: Node) -> Value:
        left, right = map(self, node.nodes)
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return left * right
        return self.real(left) * self.real(right)

    def _div(self, node: Node) -> Value:
        left, right = map(self, node.nodes)
        if right == 0:
            raise NoValueError("division by zero")
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return left / right
        return self.real(left) / self.real(right)

    def _degree(self, node: Node) -> Value:
        return self(node.nodes[0])

    def _percent(self, node: Node) -> Value:
        """Inside an expression a percent sign is a hundredth; as the sign of a whole answer see `compare`."""
        return self(Node("div", (node.nodes[0], Node("number", (Fraction(100), "100")))))

    def _unit(self, node: Node) -> Value:
        return self(node.nodes[0])

    def _pow(self, node: Node) -> Value:
        base, exponent = map(self, node.nodes)
        if isinstance(base, Fraction) and isinstance(exponent, Fraction):
            exact = _exact_power(base, exponent)
            if exact is not None:
                return exact
        return self._power(self.real(base), self.real(exponent))

    def _power(self, base: Value, exponent: Value) -> Value:
        if base == 0:
            if self.mp.re(exponent) <= 0:
                raise NoValueError("zero to a power that is not positive")
            return base
        if self.mp.mag(exponent) > 40 or abs(self.mp.mag(base) * self.mp.mag(abs(exponent) + 1)) > LARGEST_MAGNITUDE:
            raise TooLargeError("a power that is too large")
        bits = abs(self.mp.re(exponent)) * abs(self.mp.log(abs(base), 2))
        if bits > LARGEST_MAGNITUDE:
            raise TooLargeError("a power that is too large")
        return self.mp.power(base, exponent)

    def _factorial(self, node: Node) -> Value:
        value = self(node.nodes[0])
        if isinstance(value, Fraction) and value.denominator == 1:
            if value < 0:
                raise NoValueError("factorial of a negative number")
            if value > LARGEST_FACTORIAL:
                raise TooLargeError("a factorial that is too large")
            return Fraction(factorial(value.numerator))
        if abs(value) > LARGEST_FACTORIAL:
            raise TooLargeError("a factorial that is too large")
        return self.mp.gamma(self.real(value) + 1)

    def _apply(self, node: Node) -> Value:
        """An unknown function: a fixed polynomial with coefficients drawn from its name."""
        total: Value = Fraction(0)
        for place, argument in enumerate(node.nodes[1:]):
            value = self(argument)
            for power in range(4):
                weight = symbol_value(f"{node.nodes[0].parts[0]} {place} {power}")
                term = weight * value**power if isinstance(value, Fraction) else self.real(weight) * value**power
                total = self._plus(total, term)
        return total

    def _call(self, node: Node) -> Value:
        name = str(node.parts[0])
        arguments = [self(_radians(each) if name in _CIRCULAR else each) for each in node.nodes]
        if name in ("floor", "ceil", "abs", "binom", "max", "min", "gcd", "lcm", "sign"):
            return self._exact_call(name, arguments)
        if name == "root":
            return self._real_root(*arguments)
        value = self.real(arguments[0])
        if len(arguments) != 1 or name not in _FUNCTIONS:
            raise NoValueError(f"{name} is not known here")
        if value != 0 and self.mp.mag(value) > (
            40 if name in ("exp", "sinh", "cosh", "tanh") else LARGEST_ANGLE_BITS * 10
        ):
            raise TooLargeError(f"{name} of a value that is too large")
        if name in ("exp", "sinh", "cosh") and abs(self.mp.re(value)) > LARGEST_MAGNITUDE / 2:
            raise TooLargeError(f"{name} of a value that is too large")
        try:
            return _FUNCTIONS[name](self.mp, value)
        except (ValueError, ZeroDivisionError) as error:
            raise NoValueError(f"{name} has no value here") from error

    def _real_root(self, value: Value, degree: Value) -> Value:
        """A root as its sign is written: the odd root of a negative number is negative."""
        if degree == 0:
            raise NoValueError("a root of degree zero")
        odd = isinstance(degree, Fraction) and degree.denominator == 1 and degree.numerator % 2 == 1
        negative = odd and not isinstance(value, self.mp.mpc) and value < 0
        base = Node("number", (-value if negative else value, ""))
        exponent = Node("div", (Node("number", (Fraction(1), "")), Node("number", (degree, ""))))
        found = self(Node("pow", (base, exponent)))
        return -found if negative else found

    def _exact_call(self, name: str, arguments: list[Value]) -> Value:
        first = arguments[0]
        if name == "abs":
            return abs(first)
        if name in ("floor", "ceil"):
            if isinstance(first, Fraction):
                return Fraction(first.__floor__() if name == "floor" else first.__ceil__())
            return self.mp.floor(first) if name == "floor" else self.mp.ceil(first)
        if not all(isinstance(each, Fraction) for each in arguments):
            raise NoValueError(f"{name} of a value that is not rational")
        if name in ("max", "min"):
            return max(arguments) if name == "max" else min(arguments)
        if name == "sign":
            return Fraction((first > 0) - (first < 0))
        if any(each.denominator != 1 for each in arguments) or len(arguments) != 2:
            raise NoValueError(f"{name} of a value that is not whole")
        left, right = (each.numerator for each in arguments)
        if name == "binom":
            if not 0 <= left <= LARGEST_FACTORIAL * 2 or right < 0:
                raise TooLargeError("a binomial coefficient that is too large")
            return Fraction(comb(left, right))
        return Fraction(gcd(left, right) if name == "gcd" else lcm(left, right))


_CIRCULAR = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
_FUNCTIONS: dict[str, Callable[[Any, Value], Value]] = {
    "sin": lambda mp, x: mp.sin(x), "cos": lambda mp, x: mp.cos(x), "tan": lambda mp, x: mp.tan(x),
    "cot": lambda mp, x: mp.cot(x), "sec": lambda mp, x: mp.sec(x), "csc": lambda mp, x: mp.csc(x),
    "arcsin": lambda mp, x: mp.asin(x), "arccos": lambda mp, x: mp.acos(x), "arctan": lambda mp, x: mp.atan(x),
    "arccot": lambda mp, x: mp.acot(x), "sinh": lambda mp, x: mp.sinh(x), "cosh": lambda mp, x: mp.cosh(x),
    "tanh": lambda mp, x: mp.tanh(x), "coth": lambda mp, x: mp.coth(x), "sech": lambda mp, x: mp.sech(x),
    "csch": lambda mp, x: mp.csch(x), "arcsinh": lambda mp, x: mp.asinh(x), "arccosh": lambda mp, x: mp.acosh(x),
    "arctanh": lambda mp, x: mp.atanh(x), "exp": lambda mp, x: mp.exp(x), "ln": lambda mp, x: mp.log(x),
    "cbrt": lambda mp, x: mp.cbrt(x),
}  # fmt: skip


def _radians(node: Node) -> Node:
    """Write degrees inside a circular function in radians."""
    if node.kind == "degree":
        half_turn = Node("div", (Node("symbol", ("pi",)), Node("number", (Fraction(180), "180"))))
        return Node("mul", (node.nodes[0], half_turn))
    if node.kind in ("add", "neg", "mul", "div"):
        return Node(node.kind, tuple(_radians(part) if isinstance(part, Node) else part for part in node.parts))
    return node


def symbol_value(name: str) -> Fraction:
    """A fixed rational value for a name, between 1/2 and 5/2, different names (almost surely) different."""
    state = 2166136261
    for byte in name.encode():
        state = (state ^ byte) * 16777619 % 2**32
    state = (state * 2654435761 + 97) % 2**32
    return Fraction(1, 2) + Fraction(2 * (state % 100_003), 100_003)


def _root(value: int, degree: int) -> int | None:
    """The exact whole root of a number that is not negative, or None."""
    if degree == 2:
        root = isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        root = low
    return root if root**degree == value else None


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """`base ** exponent` where that is rational and small enough to write out, else None."""
    if base == 0:
        if exponent < 0:
            raise NoValueError("zero to a negative power")
        return Fraction(exponent == 0)
    if abs(base) == 1 and exponent.denominator == 1:
        return base if exponent.numerator % 2 else Fraction(1)
    bits = (base.numerator.bit_length() + base.denominator.bit_length()) * abs(exponent)
    if exponent.denominator > 12 or bits > MOST_BITS or (base < 0 and exponent.denominator > 1):
        return None
    if exponent.denominator > 1:
        roots = [_root(part, exponent.denominator) for part in (base.numerator, base.denominator)]
        if roots[0] is None or roots[1] is None:
            return None
        base = Fraction(roots[0], roots[1])
    return base**exponent.numerator
