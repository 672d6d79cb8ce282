"""Cuts a content file into front matter, introduction, items and sections. Knows shapes, not meanings."""

import re
from dataclasses import dataclass
from itertools import pairwise

from build_tools.errors import Fault, Place
from build_tools.model import Prose, Section, Word

_ITEM = re.compile(r"##[ \t]*(?P<title>.*?)[ \t]*(?:\{#(?P<id>[^}]*)\})?[ \t]*")
_SECTION = re.compile(r"###[ \t]*(?P<heading>.*?)[ \t]*")
_HEADING = re.compile(r"(#{1,3})(?:[ \t]|$)")
_GLUED = re.compile(r"#{1,6}[^#\s]")  # a heading to Python-Markdown, though not to most
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class RawItem:
    title: Word
    id: Word | None
    block: Prose | None  # the text inside the yaml fence
    body: Prose  # what follows, up to the next item
    sections: tuple[tuple[Section, Place], ...]  # the body cut at its ### headings
    stray: Place | None  # prose before the first ### heading
    closed: bool  # False: its yaml block has no end, so that nothing more can be told


@dataclass(frozen=True)
class RawFile:
    front: Prose
    intro: Prose
    items: tuple[RawItem, ...]


def split(text: str, path: str) -> tuple[RawFile | None, list[Fault]]:
    lines = text.split("\n")
    if not text.strip():
        return None, [
            Fault(
                Place(path, 1, 1),
                "empty-file",
                "the file is empty; write its front matter and an item, or delete it",
            )
        ]
    if lines[0].rstrip() != "---":
        return None, [
            Fault(
                Place(path, 1, 1),
                "front-matter",
                "a content file starts with a line ---, then kind: and title:, then a line ---",
            )
        ]
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return None, [
            Fault(
                Place(path, 1, 1),
                "front-matter",
                "the front matter is not closed; add a line --- after its last key",
            )
        ]

    def prose(start: int, stop: int) -> Prose:
        while start < stop and not lines[start].strip():
            start += 1
        return Prose("\n".join(lines[start:stop]).rstrip(), path, start + 1)

    marks = _headings(lines, end + 1)
    tops = [at for at, depth in marks if depth == 2]
    reasons = {
        0: "write a blank after the # signs of a heading, or a backslash before them if none is meant",
        1: "the page title is the key title of the front matter; use ## for an item",
    }
    faults = [
        Fault(Place(path, at + 1, 1), "heading", reasons[depth]) for at, depth in marks if depth in reasons
    ]
    intro = prose(end + 1, tops[0] if tops else len(lines))
    items = []
    for at, stop in pairwise([*tops, len(lines)]):
        item, more = _item(
            lines, at, stop, [m for m, depth in marks if depth == 3 and at < m < stop], path, prose
        )
        items.append(item)
        faults += more
    return RawFile(prose(1, end), intro, tuple(items)), faults


def _headings(lines: list[str], start: int) -> list[tuple[int, int]]:
    """Line index and depth of each heading of depth 1 to 3 outside fences; depth 0 where the blank is missing."""
    found, at = [], start
    while at < len(lines):
        if fence := _FENCE.match(lines[at]):
            at = _after_fence(lines, at, fence[1])
            continue
        if heading := _HEADING.match(lines[at]):
            found.append((at, len(heading[1])))
        elif _GLUED.match(lines[at]):
            found.append((at, 0))
        at += 1
    return found


def _after_fence(lines: list[str], at: int, marker: str) -> int:
    """The line after the fence that opens in line `at`; the next line if it does not close, for then it is none.

    One that opens again before it closes was forgotten to be closed.
    """
    mark = re.compile(rf" {{0,3}}{marker[0]}{{{len(marker)},}}[ \t]*(.*)")
    for i in range(at + 1, len(lines)):
        if match := mark.fullmatch(lines[i]):
            return at + 1 if match[1] else i + 1
    return at + 1


def _item(lines, at, stop, section_lines, path, prose) -> tuple[RawItem, list[Fault]]:
    faults: list[Fault] = []
    match = _ITEM.fullmatch(lines[at])
    title = Word(match["title"], Place(path, at + 1, match.start("title") + 1))
    id_ = Word(match["id"], Place(path, at + 1, match.start("id") + 1)) if match["id"] is not None else None
    body_start = at + 1
    block, closed = None, True
    first = next((i for i in range(at + 1, stop) if lines[i].strip()), stop)
    if first < stop and re.fullmatch(r"```[ \t]*yaml[ \t]*", lines[first]):
        close = _after_fence(lines, first, "```") - 1
        if close == first:
            faults.append(
                Fault(
                    Place(path, first + 1, 1),
                    "open-fence",
                    "the yaml block is not closed; add a line ``` after it",
                )
            )
            body_start, closed = stop, False
        else:
            block = Prose("\n".join(lines[first + 1 : close]), path, first + 2)
            body_start = close + 1
    cuts = [i for i in section_lines if i >= body_start]
    sections = tuple(
        (Section(_SECTION.fullmatch(lines[i])["heading"], prose(i + 1, j)), Place(path, i + 1, 1))
        for i, j in pairwise([*cuts, stop])
    )
    before = prose(body_start, cuts[0] if cuts else stop)
    stray = Place(path, before.line, 1) if before.text else None
    return RawItem(title, id_, block, prose(body_start, stop), sections, stray, closed), faults
