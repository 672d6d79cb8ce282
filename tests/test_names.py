import pytest

from build_tools.load import load

HEAD = "---\nkind: recall\ntitle: Cards\n---\n## A card {#card}\n```yaml\ntopics: [a]\n"


@pytest.fixture
def codes(project):
    """The codes and lines of the faults in the names of one item, whose block and prose are given."""

    def find(block: str, prose: str) -> list[tuple[str, int]]:
        config = project({"a.md": f"{HEAD}{block}\n```\n### Front\nWhat?\n### Back\n{prose}\n"})
        return [(fault.code, fault.place.line) for fault in load(config.root)[1]]

    return find


GIVEN = "given: {a: 2, b: [1, 2]}\nvalues:\n  c: a * 2 = 4\n  d: sum(b) = 3\n"


@pytest.mark.parametrize(
    ("block", "prose"),
    [
        (GIVEN, "{=a} {=b} {=c} {=d}"),
        (GIVEN, "${==c}$ {=d}"),
        (GIVEN + "  e: c + d = 7", "{==e}"),
        (GIVEN + "checks: [{claim: A, holds: f(c) == d, unless: {a: d}}]", "No number."),
        (GIVEN + "checks: [{claim: A, holds: f(a) == 1, unless: c == d}]", "No number."),
        (GIVEN + "figure: {name: f, x: c, y: d}", "No number."),
        ("given: {a: 2}\nvalues:\n  c: gradient(a * a, a) = 4", "{=c}"),
        ("given: {a: 2}\nvalues:\n  b: a * a = 4\n  c: gradient(b, a) = 4", "{=c}"),
        ("given: {m: [true]}\nvalues:\n  c: f(m, [false]) = 4", "{=c}"),
        ("given: {a: 2}", "TeX has {=} and {==} for itself: {=a}"),
    ],
)
def test_good_names(codes, block, prose):
    assert codes(block, prose) == []


@pytest.mark.parametrize(
    ("block", "prose", "expected"),
    [
        (GIVEN, "{=a} {=b} {=c}", [("unused-name", 11)]),
        (GIVEN, "{=c} {=d} {=x}", [("unknown-name", 17)]),
        (GIVEN, "{=c} {=d} {= a}", [("unknown-name", 17)]),
        (GIVEN, "{=c} {=d}\n\n{=x} {==y}", [("unknown-name", 19), ("unknown-name", 19)]),
        (
            GIVEN + "  e: a + x + y = 3",
            "{=z}",
            [("unknown-name", 12), ("unknown-name", 12), ("unknown-name", 17)],
        ),
        (GIVEN, "{=c} {==d}", [("not-arithmetic", 17)]),
        (GIVEN, "{=c} {=d} {==a}", [("not-arithmetic", 17)]),
        ("given: {b: [1, 2]}\nvalues:\n  c: b * 2 = [2, 4]", "{==c}", [("not-arithmetic", 15)]),
        ("values:\n  b: f(1) = [2]\n  c: b * 2 = [2, 4]", "{==c}", [("not-arithmetic", 15)]),
        ("given: {a: 2}\nvalues:\n  a: 1 + 1 = 2", "{=a}", [("duplicate-name", 10)]),
        ("values:\n  a: b = 2\n  b: 1 + 1 = 2", "{=a}", [("unknown-name", 9)]),
        ("values:\n  a: a + 1 = 2", "{=a}", [("unknown-name", 9)]),
        ("given: {a: 2, b: 3}\nvalues:\n  c: gradient(a * a, b) = 0", "{=c}", [("no-dependence", 10)]),
        ("given: {a: 2}\nvalues:\n  c: gradient(a * a, true) = 0", "{=c}", [("no-dependence", 10)]),
        ("given: {a: 2}\nfigure: {name: f, x: 'gradient(a * a, true)'}", "{=a}", [("no-dependence", 9)]),
        (
            "given: {a: 2}\nchecks: [{claim: A, holds: f(a) == 1, unless: {a: 'gradient(2 * 2, a)'}}]",
            "{=a}",
            [("no-dependence", 9)],
        ),
        (
            "given: {a: 2}\nchecks: [{claim: A, holds: f(x) == 1, unless: {y: z}}]",
            "{=a}",
            [("unknown-name", 9)] * 3,
        ),
        ("given: {a: 2}\nfigure: {name: f, x: y}", "{=a}", [("unknown-name", 9)]),
    ],
)
def test_bad_names(codes, block, prose, expected):
    assert sorted(codes(block, prose)) == sorted(expected)
