"""The expression language a second time: run by Python's own `eval` on plain floats, without torch.

The language is a subset of Python. A name of a value is replaced by the value's expression, down to the inputs;
functions are those of tests/reference/; `gradient` becomes a central difference.
"""

import ast
import math
import operator
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import reference
from build_tools.model import Expression, Item

# A central difference is off by about STEP ** 2 for want of higher terms and by 1e-16 / STEP for rounding,
# together some 1e-10 at the sizes that the content has.
DIFFERENCE = 1e-8
# Relative to the point, absolute at 0. Where a step reaches across a kink, a shorter one is tried, which is as
# good only for functions that are straight on both sides, as those with kinks here are.
STEP = 2.0**-17
SHORT_STEP = 2.0**-25
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


def leaves(x):
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, list | tuple) else [x]


def _each(function):
    return lambda x: Vector(map(_each(function), x)) if isinstance(x, list) else function(x)


def _close(a, b, tolerance):
    return all(abs(difference) <= tolerance for difference in leaves(a - b))


def _extreme(function):
    """Of one list, over all its numbers; of several lists, element by element."""

    def extreme(*arguments):
        if len(arguments) > 1 and any(isinstance(each, list) for each in arguments):
            return Vector(map(function, *arguments))
        return function(leaves(list(arguments)))

    return extreme


def slope(function: Callable, at):
    """The derivative, by a central difference; of a list, one for each element."""
    if isinstance(at, list):
        return Vector(
            slope(lambda x, i=i: function(Vector([*at[:i], x, *at[i + 1 :]])), element)
            for i, element in enumerate(at)
        )
    for scale in (STEP, SHORT_STEP):
        step = scale * abs(at) or scale
        left, middle, right = function(at - step), function(at), function(at + step)
        before, after = (middle - left) / step, (right - middle) / step
        if abs(after - before) <= BEND * (1 + abs(before) + abs(after)):
            return (right - left) / (2 * step)
    # The point is the kink itself. The convention there is the slope of the unclipped side, which is the steeper.
    return max(before, after, key=abs)


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


def _remembering(function: Callable) -> Callable:
    results: dict[str, object] = {}

    def remembered(*arguments, **keywords):
        key = repr((arguments, sorted(keywords.items())))
        if key not in results:
            results[key] = function(*arguments, **keywords)
        return results[key]

    return remembered


def twins() -> dict[str, Callable]:
    """The plain-float functions, by name, each working out the same call once."""
    return {
        name: _remembering(function)
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
        "sum": lambda x: math.fsum(leaves(x)),
        "mean": lambda x: math.fsum(leaves(x)) / len(leaves(x)),
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


def differentiates(expression: Expression, expressions: Mapping[str, Expression]) -> bool:
    """Whether a gradient is taken in it or in a value that it rests on."""
    return _takes_a_difference(Translation(expressions).visit(_parse(expression)))
