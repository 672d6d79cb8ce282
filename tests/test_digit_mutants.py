"""Every printed digit of the content is changed, and each time `check` must fault at that very line.

The text of the file is changed, read by `load_file`, and its item worked out by `evaluate_item`; some of the cases
go the whole way through `site.check`. Whether a shorter or longer number is wrong at all is decided by `decimal`.
"""

import dataclasses
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pytest

from build_tools import expression as language
from build_tools import site
from build_tools.config import Config
from build_tools.errors import ContentError, Fault
from build_tools.evaluate import evaluate_item
from build_tools.load import load, load_file
from build_tools.model import Document, Given, Item, Number, Value

NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?")
CODES = ("wrong-digits", "printed-inputs")
WHOLE_WAY = 7  # cases that go through site.check


@dataclass(frozen=True)
class Mutant:
    """A changed number: in the file at `path`, the columns from `start` to `end` of `line` read `text` instead."""

    path: str
    line: int
    start: int
    end: int
    item: str
    value: str
    old: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.value} = {self.old} -> {self.text}"

    def applied(self, source: str) -> str:
        lines = source.split("\n")
        line = lines[self.line - 1]
        assert line[self.start : self.end] == self.old, f"{self} does not stand where it is said to"
        lines[self.line - 1] = line[: self.start] + self.text + line[self.end :]
        return "\n".join(lines)


def other_digits(digit: str, every: bool) -> list[str]:
    """The nine others, or one of them: 1 for 0, so that no number starts with a 0 that was not there."""
    others = [other for other in "0123456789" if other != digit]
    return others if every else [str(int(digit) % 9 + 1)]


def changed(text: str, exact: float, every: bool) -> list[str]:
    """The number with a digit, the sign or the length changed, wherever that makes it wrong."""
    mantissa = re.split("[eE]", text)[0]
    rest = text[len(mantissa) :]
    found = [
        text[:i] + other + text[i + 1 :]
        for i, digit in enumerate(text)
        if digit.isdigit()
        for other in other_digits(digit, every)
    ]
    if Decimal(text) != 0:
        found.append(text[1:] if text.startswith("-") else f"-{text.removeprefix('+')}")
    point = "" if "." in mantissa else "."
    longer = [f"{mantissa}{point}{digit}{rest}" for digit in "1234567890"]
    longer = [each for each in longer if not is_right(each, exact)]
    shorter = [f"{mantissa[:-1].removesuffix('.')}{rest}"] if "." in mantissa else []
    return [*found, *longer[: None if every else 1], *(each for each in shorter if not is_right(each, exact))]


def is_right(text: str, exact: float) -> bool:
    """Whether the number is what the exact result rounds to."""
    return Decimal(exact).quantize(Decimal(text), ROUND_HALF_EVEN) == Decimal(text)


def digit_mutants(document: Document, source: str, outcomes: Mapping, every: bool) -> Iterator[Mutant]:
    lines = source.split("\n")
    for item in document.items:
        for value in item.values:
            place = value.digits.place
            start = place.column - 1
            written = lines[place.line - 1][start : start + len(value.digits.text)]
            assert written == value.digits.text, f"{place}: expected {value.digits.text}, found {written}"
            exact = _numbers(outcomes[item.id].values[value.name])
            for match, number in zip(NUMBER.finditer(written), exact, strict=True):
                for text in changed(match[0], number, every):
                    at = start + match.start()
                    yield Mutant(
                        document.path,
                        place.line,
                        at,
                        at + len(match[0]),
                        item.id,
                        value.name,
                        match[0],
                        text,
                    )


def _numbers(result: Number) -> list[float]:
    return list(result) if isinstance(result, tuple) else [result]


class Project:
    """A copy of this project's content, of which one file at a time may be changed."""

    def __init__(self, root: Path, config: Config):
        self.root = root
        shutil.copytree(config.root / "content", root / "content")
        shutil.copytree(config.root / "docs", root / "docs")
        self.config = Config(root, config.libraries, config.figures)
        bank, faults = load(root)
        assert not faults
        self.documents = bank.documents
        self.sources = {
            document.path: (root / document.path).read_text(encoding="utf-8") for document in bank.documents
        }

    def changed(self, mutant: Mutant) -> Path:
        path = self.root / mutant.path
        path.write_text(mutant.applied(self.sources[mutant.path]), encoding="utf-8")
        return path

    def alone(self, mutant: Mutant) -> Path:
        """The changed file with every other item blanked out line by line, so that places stay what they are."""
        document = next(each for each in self.documents if each.path == mutant.path)
        starts = [item.place.line for item in document.items]
        lines = mutant.applied(self.sources[mutant.path]).split("\n")
        first = starts.index(next(item.place.line for item in document.items if item.id == mutant.item))
        stop = starts[first + 1] if first + 1 < len(starts) else len(lines) + 1
        kept = [
            line if number < starts[0] or starts[first] <= number < stop else ""
            for number, line in enumerate(lines, 1)
        ]
        path = self.root / mutant.path
        path.write_text("\n".join(kept), encoding="utf-8")
        return path

    def restore(self, mutant: Mutant) -> None:
        (self.root / mutant.path).write_text(self.sources[mutant.path], encoding="utf-8")

    def faults(self, mutant: Mutant, functions: Mapping) -> list[Fault]:
        """The faults of the mutant's item, read from the changed file."""
        document, _, faults = load_file(self.alone(mutant), self.root)
        self.restore(mutant)
        for item in document.items if document else ():
            if item.id == mutant.item:
                faults += evaluate_item(item, functions)[1]
        return faults

    def faults_of_the_whole(self, mutant: Mutant) -> tuple[Fault, ...]:
        self.changed(mutant)
        try:
            site.check(self.config)
        except ContentError as error:
            return error.faults
        finally:
            self.restore(mutant)
        return ()


def is_seen(mutant: Mutant, faults) -> bool:
    # A digit 0 in front, as in 04, is no number of the language.
    codes = (*CODES, "bad-expression", "bad-value") if re.match(r"[-+]?0\d", mutant.text) else CODES
    return any(
        fault.place.path == mutant.path and fault.place.line == mutant.line and fault.code in codes
        for fault in faults
    )


@pytest.fixture(scope="module")
def content(tmp_path_factory, config) -> Project:
    return Project(tmp_path_factory.mktemp("project"), config)


@pytest.fixture(scope="module")
def outcomes(content, remembering) -> dict:
    return {item.id: evaluate_item(item, remembering)[0] for item in _items(content)}


def _items(content: Project) -> list[Item]:
    return [item for document in content.documents for item in document.items]


def _values(content: Project) -> set[tuple[str, str]]:
    return {(item.id, value.name) for item in _items(content) for value in item.values}


def all_mutants(content: Project, outcomes: Mapping, every: bool) -> list[Mutant]:
    return [
        mutant
        for document in content.documents
        for mutant in digit_mutants(document, content.sources[document.path], outcomes, every)
    ]


@pytest.mark.parametrize(
    "every",
    [pytest.param(False, id="one other digit"), pytest.param(True, id="all nine", marks=pytest.mark.slow)],
)
def test_every_changed_digit_is_a_fault_at_its_line(content, outcomes, remembering, every):
    mutants = all_mutants(content, outcomes, every)
    survivors = [
        str(mutant) for mutant in mutants if not is_seen(mutant, content.faults(mutant, remembering))
    ]
    print(f"{len(mutants)} changed digits tried, {len(survivors)} survived")
    assert not survivors, "\n".join(survivors)
    assert {(mutant.item, mutant.value) for mutant in mutants} == _values(content) != set()


def test_some_of_them_through_the_whole_check(content, outcomes):
    mutants = all_mutants(content, outcomes, every=False)
    chosen = mutants[:: len(mutants) // WHOLE_WAY][:WHOLE_WAY]
    assert len(chosen) == WHOLE_WAY
    site.check(content.config)
    survivors = [str(mutant) for mutant in chosen if not is_seen(mutant, content.faults_of_the_whole(mutant))]
    assert not survivors, "\n".join(survivors)
    site.check(content.config)


def input_mutants(given: Given) -> Iterator[tuple[str, Given]]:
    """The input with one digit of one of its numbers changed: which number, and the changed input."""
    text = given.expression.text
    for number, match in enumerate(NUMBER.finditer(text), 1):
        for i, digit in enumerate(match[0]):
            for other in other_digits(digit, every=True) if digit.isdigit() else ():
                at = match.start() + i
                expression, faults = language.parse(
                    text[:at] + other + text[at + 1 :], given.expression.place
                )
                if not faults:
                    yield f"number {number}", dataclasses.replace(given, expression=expression)


def test_every_input_matters(content, remembering):
    """A changed input is no lie, so not every change need be a fault: where a claim is about every ratio, any will do.

    But inputs that nothing rests on are props. At least nine in ten must be seen by some value or check.
    """
    tried, noticed = set(), set()
    for item in _items(content):
        for given in item.given:
            for number, other in input_mutants(given):
                key = (item.id, given.name, number)
                tried.add(key)
                if key not in noticed:
                    inputs = tuple(other if each is given else each for each in item.given)
                    if evaluate_item(dataclasses.replace(item, given=inputs), remembering)[1]:
                        noticed.add(key)
    print(f"{len(tried)} inputs tried, {len(noticed)} noticed")
    free = sorted(tried - noticed)
    assert len(noticed) > 0.9 * len(tried), f"not noticed: {free}"


# --- the parts of this test


def test_changes_are_those_that_make_a_number_wrong():
    # 2 is what 2.4 rounds to, fewer digits and still right.
    assert changed("2.4", 2.4, every=False) == ["3.4", "2.5", "-2.4", "2.41"]
    assert changed("-0.09", -0.09, every=False) == ["-1.09", "-0.19", "-0.01", "0.09", "-0.091", "-0.0"]
    assert changed("0", 0.0, every=False) == ["1", "0.1"]
    assert changed("5e-11", 5e-11, every=False) == ["6e-11", "5e-21", "5e-12", "-5e-11", "5.1e-11"]
    # 1.09861: the next digit is a 1, so that it alone may be added; 1.098 is not what it rounds to.
    assert changed("1.0986", 1.0986122886681098, every=False)[-2:] == ["1.09862", "1.098"]
    assert len(changed("2.4", 2.4, every=True)) == 2 * 9 + 1 + 9


def test_a_checker_that_sees_nothing_would_be_found_out(content, outcomes):
    mutant = all_mutants(content, outcomes, every=False)[0]
    assert not is_seen(mutant, ())
    value: Value = next(v for i in _items(content) if i.id == mutant.item for v in i.values)
    here = Fault(value.digits.place, "wrong-digits", "")
    assert is_seen(mutant, (here,))
    assert not is_seen(mutant, (dataclasses.replace(here, code="unknown-link"),))
    elsewhere = dataclasses.replace(here.place, line=here.place.line + 1)
    assert not is_seen(mutant, (dataclasses.replace(here, place=elsewhere),))
