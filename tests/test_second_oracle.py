"""Every number and every verdict of the content, worked out a second time: without torch, without our interpreter.

The expression language is a subset of Python's, so Python's own `eval` runs it, on plain floats, with the
functions of tests/reference.py. A name of a value is replaced by the value's expression, down to the inputs.
`gradient` becomes a central difference. What the two worlds have in common is the reading of the files.
"""

import ast
import math
import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

import pytest

import reference
from build_tools import site
from build_tools.evaluate import evaluate_item
from build_tools.load import load
from build_tools.model import Bank, Check, Expression, Item

# Both worlds compute in float64; they may differ by the order of a sum and the last bit of a logarithm.
PLAIN = 1e-12
# A central difference is off by about STEP ** 2 for want of higher terms and by 1e-16 / STEP for rounding,
# together some 1e-10 at the sizes that the content has.
DIFFERENCE = 1e-8
# Relative to the point, absolute at 0. The content asks for no slope nearer to a kink than 0.81 is to the floor
# 0.8, which is a thousand steps; a step that did reach across a kink is refused, see `slope`.
STEP = 2.0**-17
# By how much, relative to them, the slopes on the left and on the right may differ: where the function is smooth
# they do by about STEP, across a kink by the size of the bend.
BEND = 1e-3


class Vector(list):
    """A list that calculates element by element, and compares as a whole: true if true for each element."""

    def __neg__(self):
        return Vector(-x for x in self)

    def __pos__(self):
        return self


def _elements(left, right):
    """Pairs of elements; a number goes with every element of a list."""
    left = left if isinstance(left, list) else [left] * len(right)
    right = right if isinstance(right, list) else [right] * len(left)
    return zip(left, right, strict=True)


def _by_element(function):
    return lambda self, other: Vector(function(a, b) for a, b in _elements(self, other))


def _reflected(function):
    return lambda self, other: Vector(function(b, a) for a, b in _elements(self, other))


def _as_a_whole(function):
    return lambda self, other: all(function(a, b) for a, b in _elements(self, other))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _function = getattr(operator, _name)
    setattr(Vector, f"__{_name}__", _by_element(_function))
    setattr(Vector, f"__r{_name}__", _reflected(_function))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Vector, f"__{_name}__", _as_a_whole(getattr(operator, _name)))


def vector(x):
    """Lists as vectors, whatever made them."""
    return Vector(map(vector, x)) if isinstance(x, list | tuple) else x


def _leaves(x):
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, list | tuple) else [x]


def _each(function):
    return lambda x: Vector(map(_each(function), x)) if isinstance(x, list) else function(x)


def _close(a, b, tolerance):
    return all(abs(difference) <= tolerance for difference in _leaves(a - b))


def _extreme(function):
    """min and max: of the elements of one list, or of several numbers."""
    return lambda *x: function(_leaves(x[0]) if len(x) == 1 else x)


def slope(function: Callable, at):
    """The derivative, by a central difference; of a list, one for each element."""
    if isinstance(at, list):
        return Vector(
            slope(lambda x, i=i: function(Vector([*at[:i], x, *at[i + 1 :]])), element)
            for i, element in enumerate(at)
        )
    step = STEP * abs(at) or STEP
    left, middle, right = function(at - step), function(at), function(at + step)
    before, after = (middle - left) / step, (right - middle) / step
    if abs(after - before) > BEND * (1 + abs(before) + abs(after)):
        raise ArithmeticError(f"a kink lies within {step} of {at}: slopes {before} and {after}")
    return (right - left) / (2 * step)


class Translation(ast.NodeTransformer):
    """Makes Python of an expression: values become their expressions, except the names in `kept`.

    Functions get an underscore in front, which no name of an input or value can have.
    """

    def __init__(self, expressions: Mapping[str, Expression], kept: frozenset[str] = frozenset()):
        self.expressions = expressions
        self.kept = kept

    def visit_Name(self, node):
        if node.id in self.kept or node.id not in self.expressions:
            return ast.Name(node.id, ast.Load())
        return self.visit(_parse(self.expressions[node.id]))

    def visit_List(self, node):
        return _call("_vector", ast.List([self.visit(each) for each in node.elts], ast.Load()))

    def visit_Compare(self, node):
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return ast.BoolOp(ast.And(), [ast.Constant(True), *(_comparison(*pair) for pair in pairs)])

    def visit_Call(self, node):
        if node.func.id == "gradient":
            name = node.args[1].id
            inner = Translation(self.expressions, frozenset({name}))
            arguments = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
            at = self.visit(node.keywords[0].value if node.keywords else node.args[1])
            return _call("_slope", ast.Lambda(arguments, inner.visit(node.args[0])), at)
        arguments = [self.visit(each) for each in node.args]
        if node.func.id == "close" and any(map(_takes_a_difference, arguments)):
            arguments[2] = _call("_max", arguments[2], ast.Constant(DIFFERENCE))
        keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        return ast.Call(ast.Name(f"_{node.func.id}", ast.Load()), arguments, keywords)


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    """A difference is nearly what it stands for, so equality with one is closeness, and an order must be clear."""
    if not (_takes_a_difference(left) or _takes_a_difference(right)):
        return ast.Compare(left, [op], [right])
    margin = ast.Constant(DIFFERENCE)
    match op:
        case ast.Eq():
            return _call("_close", left, right, margin)
        case ast.NotEq():
            return ast.UnaryOp(ast.Not(), _call("_close", left, right, margin))
        case ast.Gt() | ast.LtE():
            return ast.Compare(left, [op], [ast.BinOp(right, ast.Add(), margin)])
    return ast.Compare(left, [op], [ast.BinOp(right, ast.Sub(), margin)])


def _takes_a_difference(translated: ast.AST) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "_slope" for node in ast.walk(translated))


def _parse(expression: Expression) -> ast.expr:
    return ast.parse(expression.text, mode="eval").body


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def twins() -> dict[str, Callable]:
    """The plain-float functions, by name."""
    return {
        name: function
        for name, function in vars(reference).items()
        if isinstance(function, types.FunctionType) and not name.startswith("_")
    }


def language(functions: Mapping[str, Callable]) -> dict[str, object]:
    """What the translated expressions call, and the two truths."""
    known = {
        **functions,
        "slope": slope,
        "close": _close,
        "abs": _each(abs),
        "exp": _each(math.exp),
        "log": _each(math.log),
        "sqrt": _each(math.sqrt),
        "max": _extreme(max),
        "min": _extreme(min),
        "sum": lambda x: math.fsum(_leaves(x)),
        "mean": lambda x: math.fsum(_leaves(x)) / len(_leaves(x)),
        "vector": vector,
    }
    made = {f"_{name}": _giving_vectors(function) for name, function in known.items()}
    return {**made, "true": True, "false": False, "__builtins__": {}}


def _giving_vectors(function: Callable) -> Callable:
    return lambda *arguments, **keywords: vector(function(*arguments, **keywords))


@dataclass(frozen=True)
class World:
    """One item in plain floats: what its names mean, and the expressions of its values."""

    names: Mapping[str, object]
    expressions: Mapping[str, Expression]

    def run(self, expression: Expression, changes: Mapping[str, object] = types.MappingProxyType({})):
        """The result, with some inputs or values changed."""
        tree = Translation(self.expressions, frozenset(changes)).visit(_parse(expression))
        code = compile(ast.fix_missing_locations(ast.Expression(tree)), str(expression.place), "eval")
        return eval(code, {**self.names, **changes})


def world(item: Item, functions: Mapping[str, Callable]) -> World:
    empty = World(language(functions), {})
    given = {each.name: empty.run(each.expression) for each in item.given}
    return World({**empty.names, **given}, {each.name: each.expression for each in item.values})


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
            looser = _differentiates(value.expression, plain.expressions)
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


def _differentiates(expression: Expression, expressions: Mapping[str, Expression]) -> bool:
    return _takes_a_difference(Translation(expressions).visit(_parse(expression)))


def _agree(first, second, tolerance: float) -> bool:
    first, second = _leaves(first), _leaves(second)
    return len(first) == len(second) and all(
        abs(a - b) <= tolerance * max(1.0, abs(a)) for a, b in zip(first, second, strict=True)
    )


def _rounds_to(result, printed: str) -> bool:
    texts = [Decimal(text.strip()) for text in printed.split(",")]
    results = [Decimal(number) for number in _leaves(result)]
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


def test_the_second_world_agrees_on_all_content(config, items, functions):
    tally = compare(items, functions, twins())
    print(f"{tally.values} values, {tally.checks} checks and {tally.counters} counter-cases compared")
    assert not tally.differences, "\n".join(tally.differences)
    counts = site.check(config, use_cache=False).counts()
    assert tally.values == counts["values"] > 0
    assert tally.checks == tally.counters == counts["checks"] > 0


def test_every_called_function_has_a_twin_and_a_flipped_sign_in_it_is_noticed(items, functions):
    called = {name for item in items for name in evaluate_item(item, functions)[0].functions}
    assert called
    assert called <= set(twins())
    for name in called:
        assert compare(items, functions, {**twins(), name: _negated(twins()[name])}).differences, name


def _negated(function: Callable) -> Callable:
    return lambda *arguments, **keywords: -vector(function(*arguments, **keywords))


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


def test_a_step_across_a_kink_is_refused():
    with pytest.raises(ArithmeticError, match="a kink lies within"):
        run("gradient(max(x, 2), x)", {"x": 2.000001})


def test_digits_are_rounded_in_decimal():
    assert _rounds_to(1.0986122886681098, "1.0986")
    assert not _rounds_to(1.0986122886681098, "1.0987")
    assert _rounds_to(Vector([0.22180709777918, -0.2]), "0.2218, -0.2000")
    assert not _rounds_to(Vector([0.2218]), "0.2218, 0.2218")
    assert _rounds_to(-1e-17, "0")
