"""Every number and every verdict of the content, worked out a second time in the plain floats of second_world.

What the two worlds have in common is the reading of the files.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

import pytest

from build_tools import site
from build_tools.evaluate import evaluate_item
from build_tools.load import load
from build_tools.model import Bank, Check, Expression, Item
from second_world import DIFFERENCE, Vector, World, differentiates, language, leaves, twins, vector, world

# Both worlds compute in float64; they may differ by the order of a sum and the last bit of a logarithm.
PLAIN = 1e-12


@dataclass
class Tally:
    """What was compared, and where the two worlds differ."""

    values: int = 0
    checks: int = 0
    counters: int = 0
    differences: list[str] = field(default_factory=list)

    def note(self, place, message: str) -> None:
        self.differences.append(f"{place}: {message}")


def compare(items: list[Item], library: Mapping, functions: Mapping[str, Callable]) -> Tally:
    """Works every item out in both worlds."""
    tally = Tally()
    for item in items:
        outcome, faults = evaluate_item(item, library)
        assert not faults, faults
        plain = world(item, functions)
        digits = {each.name: plain.run(each.digits) for each in item.values}
        for value in item.values:
            tally.values += 1
            looser = differentiates(value.expression, plain.expressions)
            try:
                exact, reread = plain.run(value.expression), plain.run(value.expression, digits)
            except (ArithmeticError, ValueError) as error:
                tally.note(value.expression.place, f"{value.name} has no second result: {error}")
                continue
            if not _agree(outcome.values[value.name], exact, DIFFERENCE if looser else PLAIN):
                tally.note(value.expression.place, f"{value.name}: {outcome.values[value.name]} and {exact}")
            for what, result in (("exact", exact), ("printed", reread)):
                if not _rounds_to(result, value.printed):
                    tally.note(
                        value.digits.place, f"{value.name}: {result} from {what} inputs, not {value.printed}"
                    )
        for check, computed in zip(item.checks, outcome.checks, strict=True):
            tally.checks += 1
            tally.counters += 1
            try:
                holds, after = plain.run(check.holds), _after_its_change(plain, check)
            except (ArithmeticError, ValueError) as error:
                tally.note(check.holds.place, f'"{check.claim.text}" has no second verdict: {error}')
                continue
            if not (computed.result.holds and holds):
                tally.note(check.holds.place, f'"{check.claim.text}" does not hold in both worlds')
            if computed.counter.holds or after:
                tally.note(check.holds.place, f'"{check.claim.text}" holds after its change in one world')
    return tally


def _after_its_change(plain: World, check: Check) -> bool:
    changes = {name: plain.run(change) for name, change in check.changes}
    return plain.run(check.instead or check.holds, changes)


def _agree(first, second, tolerance: float) -> bool:
    first, second = leaves(first), leaves(second)
    return len(first) == len(second) and all(
        abs(a - b) <= tolerance * max(1.0, abs(a)) for a, b in zip(first, second, strict=True)
    )


def _rounds_to(result, printed: str) -> bool:
    texts = [Decimal(text.strip()) for text in printed.split(",")]
    results = [Decimal(number) for number in leaves(result)]
    return len(texts) == len(results) and all(
        number.quantize(text, ROUND_HALF_EVEN) == text for number, text in zip(results, texts, strict=True)
    )


@pytest.fixture(scope="module")
def bank(config) -> Bank:
    bank, faults = load(config.root)
    assert not faults
    return bank


@pytest.fixture(scope="module")
def items(bank) -> list[Item]:
    return [item for document in bank.documents for item in document.items]


def test_the_second_world_agrees_on_all_content(config, items, remembering):
    tally = compare(items, remembering, twins())
    print(f"{tally.values} values, {tally.checks} checks and {tally.counters} counter-cases compared")
    assert not tally.differences, "\n".join(tally.differences)
    counts = site.check(config, use_cache=False).counts()
    assert tally.values == counts["values"] > 0
    assert tally.checks == tally.counters == counts["checks"] > 0


def test_every_called_function_has_a_twin_and_a_spoilt_twin_is_noticed(items, remembering):
    callers: dict[str, list[Item]] = {}
    for item in items:
        for name in evaluate_item(item, remembering)[0].functions:
            callers.setdefault(name, []).append(item)
    plain = twins()
    assert callers
    assert set(callers) <= set(plain)
    for name, those in callers.items():
        flipped = {**plain, name: _spoilt(plain[name])}
        assert any(compare([item], remembering, flipped).differences for item in those), name


def _spoilt(function: Callable) -> Callable:
    """The sign flipped; and moved, because content may ask for the size of a result alone."""
    return lambda *arguments, **keywords: 0.125 - vector(function(*arguments, **keywords))


# --- the parts of this test


def run(text: str, given: Mapping[str, object] = types.MappingProxyType({}), **values: str):
    def expression(text: str) -> Expression:
        return Expression(text, None, None)

    names = {**language(twins()), **given}
    return World(names, {name: expression(text) for name, text in values.items()}).run(expression(text))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[1, 2] - [0.5, 2]", [0.5, 0.0]),
        ("3 - [1, 2]", [2, 1]),
        ("-[1, 2] / 2", [-0.5, -1.0]),
        ("2 ** [1, 3]", [2, 8]),
        ("max([[1, 5], [2, 3]])", 5),
        ("min(3, 2, 4)", 2),
        ("max([1, 5], [2, 3])", [2, 5]),
        ("sum([1, 2, 4]) + mean([1, 2])", 8.5),
        ("log(exp([1, 2]))", [1, 2]),
        ("masked_sum([1, 2, 4], [true, false, true])", 5),
    ],
)
def test_lists_calculate_element_by_element(text, result):
    assert run(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[1, 2] == [1, 2]", True),
        ("[1, 2] == [1, 3]", False),
        ("[1, 2] > 1", False),
        ("[1, 2] > 0", True),
        ("1 < 2 < 3", True),
        ("1 < 2 < 2", False),
        ("close([1, 2], [1, 2.1], 0.05)", False),
        ("close([1, 2], [1, 2.01], 0.05)", True),
    ],
)
def test_comparisons_hold_for_every_element(text, result):
    assert run(text) is result


def test_gradients_reach_through_values():
    assert run("gradient(y * y, x)", {"x": 3.0}, y="2 * x") == pytest.approx(24, rel=1e-9)
    assert run("gradient(x * x, x, at=y)", {"x": 3.0}, y="2 * x") == pytest.approx(12, rel=1e-9)
    slopes = run("gradient(sum(x * x), x)", {"x": Vector([1.0, 2.0])})
    assert list(slopes) == pytest.approx([2, 4], rel=1e-9)
    assert run("gradient(max(x, 2), x) == 0", {"x": 1.0})
    assert not run("gradient(max(x, 2), x) == 0", {"x": 3.0})
    assert run("gradient(max(x, 2), x) > 0", {"x": 3.0})
    assert not run("gradient(max(x, 2), x) > 0", {"x": 1.0})
    assert run("gradient(max(x, 2), x) < 1", {"x": 1.0})
    assert not run("gradient(max(x, 2), x) < 1", {"x": 3.0})


def test_a_value_may_be_called_like_a_function():
    assert run("max(ratio, log)", {"ratio": 3.0, "log": 2.0}) == 3


def test_a_step_across_a_kink_is_shortened_and_at_the_kink_the_steeper_side_counts():
    assert run("gradient(max(x, 2), x)", {"x": 2.000001}) == pytest.approx(1, rel=1e-8)
    assert run("gradient(max(x, 2), x)", {"x": 1.999999}) == pytest.approx(0, abs=1e-8)
    assert run("gradient(max(x, 2), x)", {"x": 2.0}) == pytest.approx(1, rel=1e-8)
    assert run("gradient(min(3 * x, 6), x)", {"x": 2.0}) == pytest.approx(3, rel=1e-8)


def test_digits_are_rounded_in_decimal():
    assert _rounds_to(1.0986122886681098, "1.0986")
    assert not _rounds_to(1.0986122886681098, "1.0987")
    assert _rounds_to(Vector([0.22180709777918, -0.2]), "0.2218, -0.2000")
    assert not _rounds_to(Vector([0.2218]), "0.2218, 0.2218")
    assert _rounds_to(-1e-17, "0")
