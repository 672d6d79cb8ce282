"""Faults in content: where, what, and what to do. The lowest layer: it imports nothing of ours."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

# What starts a link to elsewhere; any other link is relative to its file.
EXTERNAL = ("https://", "http://", "mailto:")


@dataclass(frozen=True, order=True)
class Place:
    """A position in a content file; line and column count from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, order=True)
class Fault:
    """One thing that is wrong, printed as `path:line:column: code: message`."""

    place: Place
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.code}: {self.message}"


class ContentError(Exception):
    """The content has faults; the text is their list, one a line."""

    def __init__(self, faults: Iterable[Fault]):
        self.faults = tuple(sorted(set(faults)))
        super().__init__("\n".join(map(str, self.faults)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Names the nearest known word, or all of them where none is near and the list is short."""
    words = sorted(set(known))
    near = difflib.get_close_matches(name, words, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    if not words:
        return "there is none to choose from"
    if len(words) <= 24:
        return f"known: {', '.join(words)}"
    return "no known name is near"
