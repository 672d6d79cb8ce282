"""Reads the YAML block of an item into typed fields."""

import re
from collections.abc import Callable, Iterable

from build_tools import expression as language
from build_tools.errors import Fault, Place, did_you_mean
from build_tools.model import Answer, Check, Expression, FigureCall, Given, Value, Word
from build_tools.schema import ANSWER, CHECK, Key
from build_tools.source import SLUG
from build_tools.yaml_text import Mapping, Node, Sequence

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_VALUE = re.compile(r"(?P<expression>.*?\S)\s+=\s+(?P<digits>\S.*)", re.DOTALL)
_TRUTHS = ("true", "false")

# Grows a list of faults: one pass over a block finds all that is wrong in it.
Report = Callable[[Place, str, str], None]


def keys(mapping: Mapping, table: Iterable[Key], kind: str, report: Report) -> None:
    """Unknown keys, keys of another kind, and keys that are missing."""
    table = tuple(table)
    here = [key.name for key in table if kind in key.kinds]
    for word, _ in mapping.entries:
        if word.text not in here:
            elsewhere = next((key for key in table if key.name == word.text), None)
            why = (
                f"it belongs to {', '.join(elsewhere.kinds)}" if elsewhere else did_you_mean(word.text, here)
            )
            report(word.place, "unknown-key", f'"{word.text}" is not a key here; {why}')
    for key in table:
        if kind in key.required and mapping.get(key.name) is None:
            report(
                mapping.place, "missing-key", f'the key "{key.name}" is missing; write {key.name}: {key.form}'
            )


def word(node: Node | None, report: Report) -> Word | None:
    if node is None or isinstance(node, Word):
        return node
    report(node.place, "yaml-shape", "expected a single value, not a list or a mapping")
    return None


def slugs(node: Node | None, report: Report) -> tuple[Word, ...]:
    words = words_of(node, report)
    for each in words:
        if not SLUG.fullmatch(each.text):
            report(
                each.place,
                "bad-id",
                f'"{each.text}" must be lower-case words joined by hyphens, like clip-range',
            )
    return words


def words_of(node: Node | None, report: Report) -> tuple[Word, ...]:
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        report(node.place, "yaml-shape", "expected a list: [first, second]")
        return ()
    found = tuple(word(child, report) for child in node.items)
    return tuple(each for each in found if each is not None)


def _entries(node: Node | None, what: str, report: Report) -> tuple[tuple[Word, Node], ...]:
    if node is None:
        return ()
    if not isinstance(node, Mapping):
        report(node.place, "yaml-shape", f"expected {what}")
        return ()
    return node.entries


def _new_name(name: Word, report: Report) -> bool:
    if not _NAME.fullmatch(name.text):
        report(
            name.place,
            "bad-name",
            f'"{name.text}" cannot be a name; use letters, digits and _, starting with a letter',
        )
    elif name.text in language.RESERVED:
        report(
            name.place, "bad-name", f'"{name.text}" is a word of the expression language; choose another name'
        )
    else:
        return True
    return False


def _expression(node: Node | None, report: Report) -> Expression | None:
    text = word(node, report)
    if text is None:
        return None
    parsed, faults = language.parse(text.text, text.place)
    for fault in faults:
        report(fault.place, fault.code, fault.message)
    return parsed


def given(node: Node | None, report: Report) -> tuple[Given, ...]:
    found = []
    for name, value in _entries(node, "inputs: {name: number}", report):
        text = _literal_text(value, report)
        if _new_name(name, report) and text is not None:
            parsed, _ = language.parse(text.text, text.place)
            printed = re.sub(r"[\[\]]", "", text.text)
            found.append(Given(name.text, parsed, printed))
    return tuple(found)


def _literal_text(node: Node, report: Report) -> Word | None:
    """A number, or nested lists of numbers or truths, as one text."""
    if isinstance(node, Word):
        if _NUMBER.fullmatch(node.text) or node.text in _TRUTHS:
            return node
        report(
            node.place,
            "bad-number",
            f'"{node.text}" is not a number; an input is a number, a list of numbers, or a list of true and false',
        )
        return None
    if isinstance(node, Mapping):
        report(node.place, "yaml-shape", "an input is a number or a list of numbers")
        return None
    inner = [_literal_text(child, report) for child in node.items]
    if any(each is None for each in inner):
        return None
    return Word(f"[{', '.join(each.text for each in inner)}]", node.place)


def values(node: Node | None, report: Report) -> tuple[Value, ...]:
    found = []
    for name, content in _entries(node, "values, one a line: name: expression = digits", report):
        text = word(content, report)
        if text is None or not _new_name(name, report):
            continue
        match = _VALUE.fullmatch(text.text)
        digits = match and match["digits"]
        if not match or not re.fullmatch(rf"\[?{_NUMBER.pattern}(, *{_NUMBER.pattern})*\]?", digits):
            report(
                text.place,
                "bad-value",
                f'"{text.text}" must read: expression = digits, with blanks around the last =',
            )
            continue
        at = Place(text.place.path, text.place.line, text.place.column + match.start("digits"))
        parsed, faults = language.parse(match["expression"], text.place)
        literal, more = language.parse(digits, at)
        for fault in (*faults, *more):
            report(fault.place, fault.code, fault.message)
        if parsed and literal:
            found.append(Value(name.text, parsed, digits.strip("[]"), literal))
    return tuple(found)


def checks(node: Node | None, kind: str, report: Report) -> tuple[Check, ...]:
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        report(node.place, "yaml-shape", "expected a list of checks, each starting with - claim:")
        return ()
    found = []
    for entry in node.items:
        if not isinstance(entry, Mapping):
            report(entry.place, "yaml-shape", "a check has the keys claim, holds and unless")
            continue
        keys(entry, CHECK, kind, report)
        claim, holds = word(entry.get("claim"), report), _expression(entry.get("holds"), report)
        unless = entry.get("unless")
        changes: tuple[tuple[str, Expression], ...] = ()
        instead = None
        if isinstance(unless, Mapping):
            pairs = [(name.text, _expression(value, report)) for name, value in unless.entries]
            changes = tuple((name, value) for name, value in pairs if value)
        elif unless is not None:
            instead = _expression(unless, report)
        for each in (holds, instead):
            if each is not None and not _is_comparison(each):
                report(
                    each.place,
                    "bad-check",
                    "expected a comparison (==, !=, <, <=, >, >=) or close(a, b, tolerance)",
                )
        if claim and holds and (changes or instead):
            found.append(Check(claim, holds, changes, instead))
    return tuple(found)


def _is_comparison(expression: Expression) -> bool:
    tree = expression.tree
    return type(tree).__name__ == "Compare" or (type(tree).__name__ == "Call" and tree.func.id == "close")


def answer(node: Node | None, kind: str, report: Report) -> Answer | None:
    if node is None:
        return None
    if not isinstance(node, Mapping):
        report(node.place, "yaml-shape", "expected {value: name, within: number}")
        return None
    keys(node, ANSWER, kind, report)
    value, within = word(node.get("value"), report), word(node.get("within"), report)
    if within and not (_NUMBER.fullmatch(within.text) and float(within.text) > 0):
        report(within.place, "bad-number", f'"{within.text}" must be a number above 0')
        return None
    return Answer(value, within) if value and within else None


def figure(node: Node | None, report: Report) -> FigureCall | None:
    entries = _entries(node, "{name: figure, argument: expression}", report)
    if not entries:
        return None
    name = word(dict((key.text, value) for key, value in entries).get("name"), report)
    if name is None:
        report(node.place, "missing-key", 'the key "name" is missing; it names a figure function')
        return None
    arguments = [(key.text, _expression(value, report)) for key, value in entries if key.text != "name"]
    return FigureCall(name, tuple((key, value) for key, value in arguments if value))
