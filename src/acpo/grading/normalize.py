"""Normalise the text of a mathematical answer, without changing what it says."""

import re
import unicodedata

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ",
        "÷": r"\div ", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ",
        "∩": r"\cap ", "∈": r"\in ", "±": r"\pm ", "∓": r"\mp ", "°": r"^\circ ", "√": r"\sqrt ", "θ": r"\theta ",
        "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ", "ω": r"\omega ", "′": "'", "⁄": "/",
        "∕": "/", "，": ",", "；": ";", "：": ":", "\u200b": "", "\ufeff": "", "\x00": "",
    }
)  # fmt: skip
_DROPPED = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|nolimits|mathstrut|strut|hfill|checkmark|phantom\{\})(?![A-Za-z])\.?"
)
_SPACES = re.compile(
    r"\\(?:[,;:! >]|q?quad(?![A-Za-z])|hspace\{[^{}]*\}|enspace(?![A-Za-z])|thinspace(?![A-Za-z]))|~|\s+"
)
_RENAMED = {
    r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\dbinom": r"\binom", r"\tbinom": r"\binom",
    r"\leqslant": r"\le", r"\geqslant": r"\ge", r"\leq": r"\le", r"\geq": r"\ge", r"\neq": r"\ne", r"\lt": "<",
    r"\gt": ">",
    r"\degree": r"^\circ", r"\textdegree": r"^\circ", r"\lbrace": r"\{", r"\rbrace": r"\}", r"\lbrack": "[",
    r"\rbrack": "]",
    r"\mbox": r"\text", r"\textbf": r"\text", r"\textit": r"\text", r"\textrm": r"\text", r"\textnormal": r"\text",
    r"\hbox": r"\text", r"\varphi": r"\phi", r"\varepsilon": r"\epsilon", r"\vartheta": r"\theta", r"\ast": "*",
    r"\star": "*",
    r"\colon": ":", r"\lvert": "|", r"\rvert": "|", r"\vert": "|", r"\land": r"\text{ and }", r"\lor": r"\text{ or }",
    r"\vee": r"\text{ or }", r"\wedge": r"\text{ and }", r"\implies": r"\Rightarrow",
}  # fmt: skip
_COMMAND = re.compile(r"\\[A-Za-z]+")
_GROUPED = re.compile(r"(?<![\d.,])(?!0)\d{1,3}(?:(?:\{,\}|,?\s?\\!\s?|\s?\\[,;: ]\s?|\s)\d{3})+(?![\d])")
_GROUP_MARK = re.compile(r"\{,\}|,|\\[,!;: ]|\s")
_LABEL = re.compile(
    r"^\s*\\text\s*\{\s*(?:the )?(?:final )?answer(?: is)?\s*:?\s*\}|^\s*(?:the )?(?:final )?answer(?: is|:)\s*:?",
    re.I,
)
LONGEST_ANSWER = 20_000
ROW = "\x01"


def ungroup(text: str) -> str:
    r"""Remove thousands separators that are not plain commas: `36{,}000`, `10,\!080`, `12\,345`, `1 234`."""

    def join(match: re.Match[str]) -> str:
        return _GROUP_MARK.sub("", match.group())

    return _GROUPED.sub(join, text)


def _characters(text: str) -> str:
    """Fold the characters that only look different; a superscript stays a power and a subscript an index."""
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+", lambda m: "^{" + "".join(_SUPERSCRIPTS[c] for c in m.group()) + "}", text)
    text = re.sub("[₀-₉]+", lambda m: "_{" + "".join(_SUBSCRIPTS[c] for c in m.group()) + "}", text)
    text = re.sub("([¼-¾⅐-⅞])", lambda m: " " + unicodedata.normalize("NFKC", m.group()).replace("⁄", "/"), text)
    text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def fold(text: str) -> str:
    """Fold an answer to the form that the parser reads.

    Characters: NFKC, Unicode minus, digits of other scripts. TeX: display variants, sizes and spacing dropped,
    synonyms renamed, math delimiters and trailing punctuation removed, TeX thousands separators removed.
    """
    text = text.strip(" \t\r\n`")
    if len(text) > 4 and text.startswith("**") and text.endswith("**"):
        text = text[2:-2]
    if not text.isascii():
        text = _characters(text)
    text = re.sub(r"\\\\(\[[^\[\]]{0,10}\])?", ROW, text.replace("\x00", "")).replace("$$", " ")
    text = re.sub(r"(?<!\\)\$", " ", text).replace("\\$", " \\dollar ")
    if "\\" in text:
        text = re.sub(r"\\[()\[\]]", " ", text)
        text = _COMMAND.sub(lambda match: _RENAMED.get(match.group(), match.group()), text)
        text = _DROPPED.sub("", text)
    text = _LABEL.sub("", ungroup(text))
    text = _SPACES.sub(" ", text)
    text = text.replace(r"\%", "%").replace(r"\#", "#").replace(r"\&", "&")
    return text.strip().rstrip(".,;:!？?。 ") if not text.strip().endswith("!") else text.strip()


_TEXT_WRAP = re.compile(r"\\(?:text|mathrm|mathbf|operatorname|mathit|mathsf)\s*\{([^{}]*)\}")
_NOT_BETWEEN_DIGITS = re.compile(r"(?<![0-9A-Za-z])\s+|\s+(?![0-9A-Za-z])")


def canonical(folded: str) -> str:
    """Reduce a folded answer to a string for exact comparison: text wrappers off, needless spaces and braces gone."""
    text = _TEXT_WRAP.sub(r" \1 ", folded)
    text = re.sub(r"([_^])\{(\w)\}", r"\1\2", text)
    text = re.sub(r"\\frac\s*(\d)\s*(\d)(?!\d)", r"\\frac{\1}{\2}", text)
    return _NOT_BETWEEN_DIGITS.sub("", text.strip())
