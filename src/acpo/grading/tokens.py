"""Split a folded mathematical answer into tokens, by a finite set of rules: nothing is guessed or executed."""

import re
from dataclasses import dataclass

from acpo.grading.normalize import ROW

MOST_TOKENS = 1500


class MalformedError(ValueError):
    """The answer is not well-formed mathematics."""


class UnsupportedError(ValueError):
    """The answer is mathematics that this parser does not read (integrals, sums, limits)."""


def words(text: str) -> frozenset[str]:
    """Make a set of the words of a text."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Token:
    """A token: kind `number`, `name`, `function`, `word`, `text`, `command` or `mark`, and its text.

    `spaced` says whether a space came before it.
    """

    kind: str
    text: str
    spaced: bool = False


FUNCTIONS = words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot asin acos atan sinh cosh tanh coth sech csch "
    "arcsinh arccosh arctanh exp log ln lg sqrt abs floor ceil max min gcd lcm sign det cbrt"
)
GREEK = words(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar Re Im aleph nabla emptyset varnothing mho "
    "ldots cdots dots"
)
_CONSTANTS = {"pi": "pi", "infty": "oo", "infinity": "oo", "inf": "oo", "oo": "oo"}
SEPARATOR_WORDS = frozenset({"and", "or"})
UNIT_WORDS = words(
    "cm mm km nm um kg mg ml hr hrs sec secs min mins dollar dollars cent cents euro euros meter meters metre metres "
    "inch inches foot feet ft yard yards yd mile miles mph kmh mi gram grams second seconds minute minutes hour hours "
    "day days week weeks month months year years degree degrees deg radian radians rad unit units square sq cubic "
    "percent pound pounds lb lbs ounce ounces oz liter liters litre litres gallon gallons newton newtons joule joules "
    "watt watts volt volts pascal kelvin people students ways apples points times per hz khz mhz ghz ev kev mev erg "
    "ergs mol moles nmi knots am pm"
)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![A-Za-z\d.]))?)"
    r"|\\(?P<textual>text|mathrm|mathbf|mathit|mathsf|mathcal|mathbb|operatorname|boldsymbol|bm)\s*(?:\{(?P<content>[^{}]*)\}|(?P<letter>[A-Za-z]))"
    r"|\\(?P<command>[A-Za-z]+|[{}|])"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<mark>\*\*|<=|>=|!=|==|[-+*/^_(){}\[\],;:|=<>!%&'" + ROW + r"])"
)


def _letters(run: str, spaced: bool) -> list[Token]:
    """Tokens of a run of plain letters: a known name, a word, or a product of one-letter names."""
    if run in FUNCTIONS:
        return [Token("function", run, spaced)]
    if run.lower() in SEPARATOR_WORDS and len(run) > 1:
        return [Token("mark", ",", spaced)]
    if run.lower() in _CONSTANTS:
        return [Token("name", _CONSTANTS[run.lower()], spaced)]
    if run in GREEK:
        return [Token("name", run, spaced)]
    if run.lower() == "percent":
        return [Token("mark", "%", spaced)]
    if len(run) >= 4 or (len(run) == 3 and run.isupper()) or (run.lower() in UNIT_WORDS and len(run) > 1):
        return [Token("word", run, spaced)]
    return [Token("name", letter, spaced and place == 0) for place, letter in enumerate(run)]


def _textual(command: str, content: str, spaced: bool) -> list[Token]:
    r"""Tokens of `\text{...}` and its relatives: maths inside is read as maths, anything else stays text."""
    bare = content.strip()
    if not bare:
        return []
    if re.fullmatch(r"[\s,;]*(?:and|or)?[\s,;]*", content) and command == "text":
        return [Token("mark", ",", spaced)]
    if bare in FUNCTIONS:
        return [Token("function", bare, spaced)]
    if bare.lower() == "percent":
        return [Token("mark", "%", spaced)]
    if command != "text" and content == bare and len(bare) == 1 and bare.isalpha():
        return [Token("name", bare, spaced)]
    if not re.search(r"[A-Za-z]", bare):
        return tokenize(bare)
    return [Token("text", " ".join(bare.split()), spaced)]


def _command(name: str, spaced: bool) -> Token:
    if name in FUNCTIONS:
        return Token("function", name, spaced)
    if name in _CONSTANTS:
        return Token("name", _CONSTANTS[name], spaced)
    if name in GREEK:
        return Token("name", name, spaced)
    return Token("command", name, spaced)


def tokenize(text: str) -> list[Token]:
    """Split a folded answer.

    Raises:
        MalformedError: a character that no answer has, or more than MOST_TOKENS tokens.
    """
    text = re.sub(r"(?<![A-Za-z])(?:np|numpy|math|sympy)\.(?=[a-z])", "", text)
    tokens: list[Token] = []
    position, spaced = 0, False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise MalformedError(f"unexpected character {text[position]!r}")
        position = match.end()
        if match["space"]:
            spaced = True
            continue
        tokens += _tokens_of(match, spaced)
        spaced = False
        if len(tokens) > MOST_TOKENS:
            raise MalformedError("the answer is too long to read")
    return tokens


def _tokens_of(match: re.Match[str], spaced: bool) -> list[Token]:
    if match["number"]:
        return [Token("number", match["number"], spaced)]
    if match["textual"]:
        return _textual(match["textual"], match["letter"] or match["content"], spaced)
    if match["command"]:
        return [_command(match["command"], spaced)]
    if match["letters"]:
        return _letters(match["letters"], spaced)
    return [Token("mark", match["mark"], spaced)]
