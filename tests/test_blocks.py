import pytest

from build_tools import blocks
from build_tools.schema import ANSWER, BLOCK, CHECK
from build_tools.yaml_text import read


def run(reader, text, *more):
    """What `reader` makes of the value of the one key of `text`, and the codes it reports with their columns."""
    node, faults = read(text, "a.md", 1)
    assert faults == []
    reported = []
    result = reader(
        node.get("k"), *more, lambda place, code, _: reported.append((code, place.line, place.column))
    )
    return result, reported


def test_inputs():
    given, faults = run(
        blocks.given, "k: {a: 2, b: -0.10, c: [1, 2.50], d: [[1, 2], [3, 4]], m: [true, false]}"
    )

    assert faults == []
    assert [(g.name, g.expression.text, g.printed) for g in given] == [
        ("a", "2", "2"),
        ("b", "-0.10", "-0.10"),
        ("c", "[1, 2.50]", "1, 2.50"),
        ("d", "[[1, 2], [3, 4]]", "[1, 2], [3, 4]"),
        ("m", "[true, false]", "true, false"),
    ]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("k: {a: x}", "bad-number", 8),
        ("k: {a: 1 2}", "bad-number", 8),
        ("k: {a: nan}", "bad-number", 8),
        ("k: {a: .inf}", "bad-number", 8),
        ("k: {a: 0x10}", "bad-number", 8),
        ("k: {a: 1_0}", "bad-number", 8),
        ("k: {a: 010}", "bad-number", 8),
        ("k: {a: ١}", "bad-number", 8),
        ("k: {a: [1, x]}", "bad-number", 12),
        ("k: {a: 1e999}", "bad-expression", 8),
        ("k: {a: [1, true]}", "bad-list", 8),
        ("k: {a: [true, 1]}", "bad-list", 8),
        ("k: {a: [1, [2]]}", "bad-list", 8),
        ("k: {a: [[1], [2, 3]]}", "bad-list", 8),
        ("k: {a: [[]]}", "bad-list", 8),
        ("k: {a: {b: 1}}", "yaml-shape", 8),
        ("k: {a-b: 1}", "bad-name", 5),
        ("k: {_a: 1}", "bad-name", 5),
        ("k: {2a: 1}", "bad-name", 5),
        ("k: {é: 1}", "bad-name", 5),
        ("k: {close: 1}", "bad-name", 5),
        ("k: {lambda: 1}", "bad-name", 5),
        ("k: {torch: 1}", "bad-name", 5),
        ("k: []", "yaml-shape", 4),
        ("k: {}", "yaml-empty", 4),
    ],
)
def test_inputs_that_are_none(text, code, column):
    given, faults = run(blocks.given, text)

    assert given == ()
    assert faults == [(code, 1, column)]


def test_a_long_list_is_a_fault_and_no_crash():
    _, faults = run(blocks.given, f"k: {{a: [{', '.join(['1.5'] * 200)}]}}")

    assert faults == [("expression-too-long", 1, 8)]


def test_values():
    values, faults = run(
        blocks.values, "k:\n  a: 1 + 1 = 2\n  b: 'f(x, y=3) = [1, -0.50]'\n  c: x == y = 1e-9"
    )

    assert faults == []
    assert [(v.name, v.expression.text, v.printed, v.digits.text) for v in values] == [
        ("a", "1 + 1", "2", "2"),
        ("b", "f(x, y=3)", "1, -0.50", "[1, -0.50]"),
        ("c", "x == y", "1e-9", "1e-9"),
    ]
    assert [(v.expression.place.column, v.digits.place.column) for v in values] == [(6, 14), (7, 19), (6, 15)]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("k: {a: x}", "bad-value", 8),
        ("k: {a: x=2}", "bad-value", 8),
        ("k: {a: x == 2}", "bad-value", 8),
        ("k: {a: x = y}", "bad-value", 8),
        ("k: {a: x = 2 = 3}", "bad-value", 8),
        ("k: {a: 'x = 1, 2'}", "bad-value", 9),
        ("k: {a: 'x = [1, 2'}", "bad-value", 9),
        ("k: {a: 'x = [[1]]'}", "bad-value", 9),
        ("k: {a: = 2}", "bad-value", 8),
        ("k: {a: x.y = 2}", "bad-expression", 8),
        ("k: {a: x = 1e999}", "bad-expression", 12),
        ("k: {a: [x]}", "yaml-shape", 8),
        ("k: {sum: x = 2}", "bad-name", 5),
        ("k: 3", "yaml-shape", 4),
    ],
)
def test_values_that_are_none(text, code, column):
    values, faults = run(blocks.values, text)

    assert values == ()
    assert faults == [(code, 1, column)]


def test_checks():
    text = "k:\n  - {claim: A, holds: f(x) == 0, unless: {x: 1, y: z}}\n  - {claim: B, holds: 'close(x, y, 0.1)', unless: x > y}"
    checks, faults = run(blocks.checks, text, "recall")

    assert faults == []
    first, second = checks
    assert (first.claim.text, first.holds.text, first.instead) == ("A", "f(x) == 0", None)
    assert [(name, change.text) for name, change in first.changes] == [("x", "1"), ("y", "z")]
    assert (second.changes, second.instead.text) == ((), "x > y")


@pytest.mark.parametrize(
    ("check", "codes"),
    [
        ("{claim: A, holds: x > 1}", ["missing-key"]),
        ("{claim: A, holds: x > 1, unless: {}}", ["yaml-empty"]),
        ("{claim: A, holds: x, unless: {x: 1}}", ["bad-check"]),
        ("{claim: A, holds: x > 1, unless: x}", ["bad-check"]),
        ("{claim: A, holds: x > 1, unless: [x]}", ["yaml-shape"]),
        ("{claim: $a$, holds: x > 1, unless: {x: 1}}", ["bad-text"]),
        ("{claim: true, holds: x > 1, unless: {x: 1}}", ["yaml-truth"]),
        ("{claim: A, holds: x > 1, unless: {x: 1}, why: B}", ["unknown-key"]),
        ("A", ["yaml-shape"]),
    ],
)
def test_checks_that_are_none(check, codes):
    _, faults = run(blocks.checks, f"k:\n  - {check}", "recall")

    assert [code for code, *_ in faults] == codes


def test_a_truth_may_stand_in_an_expression():
    checks, faults = run(blocks.checks, "k: [{claim: A, holds: f(m) == 1, unless: {m: true}}]", "recall")

    assert faults == []
    assert checks[0].changes[0][1].text == "true"


@pytest.mark.parametrize(
    ("answer", "codes"),
    [
        ("{value: x, within: 0.5}", []),
        ("{value: x, within: 1e-9}", []),
        ("{value: x, within: 0}", ["bad-number"]),
        ("{value: x, within: -1}", ["bad-number"]),
        ("{value: x, within: 1e999}", ["bad-number"]),
        ("{value: x, within: small}", ["bad-number"]),
        ("{value: x}", ["missing-key"]),
        ("{value: [x], within: 1}", ["yaml-shape"]),
        ("x", ["yaml-shape"]),
    ],
)
def test_answers(answer, codes):
    found, faults = run(blocks.answer, f"k: {answer}", "exercise")

    assert [code for code, *_ in faults] == codes
    assert (found is not None) == (not codes)


@pytest.mark.parametrize(
    ("figure", "codes"),
    [
        ("{name: a-b, x: 1 + y}", []),
        ("{x: 1}", ["missing-key"]),
        ("{name: [a]}", ["yaml-shape"]),
        ("{name: a, x: y.z}", ["bad-expression"]),
        ("{}", ["yaml-empty"]),
        ("a", ["yaml-shape"]),
    ],
)
def test_figures(figure, codes):
    found, faults = run(blocks.figure, f"k: {figure}")

    assert [code for code, *_ in faults] == codes
    if not codes:
        assert found.name.text == "a-b"
        assert [(name, argument.text) for name, argument in found.arguments] == [("x", "1 + y")]


def test_lists_of_slugs():
    assert [word.text for word in run(blocks.slugs, "k: [a, b-2]")[0]] == ["a", "b-2"]
    assert run(blocks.slugs, "k: [a, B, c_d]")[1] == [("bad-id", 1, 8), ("bad-id", 1, 11)]
    assert run(blocks.slugs, "k: a")[1] == [("yaml-shape", 1, 4)]
    assert run(blocks.slugs, "k: []")[1] == [("yaml-empty", 1, 4)]
    assert run(blocks.slugs, "k: [[a]]")[1] == [("yaml-shape", 1, 5)]


@pytest.mark.parametrize(
    ("text", "table", "kind", "messages"),
    [
        ("{value: x, within: 1}", ANSWER, "exercise", []),
        (
            "{value: x, withn: 1}",
            ANSWER,
            "exercise",
            [
                '"withn" is not a key here; did you mean "within"?',
                'the key "within" is missing; write within: number',
            ],
        ),
        (
            "{topics: [a], level: 2}",
            BLOCK,
            "recall",
            ['"level" is not a key here; known: aliases, checks, errata, figure, given, see, topics, values'],
        ),
        (
            "{topics: [a], embed: b}",
            BLOCK,
            "recall",
            ['"embed" is not a key here; it belongs to page; delete it'],
        ),
        ("{claim: a, holds: b, unless: c}", CHECK, "recall", []),
    ],
)
def test_keys(text, table, kind, messages):
    node, _ = read(text, "a.md", 1)
    found = []

    blocks.keys(node, table, kind, lambda _place, _code, message: found.append(message))

    assert found == messages
