r"""No typed arithmetic: every number and equation that an author typed is true arithmetic, or a fault.

Numbers come from `{=name}`, equations from `{==name}`. What is typed all the same must be arithmetic that can be read
and is true at the printed digits. So that formulas can be written, whole numbers of one or two digits may stand in
them, and a symbol may be 0 or 1: those name a case (off, unchanged, all of it), not a quantity.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from build_tools.arithmetic import Side, Unreadable, plain_number, read_side
from build_tools.digits import shown, verify
from build_tools.errors import EXTERNAL, Fault
from build_tools.model import Bank, Document, Item, Prose, Value
from build_tools.prose import (
    LINK,
    placeholders,
    replacements,
    values_by_name,
    without_code,
    without_placeholders,
)
from build_tools.tex import find_math
from build_tools.tokens import WORDS, Token, tokens

LONE = 3  # a number of so many digits or more is a quantity
_WHAT_TO_DO = "write {=name} or {==name}, or arithmetic that is true"
# Where a text is under judgement, an equation may be false on purpose.
JUDGED = ("Claim",)
SOURCES = "Sources"

_YEAR = re.compile(r"(?<![\w.-])(?:19|20)\d\d(?![\w-]|\.\d)")
_ARXIV = re.compile(r"\barXiv:\d{4}\.\d{4,5}\b")
_LIST_ITEM = re.compile(r"^[ \t]*[-*+] .*$", re.MULTILINE)
# What is no running text: the marks of lists, headings, lists of attributes, bare addresses.
_MARKS = re.compile(r"^([ \t>]*)(?:[-*+]|\d{1,2}[.)])(?=[ \t])", re.MULTILINE)
_NO_TEXT = re.compile(r"^#{1,6}[ \t].*$|\{:?\s*[#.][A-Za-z][^{}\n]*\}|https?://[^\s)>\]]+", re.MULTILINE)


class Report(NamedTuple):
    """The faults, how many equations `{==name}` generated, and how many typed ones were read and are true."""

    faults: tuple[Fault, ...]
    generated: int
    true: int


def check_equations(bank: Bank, worked: Iterable[str]) -> Report:
    """All prose of the bank. Whether an equation is true is asked only where the numbers of the item are right."""
    right = frozenset(worked)
    reports = []
    for document in bank.documents:
        reports.append(check_prose(document.intro, {}, {}))
        for item in document.items:
            reports += _item(document, item, item.id in right)
    return Report(
        tuple(fault for report in reports for fault in report.faults),
        sum(report.generated for report in reports),
        sum(report.true for report in reports),
    )


def _item(document: Document, item: Item, right: bool) -> Iterator[Report]:
    printed = {g.name: g.printed for g in item.given} | {v.name: v.printed for v in item.values}
    sources = document.kind == "page" and item.title == SOURCES
    for section in item.sections:
        report = check_prose(section.prose, printed, values_by_name(item.values), sources=sources)
        if section.heading in JUDGED or not right:
            report = report._replace(faults=tuple(f for f in report.faults if f.code != "false-equation"))
        yield report


def check_prose(
    prose: Prose, printed: Mapping[str, str], values: Mapping[str, Value], *, sources: bool = False
) -> Report:
    """One run of prose; in a list of `sources` years are no quantities."""
    # Without names there is nothing to fill in, and each placeholder is a fault already.
    filled = replacements(prose, printed, values) if printed else {}
    formulas = find_math(without_placeholders(prose.text))
    text = _running_text(prose.text, [(span.start, span.end) for span in formulas])
    whole, numbers = tokens(text, formulas, filled)
    judge = _Judge(prose)
    for sides, typed in _chains(whole):
        judge.chain(sides, typed)
    allowed = list(_allowed(prose.text, sources))
    for number in numbers:
        mantissa = re.split("[eE]", number.text)[0]
        settled = not number.typed or number.offset in judge.settled
        if not settled and sum(map(str.isdigit, mantissa)) >= LONE:
            if not any(start <= number.offset < end for start, end in allowed):
                judge.typed_number(number, "a number of three digits or more is typed")
    generated = sum(placeholder.equation for placeholder in placeholders(prose))
    return Report(tuple(sorted(judge.faults)), generated, judge.true)


def _running_text(text: str, formulas: list[tuple[int, int]]) -> str:
    """The text with blanks for what is no prose: code, headings, targets of links. Every offset stays true."""
    bare = list(without_code(text))
    for start, end in formulas:
        bare[start:end] = "\0" * (end - start)
    outside = "".join(bare)
    spans = [match.span() for match in _NO_TEXT.finditer(outside)]
    for match in LINK.finditer(outside):
        kind = next(kind for kind in ("link", "definition", "html") if match[kind] is not None)
        spans.append((match.start(kind), match.end()))
    for start, end in spans:
        bare[start:end] = " " * (end - start)
    for match in _MARKS.finditer(outside):
        bare[match.end() - 1] = ";"
        bare[match.end(1) : match.end() - 1] = " " * (match.end() - 1 - match.end(1))
    for start, end in formulas:
        bare[start:end] = text[start:end]
    return "".join(bare)


def _allowed(text: str, sources: bool) -> Iterator[tuple[int, int]]:
    """Where years and numbers of papers stand: in the words of a link to elsewhere, and in a list of sources."""
    for match in LINK.finditer(text):
        if match["link"] is not None and match["link"].startswith(EXTERNAL):
            for pattern in (_YEAR, _ARXIV):
                for found in pattern.finditer(text, match.start(), match.start("link")):
                    yield found.span()
    if sources:
        for entry in _LIST_ITEM.finditer(text):
            for found in _YEAR.finditer(text, *entry.span()):
                yield found.span()


Tokens = tuple[Token, ...]


def _chains(whole: Token) -> Iterator[tuple[list[Tokens], list[bool]]]:
    """The sides of each chain of equations, a = b = c, and of each sign between them whether it was typed.

    A sign with nothing before it goes on from the side before, as the second line of an aligned formula does; one with
    nothing after it goes on to the side after.
    """
    waiting = [whole]
    while waiting:
        chain: tuple[list[Tokens], list[bool]] = ([], [])
        sides: list[list[Token]] = [[]]
        signs: list[bool] = []
        for token in (*_without_indices(waiting.pop().parts), None):
            if token is None or token.kind == "comma" or token.kind == "stop" and (sides[-1] or not signs):
                found = [tuple(side) for side in sides]
                if signs and not found[0] and chain[0]:
                    chain = (chain[0] + found[1:], chain[1] + signs)
                elif signs or found[0]:
                    if chain[1]:
                        yield chain
                    chain = (found, signs)
                sides, signs = [[]], []
            elif token.kind == "relation":
                sides.append([])
                signs.append(token.typed)
            elif token.kind == "group" and token.text == WORDS:
                waiting.append(token)
            elif token.kind != "stop":
                sides[-1].append(token)
                if token.kind == "group":
                    waiting.append(token)
        if chain[1]:
            yield chain


def _without_indices(parts: Tokens) -> Iterator[Token]:
    """The tokens without the indices of symbols, which are parts of names."""
    last: Token | None = None
    index = False
    for token in parts:
        if index:
            index = False
        elif token.text == "_" and last is not None and last.symbolic:
            index = True
        else:
            last = token
            yield token


class _Judge:
    """Collects the verdicts on one run of prose. `settled` has the offsets of the numbers that are judged."""

    def __init__(self, prose: Prose):
        self.prose = prose
        self.faults: list[Fault] = []
        self.settled: set[int] = set()
        self.true = 0

    def chain(self, sides: list[Tokens], typed: list[bool]) -> None:
        numeric = [side for side in sides if side and not any(token.symbolic for token in side)]
        computed = [side for side in numeric if plain_number(side) is None or not _typed(side)]
        if len(numeric) > 1 and computed:
            self.equation(sides, numeric, typed)
            numeric = []
        for side in sides:
            self.beside_a_symbol(side, side in numeric)

    def beside_a_symbol(self, side: Tokens, is_number: bool) -> None:
        """A side that is compared with no other number: its own numbers may be 0, 1 and the coefficients of a formula."""
        flat = list(_flat(side))
        formula = not is_number or any(not token.typed for token in flat)
        for number in _typed(side):
            if number.offset in self.settled:
                continue
            if is_number and plain_number(side) is not None:
                if number.text not in ("0", "1"):
                    self.typed_number(number, "a number is typed where a symbol gets its value")
            elif not formula or not re.fullmatch(r"\d{1,2}", number.text):
                self.typed_number(number, "a number is typed in an equation that cannot be checked")
        if is_number and formula and not any(token.kind == "comma" for token in flat):
            self.read(side)

    def equation(self, sides: list[Tokens], numeric: list[Tokens], typed: list[bool]) -> None:
        """Several sides are numbers: each must be what the one before it comes to."""
        for side in numeric:
            self.settled.update(number.offset for number in _typed(side))
        read = [(side, number) for side in numeric if (number := self.read(side))]
        if len(read) < len(numeric):
            return
        for (left_tokens, left), (right_tokens, right) in pairwise(read):
            if hint := _difference(left, right):
                at = left_tokens if left.printed and not right.printed else right_tokens
                written = self.written([token for side in sides for token in side])
                message = f'"{written}" is false: {hint}; correct it, or write {{==name}}'
                self.report(at[0].offset, "false-equation", message)
                return
        places = [place for place, side in enumerate(sides) if side in numeric]
        self.true += sum(any(typed[one:other]) for one, other in pairwise(places))

    def read(self, side: Tokens) -> Side | None:
        try:
            return read_side(side)
        except Unreadable as stop:
            at = stop.token.offset if stop.token else side[0].offset
            message = f'"{self.written(list(side))}" cannot be read as arithmetic: {stop}; {_WHAT_TO_DO}'
            self.report(at, "unread-equation", message)
            return None

    def typed_number(self, number: Token, reason: str) -> None:
        if number.offset not in self.settled:
            self.settled.add(number.offset)
            self.report(number.offset, "typed-number", f'"{number.text}": {reason}; {_WHAT_TO_DO}')

    def written(self, parts: list[Token]) -> str:
        """The characters from the first token to the last."""
        start, end = min(part.offset for part in parts), max(part.end for part in parts)
        return " ".join(self.prose.text[start:end].split())

    def report(self, offset: int, code: str, message: str) -> None:
        self.faults.append(Fault(self.prose.place(offset), code, message))


def _flat(side: Tokens) -> Iterator[Token]:
    waiting = list(side)
    while waiting:
        token = waiting.pop()
        yield token
        waiting += token.parts


def _typed(side: Tokens) -> list[Token]:
    return [token for token in _flat(side) if token.kind == "number" and token.typed]


def _difference(left: Side, right: Side) -> str:
    """Why the two differ at the printed digits; empty if they do not."""
    digits, exact = (right, left) if right.printed else (left, right)
    if digits.printed is None:
        if math.isclose(left.number, right.number, rel_tol=1e-9, abs_tol=1e-12):
            return ""
        return f"the sides come to {shown(left.number)} and {shown(right.number)}"
    verdict = verify(exact.number * (100 if digits.percent else 1), digits.printed)
    return "" if verdict.ok else verdict.hint
