r"""From prose to tokens: numbers, signs and brackets, in text and in formulas.

A placeholder is read as what is printed in its place, so that what is judged is what a reader sees. Each token knows
whether its characters were typed.
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from build_tools.prose import PLACEHOLDER
from build_tools.tex import Span


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
_WORD_FUNCTIONS = {"log", "ln", "exp", "sqrt", "min", "max"}
_OPEN = {"(", "[", "{", r"\{"}
_CLOSE = {")", "]", "}", r"\}"}
# What ends a side without relating two numbers as equal.
_STOPS = set(';:?!."&<>≤≥≠–—…') | {
    rf"\{name}"
    for name in (
        *("\\", "quad", "qquad", "le", "leq", "ge", "geq", "lt", "gt", "ne", "neq"),
        *("to", "in", "mid", "sim", "implies", "iff", "Rightarrow", "dots", "ldots", "cdots"),
    )
}
# Words in a formula, such as a unit: a group of its own, which ends a side.
WORDS = r"\text{"
_NO_MARK = {rf"\{mark}" for mark in (*",;:! ", "left", "right", "displaystyle", "textstyle")}

_TEX = re.compile(
    rf"""(?P<placeholder>{PLACEHOLDER.pattern})
      | (?P<number>\d{{1,3}}(?:(?:\{{,\}}|\\,)\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*|\.\d+)
      | (?P<drop>\s+|~|\\[bB]ig+[lrm]?(?![A-Za-z]))
      | (?P<stop>\\(?:begin|end)\{{[A-Za-z*]+\}})
      | (?P<words>\\(?:text|textbf|mbox)\s*\{{)
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
        case "words":
            return [("open", WORDS)]
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
        symbolic = bracket != WORDS and any(part.symbolic or part.kind == "relation" for part in parts)
        self.stack[-1][3].append(Token("group", bracket, offset, end, typed, symbolic, tuple(parts)))
        if bracket == WORDS:
            self.add(Token("stop", "", end, end, typed))

    def close_to(self, bracket: str, end: int) -> None:
        while self.stack[-1][0] != bracket:
            self.close(end)
        self.close(end)

    def whole(self, end: int) -> Token:
        while len(self.stack) > 1:
            self.close(end)
        return Token("group", "", 0, end, True, True, tuple(self.stack[0][3]))
