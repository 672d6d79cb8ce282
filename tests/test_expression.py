import ast

import pytest

from build_tools import expression as language
from build_tools.errors import Place

HERE = Place("content/a.md", 7, 10)


def read(text):
    parsed, faults = language.parse(text, HERE)
    assert faults == []
    return parsed


def fault(text):
    parsed, faults = language.parse(text, HERE)
    assert parsed is None
    assert {f.place.line for f in faults} == {7}
    return faults[0]


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "-1.5e-3",
        "+2",
        "rho",
        "true",
        "[1, 2, [3]]",
        "[]",
        "1 + 2 - 3 * 4 / 5",
        "x ** 2",
        "x ** -2",
        "x ** 0.5",
        "(1 + x) * 2",
        "a < b <= c",
        "a == b",
        "a != b",
        "exp(x)",
        'f(x, [1, 2], mode="sum", epsilon=0.2)',
        "gradient(f(x), x)",
        "gradient(f(x), x, at=0.5)",
        "close(a, b, 1e-12)",
        " + ".join(["x"] * 25),
        "(" * 100 + "x" + ")" * 100,
        "x" * 500,
    ],
)
def test_the_language(text):
    assert read(text).text == text


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("x.y", 0),
        ("2 + x.y", 4),
        ("x[0]", 0),
        ("x[0:1]", 0),
        ("lambda: 1", 0),
        ("[i for i in x]", 0),
        ("{1: 2}", 0),
        ("{1, 2}", 0),
        ("(1, 2)", 0),
        ("f'{x}'", 0),
        ("f(1)(2)", 0),
        ("f(*x)", 2),
        ("f(**x)", 0),
        ("f(a=1, a=2)", 0),
        ("f('x')", 2),
        ("'x'", 0),
        ("[1, 'x']", 4),
        ("f(a=['x'])", 5),
        ("x if y else z", 0),
        ("x and y", 0),
        ("not x", 0),
        ("~x", 0),
        ("x is y", 0),
        ("x in y", 0),
        ("x // y", 0),
        ("x % y", 0),
        ("x @ y", 0),
        ("x ^ 2", 0),
        ("(x := 1)", 1),
        ("2j", 0),
        ("...", 0),
        ("None", 0),
        ("b'x'", 0),
        ("True", 0),
        ("1 + False", 4),
        ("9**9**9", 0),
        ("2**x", 0),
        ("2**101", 0),
        ("1e400", 0),
        ("9" * 400, 0),
        ("1 + 1e300", 4),
        ("gradient(x)", 0),
        ("gradient(x, 1)", 0),
        ("gradient(x, y, z)", 0),
        ("gradient(x, y, by=1)", 0),
        ("gradient(x, y, at='a')", 0),
        ("gradient(gradient(x, x), x)", 0),
        ("gradient(1 + f(gradient(x, x)), x)", 0),
        ("abs(" * 26 + "x" + ")" * 26, 104),
        (" + ".join(["x"] * 27), 0),
        ("-" * 27 + "x", 26),
        ("x − 1", 2),
        ("é", 0),
    ],
)
def test_what_is_refused_and_where(text, column):
    refused = fault(text)

    assert refused.code == "bad-expression"
    assert refused.place.column == 10 + column
    assert "\n" not in refused.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "x y",
        "f(x",
        "x = 1",
        "import os",
        "print(x); y",
        "0x1for x",
        "1 is 1",
        "\0",
        "f(\n'",
        "(" * 250 + ")" * 250,
    ],
)
def test_what_cannot_be_read(text):
    refused = fault(text)

    assert refused.code == "bad-expression"
    assert "\n" not in refused.message


def test_deep_nests_end_in_a_fault():
    assert fault("-" * 499 + "x").code == "bad-expression"
    assert fault("x" * 501).code == "expression-too-long"


def test_all_faults_of_an_expression_are_reported():
    _, faults = language.parse("x.y + z[0] + f('w')", HERE)

    assert [f.place.column - 10 for f in faults] == [0, 6, 15]


def test_names_are_those_of_numbers_in_order_of_place():
    assert [name.id for name in language.names(read("f(b, true) + a * exp(b)").tree)] == ["b", "a", "b"]


def test_dependencies_reach_through_values():
    values = {"twice": read("2 * x"), "more": read("twice + y")}

    assert language.dependencies(read("f(more)").tree, values) == {"more", "twice", "x", "y"}
    assert language.dependencies(read("1 + 2").tree, values) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + x * 2 ** 3 / -y", True),
        ("x", True),
        ("true", False),
        ("exp(x)", False),
        ("1 + exp(x)", False),
        ("[1, 2]", False),
        ("1 < x", False),
    ],
)
def test_plain_arithmetic(text, expected):
    assert language.is_plain_arithmetic(read(text).tree) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", 2.0),
        ("-2.5", -2.5),
        ("+2", 2.0),
        ("true", True),
        ("[1, [2, -3]]", (1.0, (2.0, -3.0))),
        ("[true, false]", (True, False)),
        ("x", None),
        ("1 + 1", None),
        ("[1, x]", None),
    ],
)
def test_literals(text, expected):
    assert language.literal(read(text).tree) == expected


def test_the_place_of_a_part():
    expression = read("1 + rho")

    assert isinstance(expression.tree, ast.BinOp)
    assert str(language.node_place(expression, expression.tree.right)) == "content/a.md:7:14"
