"""Strict YAML: every scalar is text exactly as typed, every node knows its place, and YAML's traps are faults."""

import re
from dataclasses import dataclass

import yaml

from build_tools.errors import Fault, Place
from build_tools.model import Word

try:  # the C parser is ten times faster, and not in every wheel
    from yaml import CSafeLoader as _Loader
except ImportError:  # pragma: no cover
    from yaml import SafeLoader as _Loader

DEEPEST = 8


@dataclass(frozen=True)
class Sequence:
    items: tuple["Node", ...]
    place: Place


@dataclass(frozen=True)
class Mapping:
    entries: tuple[tuple[Word, "Node"], ...]
    place: Place

    def get(self, name: str) -> "Node | None":
        return next((node for key, node in self.entries if key.text == name), None)


Node = Word | Sequence | Mapping

# Words that YAML readers turn into truths or nothing. true and false are kept: they are the members of a mask.
_NOT_WORDS = re.compile(r"(?i:yes|no|on|off|null|~)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028\u2029\ufeff]")


def read(text: str, path: str, line: int) -> tuple[Mapping | None, list[Fault]]:
    """Reads a YAML mapping that starts at `line` of the file."""

    def place(mark: yaml.Mark) -> Place:
        return Place(path, line + mark.line, mark.column + 1)

    if control := _CONTROL.search(text):
        before = text[: control.start()]
        at = Place(path, line + before.count("\n"), len(before) - (before.rfind("\n") + 1) + 1)
        return None, [
            Fault(
                at,
                "yaml-control",
                f"the control character U+{ord(control.group()):04X} is not allowed here; delete it",
            )
        ]
    try:
        # Anchors are found before the tree is built, so that a nest of aliases costs nothing.
        for event in yaml.parse(text, Loader=_Loader):
            if getattr(event, "anchor", None) is not None:
                return None, [
                    Fault(
                        place(event.start_mark),
                        "yaml-anchor",
                        f'anchors and aliases (& and *, here "{event.anchor}") are not allowed; write the text out, or quote it',
                    )
                ]
            if getattr(event, "tag", None) is not None:
                return None, [
                    Fault(
                        place(event.start_mark),
                        "yaml-tag",
                        "tags are not allowed; delete the word that starts with !, or put the text between quotes",
                    )
                ]
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return None, [
            Fault(
                place(mark) if mark else Place(path, line, 1),
                "yaml-syntax",
                f'{error.problem or error.context}; indent by blanks, and put text that holds ": ", " #", brackets or quotes between single quotes',
            )
        ]
    except (yaml.YAMLError, RecursionError) as error:
        return None, [Fault(Place(path, line, 1), "yaml-syntax", f"this is not YAML: {error}")]
    if root is None:
        return Mapping((), Place(path, line, 1)), []
    faults: list[Fault] = []
    node = _convert(root, place, text.split("\n"), faults, 0)
    if faults:
        return None, faults
    if not isinstance(node, Mapping):
        return None, [Fault(place(root.start_mark), "yaml-shape", "expected lines of the form key: value")]
    return node, []


def _convert(node: yaml.Node, place, lines: list[str], faults: list[Fault], depth: int) -> Node | None:
    at = place(node.start_mark)
    if depth > DEEPEST:
        faults.append(Fault(at, "yaml-deep", f"nested more than {DEEPEST} deep; flatten it"))
        return None
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, at, lines, faults)
    if isinstance(node, yaml.SequenceNode):
        return Sequence(tuple(_convert(child, place, lines, faults, depth + 1) for child in node.value), at)
    entries: list[tuple[Word, Node]] = []
    first: dict[str, Place] = {}
    for key, value in node.value:
        key_place = place(key.start_mark)
        if not isinstance(key, yaml.ScalarNode):
            faults.append(Fault(key_place, "yaml-shape", "a key must be a word"))
            continue
        if key.value in first:
            faults.append(
                Fault(
                    key_place,
                    "duplicate-key",
                    f'the key "{key.value}" stands already in line {first[key.value].line}; delete one of the two',
                )
            )
            continue
        first[key.value] = key_place
        entries.append((Word(key.value, key_place), _convert(value, place, lines, faults, depth + 1)))
    return Mapping(tuple(entries), at)


def _scalar(node: yaml.ScalarNode, at: Place, lines: list[str], faults: list[Fault]) -> Word:
    bare = not node.style  # the C parser says "", the other one None
    if node.style == '"' and "\\" in _raw(node, lines):
        faults.append(
            Fault(
                at,
                "yaml-backslash",
                "a backslash between double quotes is an escape that changes the text; use single quotes",
            )
        )
    elif not node.value.strip():
        faults.append(
            Fault(
                at,
                "yaml-empty",
                "nothing stands here; write a value after the colon and a blank, put quotes around text that holds "
                "a comma, or delete the key",
            )
        )
    elif bare and _NOT_WORDS.fullmatch(node.value):
        faults.append(
            Fault(
                at,
                "yaml-truth",
                f'"{node.value}" is a truth or nothing to YAML; put it between quotes if the word is meant',
            )
        )
    elif control := _CONTROL.search(node.value):
        faults.append(
            Fault(
                at,
                "yaml-control",
                f"the control character U+{ord(control.group()):04X} is not allowed here; delete it",
            )
        )
    # The text starts after its quote.
    start = Place(at.path, at.line, at.column + 1) if node.style in ("'", '"') else at
    return Word(node.value, start, bare=bare)


def _raw(node: yaml.ScalarNode, lines: list[str]) -> str:
    start, end = node.start_mark, node.end_mark
    if start.line == end.line:
        return lines[start.line][start.column : end.column]
    return "\n".join(
        [lines[start.line][start.column :], *lines[start.line + 1 : end.line], lines[end.line][: end.column]]
    )
