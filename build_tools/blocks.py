"""Reads the YAML block of an item into typed fields."""

import builtins
import keyword
import math
import re
from collections.abc import Callable, Iterable

from build_tools import expression as language
from build_tools.errors import Place, did_you_mean
from build_tools.model import Answer, Check, Expression, FigureCall, Given, Value, Word
from build_tools.schema import ANSWER, CHECK, Key
from build_tools.source import SLUG
from build_tools.yaml_text import Mapping, Node, Sequence

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_DIGITS = re.compile(rf"{_NUMBER.pattern}|\[{_NUMBER.pattern}(, *{_NUMBER.pattern})*\]", re.ASCII)
_VALUE = re.compile(r"(?P<expression>.*?\S)\s+=\s+(?P<digits>\S.*)", re.DOTALL)
_SHORT = re.compile(r"[A-Z][A-Za-z0-9]+")
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
                f"it belongs to {', '.join(elsewhere.kinds)}; delete it"
                if elsewhere
                else did_you_mean(word.text, here)
            )
            report(word.place, "unknown-key", f'"{word.text}" is not a key here; {why}')
    for key in table:
        if kind in key.required and mapping.get(key.name) is None:
            report(
                mapping.place, "missing-key", f'the key "{key.name}" is missing; write {key.name}: {key.form}'
            )


def word(node: Node | None, report: Report) -> Word | None:
    """A word or a text. A bare true is kept for masks: where a word is meant, other readers of YAML see a truth."""
    text = _single(node, report)
    if text is not None and text.bare and text.text.lower() in _TRUTHS:
        report(text.place, "yaml-truth", f'"{text.text}" is a truth to YAML; put it between quotes')
        return None
    return text


def _single(node: Node | None, report: Report) -> Word | None:
    if node is None or isinstance(node, Word):
        return node
    report(node.place, "yaml-shape", "expected a single value, not a list or a mapping")
    return None


def plain_text(text: Word, what: str, report: Report, also: str = "") -> None:
    """Titles and claims are shown as they are, in places where Markdown and maths mean nothing."""
    sign = next((sign for sign in text.text if sign in "$\\`{}<[]*" + also), None)
    if sign is not None:
        report(text.place, "bad-text", f'{what} is plain text; "{sign}" does not belong into it')


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
    if not node.items:
        report(node.place, "yaml-empty", "the list is empty; write an element or delete the key")
    found = tuple(word(child, report) for child in node.items)
    return tuple(each for each in found if each is not None)


def _entries(node: Node | None, what: str, report: Report) -> tuple[tuple[Word, Node], ...]:
    if node is None:
        return ()
    if not isinstance(node, Mapping):
        report(node.place, "yaml-shape", f"expected {what}")
        return ()
    if not node.entries:
        report(node.place, "yaml-empty", f"nothing stands here; expected {what}")
    return node.entries


def _new_name(name: Word, report: Report) -> bool:
    if not _NAME.fullmatch(name.text):
        report(
            name.place,
            "bad-name",
            f'"{name.text}" cannot be a name; use letters, digits and _, starting with a letter',
        )
    elif name.text in language.RESERVED or keyword.iskeyword(name.text) or hasattr(builtins, name.text):
        report(
            name.place,
            "bad-name",
            f'"{name.text}" has a meaning of its own in expressions or in Python; choose another name, like {name.text}_0',
        )
    else:
        return True
    return False


def _expression(node: Node | None, report: Report) -> Expression | None:
    text = _single(node, report)
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
            parsed, faults = language.parse(text.text, text.place)
            for fault in faults:
                report(fault.place, fault.code, fault.message)
            if parsed and _shape(language.literal(parsed.tree)) is None:
                report(
                    text.place,
                    "bad-list",
                    "a list holds at least one element, and all are alike: numbers, truths, or lists of one length",
                )
            elif parsed:
                printed = text.text[1:-1] if text.text.startswith("[") else text.text
                found.append(Given(name.text, parsed, printed))
    return tuple(found)


def _shape(number: object) -> tuple | None:
    """The lengths of nested lists and the type at the bottom; None if the elements are not alike."""
    if not isinstance(number, tuple):
        return (type(number),)
    shapes = {_shape(each) for each in number}
    return (len(number), *shapes.pop()) if len(shapes) == 1 and None not in shapes else None


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
        text = _single(content, report)
        if text is None or not _new_name(name, report):
            continue
        match = _VALUE.fullmatch(text.text)
        digits = match and match["digits"]
        if not match or not _DIGITS.fullmatch(digits):
            report(
                text.place,
                "bad-value",
                f'"{text.text}" must read: expression = 1.25 (or, for a list, = [1.25, 3]), with blanks around the =',
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
    if not node.items:
        report(node.place, "yaml-empty", "the list is empty; write a check or delete the key")
    found = []
    for entry in node.items:
        if not isinstance(entry, Mapping):
            report(entry.place, "yaml-shape", "a check has the keys claim, holds and unless")
            continue
        keys(entry, CHECK, kind, report)
        claim, holds = word(entry.get("claim"), report), _expression(entry.get("holds"), report)
        if claim:
            plain_text(claim, "a claim", report)
        unless = entry.get("unless")
        changes: tuple[tuple[str, Expression], ...] = ()
        instead = None
        if isinstance(unless, Mapping):
            entries = _entries(unless, "{name: expression} or an expression", report)
            pairs = [(name.text, _expression(value, report)) for name, value in entries]
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
    if within and not (_NUMBER.fullmatch(within.text) and 0 < float(within.text) < math.inf):
        report(within.place, "bad-number", f'"{within.text}" must be a number above 0')
        return None
    return Answer(value, within) if value and within else None


def abbreviations(node: Node | None, report: Report) -> tuple[tuple[Word, Word], ...]:
    found = []
    for short, stands_for in _entries(node, "short forms: {KL: Kullback-Leibler}", report):
        meaning = word(stands_for, report)
        if not _SHORT.fullmatch(short.text):
            report(
                short.place,
                "bad-name",
                f'"{short.text}" cannot be an abbreviation; use letters and digits, starting with a capital letter',
            )
        elif meaning is not None:
            plain_text(meaning, "what an abbreviation stands for", report, also='"')
            found.append((short, meaning))
    return tuple(found)


def figure(node: Node | None, report: Report) -> FigureCall | None:
    entries = _entries(node, "{name: figure, argument: expression}", report)
    if not entries:
        return None
    named = node.get("name")
    if named is None:
        report(node.place, "missing-key", 'the key "name" is missing; it names a figure function')
    name = word(named, report)
    if name is None:
        return None
    arguments = [(key.text, _expression(value, report)) for key, value in entries if key.text != "name"]
    return FigureCall(name, tuple((key, value) for key, value in arguments if value))
