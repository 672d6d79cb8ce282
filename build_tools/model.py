"""What content is, before and after each stage: frozen data, no behaviour, no I/O.

Document, Item ...   as written by an author          (load)
Outcome, Worked      plus the numbers and verdicts    (evaluate)
Drawn                plus the figures                 (figures)
Page                 the Markdown of one page         (render)
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from build_tools.errors import Place

Number = float | bool | tuple  # a number, a truth, or nested tuples of them


@dataclass(frozen=True)
class Word:
    """A piece of text from a YAML block, exactly as typed."""

    text: str
    place: Place
    bare: bool = field(default=False, compare=False)  # without quotes


@dataclass(frozen=True)
class Prose:
    """A run of Markdown as written; `line` is the line of its first character in the file."""

    text: str
    path: str
    line: int

    def place(self, offset: int) -> Place:
        before = self.text[:offset]
        return Place(self.path, self.line + before.count("\n"), offset - (before.rfind("\n") + 1) + 1)


@dataclass(frozen=True)
class Expression:
    """An expression of the closed language: its text, its checked tree, and where it stands."""

    text: str
    place: Place
    tree: ast.expr = field(compare=False, repr=False)


@dataclass(frozen=True)
class Given:
    """An input: `rho: 1.6`. Its expression is a literal; `printed` is what a reader sees."""

    name: str
    expression: Expression
    printed: str


@dataclass(frozen=True)
class Value:
    """A computed number: `used: clipped_surrogate(rho, A, epsilon=epsilon) = 2.4`."""

    name: str
    expression: Expression
    printed: str
    digits: Expression  # `printed`, as a literal


@dataclass(frozen=True)
class Check:
    """A claim that is executed: `holds` must be true, and false once `unless` is applied."""

    claim: Word
    holds: Expression
    changes: tuple[tuple[str, Expression], ...]  # unless: {rho: 1.1}
    instead: Expression | None  # unless: an expression


@dataclass(frozen=True)
class Answer:
    value: Word
    within: Word


@dataclass(frozen=True)
class FigureCall:
    """`figure: {name: clipped-surrogate, A: A, mark: rho}`."""

    name: Word
    arguments: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Section:
    """The prose under one `###` heading."""

    heading: str
    prose: Prose


@dataclass(frozen=True)
class Item:
    """One question, exercise, erratum, or section of a running page."""

    kind: str
    id: str
    title: str
    place: Place
    sections: tuple[Section, ...]
    topics: tuple[Word, ...] = ()
    see: tuple[Word, ...] = ()
    errata: tuple[Word, ...] = ()
    aliases: tuple[Word, ...] = ()
    embed: Word | None = None
    abbreviations: tuple[tuple[Word, Word], ...] = ()  # each with what it stands for
    verdict: Word | None = None
    given: tuple[Given, ...] = ()
    values: tuple[Value, ...] = ()
    checks: tuple[Check, ...] = ()
    answer: Answer | None = None
    figure: FigureCall | None = None


@dataclass(frozen=True)
class Document:
    """One content file: a page."""

    path: str  # relative to the project, for messages and edit links: content/exercises/level-2.md
    uri: str  # relative to content/: exercises/level-2.md
    kind: str
    title: str
    level: int | None
    intro: Prose
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Bank:
    """All content, as written."""

    documents: tuple[Document, ...]


@dataclass(frozen=True)
class Comparison:
    """The outcome of one run of a check: the text of both sides' results, and the verdict."""

    text: str
    holds: bool


@dataclass(frozen=True)
class CheckOutcome:
    result: Comparison
    changes: Mapping[str, Number]  # what the inputs were changed to
    counter: Comparison


@dataclass(frozen=True)
class Function:
    """A library function that an item calls: where it lives, and which parameters take plain numbers or words."""

    module: str
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What evaluating an item gave: plain Python numbers only."""

    values: Mapping[str, Number]
    checks: tuple[CheckOutcome, ...]
    figure: Mapping[str, float]
    functions: Mapping[str, Function]


@dataclass(frozen=True)
class Worked:
    item: Item
    outcome: Outcome


@dataclass(frozen=True)
class Drawn:
    worked: Worked
    panels: tuple[str, ...]  # SVG text, one a panel


@dataclass(frozen=True)
class Page:
    """A page to publish: its path in the site, the content file it came from, and its Markdown."""

    uri: str
    source: str
    text: str
