import math

import pytest
import torch

from build_tools import expression as language
from build_tools.errors import Place
from build_tools.interpret import EvaluationError, Scope, to_number, to_tensor

HERE = Place("a.md", 1, 1)


@pytest.fixture
def run(functions):
    """The result of an expression, with inputs by keyword and values as expressions."""

    def evaluate(text, given=None, values=None, printed=None):
        expressions = {name: language.parse(each, HERE)[0] for name, each in (values or {}).items()}
        inputs = {name: to_tensor(number) for name, number in (given or {}).items()}
        digits = {name: to_tensor(number) for name, number in (printed or {}).items()}
        parsed, faults = language.parse(text, HERE)
        assert faults == []
        return to_number(Scope(functions, inputs, expressions, digits).run(parsed))

    return evaluate


X = {"x": 2.0, "y": -3.0, "v": (1.0, 2.0), "m": (True, False)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7.0),
        ("-x ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("x / y", 2 / -3),
        ("+x", 2.0),
        ("[x, 1]", (2.0, 1.0)),
        ("[[1, 2], [3, x]]", ((1.0, 2.0), (3.0, 2.0))),
        ("v * 2", (2.0, 4.0)),
        ("v - v", (0.0, 0.0)),
        ("true", True),
        ("m", (True, False)),
        ("abs(y)", 3.0),
        ("exp(0)", 1.0),
        ("log(v)", (0.0, math.log(2))),
        ("sqrt(4)", 2.0),
        ("sum(v)", 3.0),
        ("mean([1, 2, 6])", 3.0),
        ("sum([[1, 2], [3, 4]])", 10.0),
        ("min(v)", 1.0),
        ("max(v)", 2.0),
        ("min(x, y, 0)", -3.0),
        ("max([1, 5], [3, 4])", (3.0, 5.0)),
        ("min(x, 3 * x)", 2.0),
    ],
)
def test_arithmetic_and_maths(run, text, expected):
    assert run(text, X) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x == 2", True),
        ("0.1 + 0.2 == 0.3", False),
        ("x != 2", False),
        ("1 < x <= 2", True),
        ("1 < x < 2", False),
        ("x >= y", True),
        ("v == [1, 2]", True),
        ("v == [1, 3]", False),
        ("v > 0", True),
        ("v > 1", False),
        ("m == [true, false]", True),
        ("close(0.1 + 0.2, 0.3, 1e-12)", True),
        ("close(1, 1.5, 0.5)", True),
        ("close(1, 1.5, 0.49)", False),
        ("close(1.5, 1, 0.49)", False),
        ("close(v, [1, 2.1], 0.2)", True),
        ("close(v, [1, 2.3], 0.2)", False),
    ],
)
def test_comparison_is_exact_and_close_is_not(run, text, expected):
    assert run(text, X) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gradient(x * x, x)", 4.0),
        ("gradient(x * x, x, at=5)", 10.0),
        ("gradient(x * x, x, at=y)", -6.0),
        ("gradient(x ** 3 + y * x, x)", 9.0),  # 3 * 4 - 3
        ("gradient(y * x, y)", 2.0),
        ("gradient(log(x), x)", 0.5),
        ("gradient(abs(y), y)", -1.0),
        ("gradient(sum(v * v), v)", (2.0, 4.0)),
        ("x * gradient(x * x, x)", 8.0),
        ("gradient(square, x)", 4.0),
        ("gradient(shifted * shifted, x)", 10.0),  # shifted = x + 3: 2 (x + 3)
        ("gradient(square * square, square)", 8.0),
        ("gradient(fourth, square)", 8.0),  # fourth = square²
        ("gradient(clipped_surrogate(x, y, epsilon=0.2), x)", -3.0),
        ("gradient(clipped_surrogate(x, 3, epsilon=0.2), x)", 0.0),
    ],
)
def test_gradients_by_hand(run, text, expected):
    values = {"square": "x * x", "shifted": "x + 3", "fourth": "square * square"}

    assert run(text, X, values) == expected


def test_a_gradient_reaches_through_values_though_they_were_worked_out_before(run):
    values = {"square": "x * x"}

    assert run("square + gradient(square, x) + square", X, values) == 12.0


def test_calls_of_the_library(run):
    assert run("surrogate(x, y)", X) == -6.0
    assert run("clip_ratio(x, epsilon=0.2)", X) == 1.2
    assert run("clip_ratio(x, epsilon=x / 10)", X) == 1.2
    assert run('aggregate(v, [true, false], mode="token_mean")', X) == 1.0
    assert run('aggregate(v, m, mode="token_mean", denominator=x)', X) == 0.5


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("x / (y + 3)", "division-by-zero", 6),
        ("[1, 2] / [1, 0]", "division-by-zero", 10),
        ("x + m", "bad-call", 5),
        ("-m", "bad-call", 2),
        ("sum(m)", "bad-call", 5),
        ("[x, m]", "bad-list", 1),
        ("[x, true]", "bad-list", 1),
        ("v + [1, 2, 3]", "bad-shape", 1),
        ("v == [1, 2, 3]", "bad-shape", 1),
        ("x == true", "bad-call", 1),
        ("close(v, [1, 2, 3], 1)", "bad-shape", 1),
        ("close(1, 2)", "bad-call", 1),
        ("close(v, v, [1, 2, 3])", "bad-call", 1),
        ("close(1, 2, true)", "bad-call", 13),
        ("min([])", "bad-call", 1),
        ("mean([])", "bad-call", 1),
        ("sum()", "bad-call", 1),
        ("log(1, 2)", "bad-call", 1),
        ("log(x=1)", "bad-call", 1),
        ("max(1, v)", "bad-list", 1),
        ("nonsense(x)", "unknown-function", 1),
        ("x(1)", "unknown-function", 1),
        ("1 + surrogate(x)", "bad-call", 5),
        ("surrogate(x, y, z=1)", "bad-call", 1),
        ("surrogate(v, x)", "call-failed", 1),
        ("clip_ratio(x, epsilon=2)", "call-failed", 1),
        ("clip_ratio(x, epsilon=true)", "bad-call", 23),
        ("clip_ratio(x, epsilon=v)", "bad-call", 23),
        ('clip_ratio(x, epsilon="a")', "bad-call", 23),
        ("aggregate(v, m, mode=1)", "bad-call", 22),
        ("aggregate(v, m, mode=x)", "bad-call", 22),
        ("gradient(m, x)", "bad-gradient", 10),
        ("gradient(x == 2, x)", "no-dependence", 1),
        ("gradient(v * x, x)", "bad-gradient", 10),
        ("gradient(x, m)", "bad-gradient", 13),
        ("gradient(clip_ratio(2, epsilon=x), x)", "no-dependence", 32),
    ],
)
def test_what_cannot_be_run_and_where(run, text, code, column):
    with pytest.raises(EvaluationError) as caught:
        run(text, X)

    assert (caught.value.fault.code, caught.value.fault.place.column) == (code, column)
    assert "\n" not in caught.value.fault.message


def test_values_are_read_as_printed_only_if_asked(run):
    values = {"third": "x / 3", "y": "third * 3"}

    assert run("y", {"x": 2.0}, values) == 2.0
    assert run("third * 3", {"x": 2.0}, values, printed={"third": 0.67}) == 0.67 * 3


def test_tensors_and_numbers():
    assert to_tensor(2.0).dtype == torch.float64
    assert to_tensor((True, False)).dtype == torch.bool
    assert to_tensor(((1.0,), (2.0,))).shape == (2, 1)
    assert to_number(to_tensor(((1.0,), (2.0,)))) == ((1.0,), (2.0,))
    assert to_number(to_tensor(False)) is False
