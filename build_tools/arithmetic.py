r"""Arithmetic as a page shows it: from prose to tokens, and from the tokens of one side of an equation to a number.

    0.2 \times 1.0986        {=ceiling} × {=A}        \frac{1}{3} - 2^{-1}        \min(2.4, 3.2)

A placeholder is read as what is printed in its place, so that what is judged is what a reader sees. Each token knows
whether its characters were typed.
"""

import html
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from build_tools.prose import PLACEHOLDER
from build_tools.tex import Span

DEEPEST = 30  # nested brackets


@dataclass(frozen=True)
class Token:
    """What stands at `offset` to `end` of the prose. `symbolic`: it is, or holds, a letter that is no function."""

    kind: str  # number, sign, relation, function, symbol, comma, stop, group, other
    text: str
    offset: int
    end: int
    typed: bool
    symbolic: bool = False
    parts: tuple["Token", ...] = ()  # of a group: what stands between its brackets


class Unreadable(Exception):
    """This is no plain arithmetic; `token` is where the reading stopped, None at the end."""

    def __init__(self, token: Token | None, reason: str):
        super().__init__(reason)
        self.token = token


_SIGNS = {
    "+": "+",
    "-": "-",
    "−": "-",
    "*": "*",
    "×": "*",
    "·": "*",
    "/": "/",
    "÷": "/",
    "^": "^",
    "_": "_",
    "%": "%",
}
_SIGNS |= {r"\times": "*", r"\cdot": "*", r"\div": "/", r"\%": "%"}
_RELATIONS = {"=", "≈", r"\approx", r"\simeq", r"\cong", r"\doteq", r"\equiv"}
_FUNCTIONS = {"log", "ln", "exp", "sqrt", "min", "max", "frac", "tfrac", "dfrac"}
# What may follow a number without a sign; not a fraction, because 1½ is no product.
_FACTORS = ("log", "ln", "exp", "e", "sqrt", "min", "max")
_WORD_FUNCTIONS = {"log", "ln", "exp", "sqrt", "min", "max"}
_OPEN = {"(", "[", "{", r"\{"}
_CLOSE = {")", "]", "}", r"\}"}
# What ends a side without relating two numbers as equal; `\text` because words follow.
_STOPS = set(';:?!."&<>≤≥≠–—…') | {
    rf"\{name}"
    for name in (
        *("\\", "quad", "qquad", "text", "textbf", "mbox", "le", "leq", "ge", "geq", "lt", "gt", "ne", "neq"),
        *("to", "in", "mid", "sim", "implies", "iff", "Rightarrow", "dots", "ldots", "cdots"),
    )
}
_NO_MARK = {rf"\{mark}" for mark in (*",;:! ", "left", "right", "displaystyle", "textstyle")}

_TEX = re.compile(
    rf"""(?P<placeholder>{PLACEHOLDER.pattern})
      | (?P<number>\d{{1,3}}(?:(?:\{{,\}}|\\,)\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*|\.\d+)
      | (?P<drop>\s+|~|\\[bB]ig+[lrm]?(?![A-Za-z]))
      | (?P<stop>\\(?:begin|end)\{{[A-Za-z*]+\}})
      | (?P<e>e(?=\s*\^))
      | (?P<mark>\\[A-Za-z]+|\\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_TEXT = re.compile(
    rf"""(?P<placeholder>{PLACEHOLDER.pattern})
      | (?P<number>\d{{1,3}}(?:,\d{{3}})+(?![\d.])|\d{{1,3}}(?:,\d{{3}})+\.\d+|\d+(?:\.\d+)*(?:[eE][-+]?\d+)?|(?<![\w.)\]])\.\d+)
      | (?P<word>[^\W\d_][\w'’]*)
      | (?P<sup></?sup>)
      | (?P<stop>\n[ \t>]*\n|(?<=[^\W\d_])-|-(?=[^\W\d_]))
      | (?P<drop>\s+|<!--.*?-->|</?[A-Za-z][^<>]*>|(?<!\s)\*|\*(?!\s)|_|`)
      | (?P<entity>&\#?\w+;)
      | (?P<mark>\\.|.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str, formulas: list[Span], filled: Mapping[int, str]) -> tuple[Token, list[Token]]:
    """The whole text as one group, formulas and brackets as groups in it; and all its numbers, wherever they stand.

    `filled` has what is printed in place of the placeholder at each offset.
    """
    builder = _Builder()
    at = 0
    for span in formulas:
        builder.add_all(_lex(_TEXT, text, at, span.start, filled))
        builder.open("$", span.start)
        builder.add_all(_lex(_TEX, text, span.tex_start, span.tex_start + len(span.tex), filled))
        builder.close_to("$", span.end)
        at = span.end
    builder.add_all(_lex(_TEXT, text, at, len(text), filled))
    return builder.whole(len(text)), builder.numbers


def _lex(
    pattern: re.Pattern, text: str, start: int, end: int, filled: Mapping[int, str] | None
) -> Iterator[Token]:
    """The tokens of a stretch of prose; an opening or closing bracket is a token too."""
    for match in pattern.finditer(text, start, end):
        if match["placeholder"] and filled is not None:
            # What it is filled with is read like the rest, but nobody typed it.
            inner = filled.get(match.start())
            if inner is None:
                yield Token("symbol", match[0], *match.span(), False, True)
            for token in _lex(pattern, inner or "", 0, len(inner or ""), None):
                yield Token(token.kind, token.text, *match.span(), False, token.symbolic)
        elif match["placeholder"]:
            yield Token("other", match[0], *match.span(), True)
        else:
            for kind, written in _kinds(match, pattern is _TEX):
                yield Token(kind, written, *match.span(), True, kind == "symbol")


def _kinds(match: re.Match, tex: bool) -> list[tuple[str, str]]:
    written, kind = match[0], match.lastgroup
    match kind:
        case "number" | "stop":
            return [(kind, written)]
        case "drop":
            return []
        case "e":
            return [("function", "e")]
        case "sup":
            return [("close", "}")] if written == "</sup>" else [("sign", "^"), ("open", "{")]
        case "word" if written in _WORD_FUNCTIONS:
            return [("function", written)]
        case "word":
            return [("stop", ""), ("symbol", written), ("stop", "")]
        case "entity":
            written = html.unescape(written)
            return [] if written.isspace() else [(_mark(written, tex), _SIGNS.get(written, written))]
    kind = _mark(written, tex)
    if kind == "drop":
        return []
    return [(kind, written if kind == "open" else _SIGNS.get(written, written.removeprefix("\\")))]


def _mark(mark: str, tex: bool) -> str:
    """The kind of a character or a command of TeX."""
    if mark in _SIGNS:
        return "sign"
    if mark in _RELATIONS:
        return "relation"
    for kind, marks in (("comma", {","}), ("open", _OPEN), ("close", _CLOSE)):
        if mark in marks and (tex or not mark.startswith("\\")):
            return kind
    if mark in _STOPS or (not tex and (mark.startswith("\\") or mark == "|")):
        return "stop"  # the bar of a table; in TeX it has several meanings
    if mark in _NO_MARK:
        return "drop"
    if mark.removeprefix("\\") in _FUNCTIONS and mark.startswith("\\"):
        return "function"
    return "symbol" if mark.strip("\\").isalpha() else "other"


class _Builder:
    """Makes groups of what stands between brackets. A bracket without its other half ends a side, as a comma does."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, int, bool, list[Token]]] = [("", 0, True, [])]
        self.numbers: list[Token] = []

    def add_all(self, found: Iterator[Token]) -> None:
        for token in found:
            if token.kind == "open":
                self.open(token.text, token.offset, token.typed)
            elif token.kind == "close" and self.stack[-1][0] not in ("", "$"):
                self.close(token.end)
            else:
                self.add(replace(token, kind="stop") if token.kind == "close" else token)

    def add(self, token: Token) -> None:
        if token.kind == "number":
            self.numbers.append(token)
        self.stack[-1][3].append(token)

    def open(self, bracket: str, offset: int, typed: bool = True) -> None:
        self.stack.append((bracket, offset, typed, []))

    def close(self, end: int) -> None:
        bracket, offset, typed, parts = self.stack.pop()
        symbolic = any(part.symbolic or part.kind == "relation" for part in parts)
        self.stack[-1][3].append(Token("group", bracket, offset, end, typed, symbolic, tuple(parts)))

    def close_to(self, bracket: str, end: int) -> None:
        while self.stack[-1][0] != bracket:
            self.close(end)
        self.close(end)

    def whole(self, end: int) -> Token:
        while len(self.stack) > 1:
            self.close(end)
        return Token("group", "", 0, end, True, True, tuple(self.stack[0][3]))


@dataclass(frozen=True)
class Side:
    """One side of an equation: its number and, where it is a single number, the digits as printed."""

    number: float
    printed: str | None
    percent: bool


def plain_number(side: tuple[Token, ...]) -> tuple[str, bool] | None:
    r"""The digits of a side that is a single number, such as -0.20, 20\% or 2.1 \times 10^{-4}; and whether per cent."""
    while len(side) == 1 and side[0].kind == "group":
        side = side[0].parts
    signs = [token.text for token in side[:1] if token.kind == "sign" and token.text in "+-"]
    match [(token.kind, token.text) for token in side[len(signs) :]]:
        case [("number", digits)]:
            printed, percent = digits, False
        case [("number", digits), ("sign", "%")]:
            printed, percent = digits, True
        case [("number", digits), ("sign", "*"), ("number", "10"), ("sign", "^"), ("group", "{")]:
            power = "".join(token.text for token in side[-1].parts)
            if not re.fullmatch(r"-?\d{1,2}", power):
                return None
            printed, percent = f"{digits}e{power}", False
        case _:
            return None
    return "".join(signs).replace("+", "") + _digits(printed), percent


def _digits(number: str) -> str:
    """Without the signs between thousands."""
    return re.sub(r"\{,\}|\\,|,", "", number)


def read_side(side: tuple[Token, ...]) -> Side:
    """The number of one side; raises Unreadable for whatever is not plain arithmetic, and for what has no number."""
    try:
        number = _Reader(side, 0).whole()
    except (ArithmeticError, TypeError, ValueError):  # a type error: the root of a negative number is complex
        raise Unreadable(side[0], "it has no number") from None
    if not isinstance(number, float) or not math.isfinite(number):
        raise Unreadable(side[0], "it has no number")
    printed, percent = plain_number(side) or (None, False)
    return Side(number, printed, percent)


class _Reader:
    """Reads a sum by recursive descent. Where two readings are possible, as in log 2 × 3 or 1/2(3), it reads none."""

    def __init__(self, parts: tuple[Token, ...], depth: int):
        self.parts = parts
        self.depth = depth
        self.at = 0
        if depth > DEEPEST:
            raise Unreadable(parts[0] if parts else None, f"brackets nest more than {DEEPEST} deep")

    def is_next(self, kind: str, *texts: str) -> bool:
        return (
            self.at < len(self.parts)
            and self.parts[self.at].kind == kind
            and (not texts or self.parts[self.at].text in texts)
        )

    def take(self) -> Token:
        if self.at == len(self.parts):
            raise self.stuck()
        self.at += 1
        return self.parts[self.at - 1]

    def stuck(self, back: int = 0) -> Unreadable:
        token = self.parts[self.at - back] if 0 <= self.at - back < len(self.parts) else None
        return Unreadable(token, "a number or a bracket is missing" if token is None else "this is not read")

    def inside(self, group: Token) -> float:
        return _Reader(group.parts, self.depth + 1).whole()

    def whole(self) -> float:
        number = self.sum()
        if self.at < len(self.parts):
            raise self.stuck()
        return number

    def sum(self) -> float:
        number = self.product()
        while self.is_next("sign", "+", "-"):
            number += self.product() if self.take().text == "+" else -self.product()
        return number

    def product(self) -> float:
        number, divided = self.factor(), False
        while True:
            if self.is_next("sign", "*", "/"):
                if self.take().text == "*":
                    number *= self.factor()
                else:
                    number, divided = number / self.factor(), True
            elif not divided and (self.is_next("group", "(", "[") or self.is_next("function", *_FACTORS)):
                number *= self.power()
            else:
                return number

    def factor(self) -> float:
        negative = False
        while self.is_next("sign", "+", "-"):
            negative ^= self.take().text == "-"
        return -self.power() if negative else self.power()

    def power(self) -> float:
        number = self.atom()
        if self.is_next("sign", "^"):
            self.take()
            number = number ** self.exponent()
        if self.is_next("sign", "%"):
            self.take()
            number /= 100
        return number

    def exponent(self) -> float:
        token = self.take()
        if token.kind == "group" and token.text == "{":
            return self.inside(token)
        if (
            token.kind == "number" and len(token.text) == 1
        ):  # TeX raises no more than one character without braces
            return float(token.text)
        raise self.stuck(1)

    def atom(self) -> float:
        token = self.take()
        match token.kind:
            case "number" if token.text.count(".") <= 1:
                return float(_digits(token.text))
            case "group" if token.text != r"\{":
                return self.inside(token)
            case "function":
                return self.function(token)
        raise self.stuck(1)

    def function(self, function: Token) -> float:
        match function.text:
            case "e":
                self.take()
                return math.exp(self.exponent())
            case "frac" | "tfrac" | "dfrac":
                return self.braces() / self.braces()
            case "sqrt":
                return math.sqrt(self.braces())
            case "min" | "max" as name:
                numbers = [_Reader(each, self.depth + 1).whole() for each in self.members()]
                return min(numbers) if name == "min" else max(numbers)
        bracket = self.is_next("group", "(", "[")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.stuck(1)
        number = self.inside(self.take()) if bracket else self.power()
        self.depth -= 1
        if self.is_next("sign", "^") or (not bracket and self.is_next("sign", "*", "/")):
            raise self.stuck()
        return math.exp(number) if function.text == "exp" else math.log(number)

    def braces(self) -> float:
        if not self.is_next("group", "{", "("):
            raise self.stuck()
        return self.inside(self.take())

    def members(self) -> list[tuple[Token, ...]]:
        """What stands between the commas of the next bracket."""
        if not self.is_next("group", "(", "[", "{"):
            raise self.stuck()
        members: list[list[Token]] = [[]]
        for token in self.take().parts:
            if token.kind == "comma":
                members.append([])
            else:
                members[-1].append(token)
        return [tuple(member) for member in members]
