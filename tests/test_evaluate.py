import pytest

from build_tools.cache import Cache
from build_tools.evaluate import evaluate, evaluate_item
from build_tools.load import load

ITEM = """\
---
kind: page
title: Page
---
## Part {{#part}}
```yaml
{block}
```
{prose}
"""


@pytest.fixture
def item(project):
    """An item with the given block; its prose names everything, so that nothing is unused."""

    def make(block, names=""):
        bank, faults = load(project({"a.md": ITEM.format(block=block, prose=names)}).root)
        assert [f for f in faults if f.code != "unused-name"] == []
        return bank.documents[0].items[0]

    return make


GIVEN = "given: {rho: 1.6, A: 2, inside: 1.1}\n"
ALL = "{=rho} {=A} {=inside}"


def test_an_outcome_holds_plain_numbers(item, functions):
    block = GIVEN + (
        "values:\n  used: clipped_surrogate(rho, A, epsilon=0.2) = 2.4\n  both: 'log([1, 1]) = [0, 0]'\n"
        "checks:\n  - {claim: Flat, holds: 'gradient(clipped_surrogate(rho, A, epsilon=0.2), rho) == 0', unless: {rho: inside}}\n"
        "  - {claim: Close, holds: 'close(used, 2.4, 0.001)', unless: 'close(surrogate(rho, A), 2.4, 0.001)'}\n"
        "figure: {name: clipped-surrogate, A: A / 2, mark: inside}"
    )

    outcome, faults = evaluate_item(item(block, ALL + "{=used} {=both}\n\n{figure}"), functions)

    assert faults == []
    assert outcome.values == {"used": pytest.approx(2.4, abs=1e-15), "both": (0.0, 0.0)}
    assert outcome.figure == {"A": 1.0, "mark": 1.1}
    assert [(c.result.text, c.result.holds, c.counter.text, c.counter.holds) for c in outcome.checks] == [
        ("0 == 0", True, "2 == 0", False),
        ("2.4 is within 0.001 of 2.4", True, "3.2 is not within 0.001 of 2.4", False),
    ]
    assert [c.changes for c in outcome.checks] == [{"rho": 1.1}, {}]
    assert {name: (f.module, f.numbers) for name, f in outcome.functions.items()} == {
        "clipped_surrogate": ("ppo_core", ("epsilon", "epsilon_high", "dual_clip")),
        "surrogate": ("ppo_core", ()),
    }


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ("y: rho * 2 = 3.2", []),
        ("y: rho * 2 = 3.3", ["wrong-digits"]),
        ("y: rho * 2 = 3.1", ["wrong-digits"]),
        ("y: rho * 2 = 3", []),
        ("y: A / 16 = 0.125", []),
        ("y: A / 16 = 0.13", ["wrong-digits"]),
        ("y: sqrt(-A) = 1", ["wrong-digits"]),
        ("y: exp(1000) = 1", ["wrong-digits"]),
        ("y: A == 2 = 1", ["wrong-digits"]),
        # From the exact third the result is 2, from the printed 0.67 it is 2.01, from 0.667 it is 2.001.
        ("t: A / 3 = 0.67\n  y: t * 3 = 2.00", ["printed-inputs"]),
        ("t: A / 3 = 0.667\n  y: t * 3 = 2.00", []),
        ("t: A / 3 = 0.67\n  y: t * 3 = 2.0", []),
        # From the printed 0.67 it would be right, from the exact third it is not.
        ("t: A / 3 = 0.67\n  y: t * 3 = 2.01", ["wrong-digits"]),
        # A wrong digit is not held against what rests on it, nor against checks.
        ("t: A * 2 = 5\n  y: t * 3 = 12", ["wrong-digits"]),
        ("t: A / 0 = 5\n  y: t * 3 = 12", ["division-by-zero"]),
        ("t: A * 2 = 5\n  y: t * 3 = 13", ["wrong-digits", "wrong-digits"]),
    ],
)
def test_digits(item, functions, values, codes):
    outcome, faults = evaluate_item(item(f"{GIVEN}values:\n  {values}", ALL + "{=y}"), functions)

    assert sorted({str(f): f.code for f in faults}.values()) == codes
    assert (outcome is None) == bool(codes)


CLAMPED = "clip_ratio(rho, epsilon=0.2)"


@pytest.mark.parametrize(
    ("holds", "unless", "codes"),
    [
        (f"{CLAMPED} == 1.2", "{rho: inside}", []),
        (f"{CLAMPED} == 1.2", f"{CLAMPED} == 1.3", []),
        (f"{CLAMPED} == 1.3", "{rho: inside}", ["check-fails"]),
        (f"{CLAMPED} == 1.2", "{rho: 1.7}", ["vacuous-check"]),
        (f"{CLAMPED} == 1.2", "{A: 3}", ["vacuous-check"]),
        (f"{CLAMPED} == 1.2", f"{CLAMPED} < 1.3", ["vacuous-check"]),
        ("rho > inside", "{rho: 1}", ["no-library"]),
        (f"{CLAMPED} == 1.2", "1 == 2", ["no-library"]),
        ("max(rho, 1) == rho", "{rho: 0}", ["no-library"]),
        ("gradient(rho * rho, rho) > 0", "{rho: 0}", ["no-library"]),
        ("rho < 1.5", "{rho: 1}", ["check-fails", "no-library"]),
        (f"log({CLAMPED} - 2) < 0", "{rho: inside}", ["not-finite"]),
        (f"log({CLAMPED} - 1.15) < 0", "{rho: inside}", ["not-finite"]),
        (f"1 / ({CLAMPED} - 1.1) > 0", "{rho: inside}", ["division-by-zero"]),
        (f"{CLAMPED} == 1.2", "{rho: [1, 2]}", []),
    ],
)
def test_checks(item, functions, holds, unless, codes):
    block = f"{GIVEN}checks:\n  - claim: A claim\n    holds: {holds}\n    unless: {unless}".replace(
        "{rho: [1, 2]}", "{rho: '[1, 2]'}"
    )

    outcome, faults = evaluate_item(item(block, ALL), functions)

    assert sorted(f.code for f in faults) == codes
    assert (outcome is None) == bool(codes)


def test_a_check_may_reach_the_library_through_a_value(item, functions):
    values = f"c: {CLAMPED} = 1.2\n  d: c * 2 = 2.4"
    block = f"{GIVEN}values:\n  {values}\nchecks: [{{claim: A, holds: d > 2, unless: {{rho: 1}}}}]"

    assert evaluate_item(item(block, ALL), functions)[1] == []


def test_a_difference_that_decides_is_shown(item, functions):
    block = f"{GIVEN}checks: [{{claim: A, holds: '{CLAMPED} - 0.9 != 0.3', unless: '{CLAMPED} == 1.3'}}]"

    outcome, faults = evaluate_item(item(block, ALL), functions)

    assert faults == []
    assert outcome.checks[0].result.text == "0.29999999999999993 != 0.3"


def test_digits_and_checks_are_judged_in_one_run(item, functions):
    block = (
        f"{GIVEN}values:\n  y: A * 2 = 5\nchecks: [{{claim: A, holds: '{CLAMPED} > y', unless: {{rho: 1}}}}]"
    )

    assert [f.code for f in evaluate_item(item(block, ALL), functions)[1]] == ["wrong-digits", "check-fails"]


def test_a_name_may_not_be_a_function(item, functions):
    faults = evaluate_item(
        item("given: {ratio: 2}\nvalues:\n  y: ratio * 2 = 4", "{=ratio} {=y}"), functions
    )[1]

    assert [(f.code, f.place.line, f.place.column) for f in faults] == [("bad-name", 7, 16)]


def test_the_cache_answers_with_the_same_outcome(project, config, tmp_path):
    block = GIVEN + (
        f"values:\n  c: {CLAMPED} = 1.2\n  v: 'log([1, 1]) = [0, 0]'\n"
        f"checks: [{{claim: A, holds: '{CLAMPED} == 1.2', unless: {{rho: inside}}}}]"
    )
    bank, faults = load(project({"a.md": ITEM.format(block=block, prose=ALL + "{=c} {=v}")}).root)
    assert faults == []
    libraries, cache = tuple(config.libraries), Cache(tmp_path / "cache", "x")

    first, _ = evaluate(bank, libraries, "tests", cache)
    again, _ = evaluate(bank, ("no_such_library",), "tests", cache)

    assert first["part"].outcome == again["part"].outcome
    assert len(list((tmp_path / "cache").iterdir())) == 1
