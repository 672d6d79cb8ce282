"""The closed expression language: parsed with Python's grammar, then held to a short list of node types.

Numbers, lists, names, arithmetic, comparison, calls of functions by name, and quoted words as keyword arguments.
No attribute, no subscript, no import, no lambda: a content file cannot run code.
"""

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping

from build_tools.errors import Fault, Place
from build_tools.model import Expression

LONGEST = 500  # characters; a longer one belongs into the library
DEEPEST = 25  # nested brackets or calls
LARGEST_EXPONENT = 100

MATHS = ("abs", "close", "exp", "log", "max", "mean", "min", "sqrt", "sum")
GRADIENT = "gradient"
# The last two are words of the Python that pages print.
RESERVED = (*MATHS, GRADIENT, "true", "false", "float", "torch")

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_COMPARISON = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LANGUAGE = "numbers, lists, names, + - * / **, comparisons and calls of library functions"


def parse(text: str, place: Place) -> tuple[Expression | None, list[Fault]]:
    """Reads one expression; faults carry the column of the part that is wrong."""
    if len(text) > LONGEST:
        return None, [
            Fault(
                place,
                "expression-too-long",
                f"{len(text)} characters, at most {LONGEST} are read; name a part of it as a value of its own",
            )
        ]
    if not text.isascii():
        at = next(i for i, c in enumerate(text) if not c.isascii())
        return None, [
            Fault(
                _shift(place, at),
                "bad-expression",
                f'"{text[at]}" is not part of the expression language; write it in ASCII (- for minus, * for times)',
            )
        ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, SyntaxWarning, ValueError, RecursionError, MemoryError) as error:
        column = (getattr(error, "offset", None) or 1) - 1
        reason = getattr(error, "msg", None) or str(error)
        return None, [
            Fault(
                _shift(place, column),
                "bad-expression",
                f'"{" ".join(text.split())}" cannot be read ({reason}); allowed: {_LANGUAGE}',
            )
        ]
    faults = list(_refusals(tree, place, 0))
    return (None, faults) if faults else (Expression(text, place, tree), [])


def _shift(place: Place, columns: int) -> Place:
    return Place(place.path, place.line, place.column + columns)


def node_place(expression: Expression, node: ast.expr) -> Place:
    return _shift(expression.place, node.col_offset)


def _refusals(node: ast.expr, place: Place, depth: int, word_allowed: bool = False) -> Iterator[Fault]:
    def refuse(message: str) -> Fault:
        return Fault(_shift(place, node.col_offset), "bad-expression", message)

    if depth > DEEPEST:
        yield refuse(f"nested more than {DEEPEST} deep; name a part of it as a value of its own")
        return
    match node:
        case ast.Constant(value=bool()):
            yield refuse("write true or false in lower case")
        case ast.Constant(value=int() | float()):
            # An integer of any length can be compared; it cannot be made a float.
            if not abs(node.value) < 1e300:
                yield refuse("the number is too large; the largest is 1e300")
        case ast.Constant(value=str()):
            if not word_allowed:
                yield refuse(
                    f'a quoted word may stand only as a keyword argument, as in mode="token_mean"; allowed: {_LANGUAGE}'
                )
        case ast.Name():
            pass
        case ast.List(elts=elements):
            for element in elements:
                yield from _refusals(element, place, depth + 1)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            yield from _refusals(operand, place, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            if isinstance(op, ast.Pow) and not _is_small(right):
                yield refuse(
                    f"an exponent must be a number between -{LARGEST_EXPONENT} and {LARGEST_EXPONENT}, or exp()"
                )
            yield from _refusals(left, place, depth + 1)
            yield from _refusals(right, place, depth + 1)
        case ast.Compare(left=left, ops=ops, comparators=rights) if all(
            isinstance(o, _COMPARISON) for o in ops
        ):
            for side in (left, *rights):
                yield from _refusals(side, place, depth + 1)
        case ast.Call(func=ast.Name(), args=arguments, keywords=keywords):
            for argument in arguments:
                yield from _refusals(argument, place, depth + 1)
            for keyword in keywords:
                if keyword.arg is None:
                    yield refuse("** is not part of the expression language; name each argument")
                    continue
                yield from _refusals(keyword.value, place, depth + 1, word_allowed=True)
            named = [keyword.arg for keyword in keywords if keyword.arg]
            if len(set(named)) < len(named):
                yield refuse("an argument is named twice; delete one")
            yield from _refuse_gradient(node, refuse)
        case _:
            yield refuse(f'"{_source(node)}" is not part of the expression language; allowed: {_LANGUAGE}')


def _refuse_gradient(call: ast.Call, refuse: Callable[[str], Fault]) -> Iterator[Fault]:
    if call.func.id != GRADIENT:
        return
    keywords = [k.arg for k in call.keywords]
    if len(call.args) != 2 or not isinstance(call.args[1], ast.Name) or keywords not in ([], ["at"]):
        yield refuse("write gradient(expression, name) or gradient(expression, name, at=number)")
    elif (
        keywords
        and isinstance(call.keywords[0].value, ast.Constant)
        and isinstance(call.keywords[0].value.value, str)
    ):
        yield refuse("at= takes a number, not a word")
    elif any(_is_gradient(inner) for inner in ast.walk(call.args[0])):
        yield refuse(
            "a gradient inside a gradient is not supported; write the inner one as a library function"
        )


def _is_gradient(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == GRADIENT


def _is_small(node: ast.expr) -> bool:
    try:
        return abs(float(ast.literal_eval(node))) <= LARGEST_EXPONENT
    except (ValueError, TypeError, OverflowError):
        return False


def _source(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except Exception:  # a node that even Python cannot print; the place says where
        return type(node).__name__


def names(tree: ast.expr) -> list[ast.Name]:
    """The names that stand for inputs and values (not those of functions), in order of position."""
    functions = {id(call.func) for call in ast.walk(tree) if isinstance(call, ast.Call)}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in functions and node.id not in ("true", "false")
    ]
    return sorted(found, key=lambda node: node.col_offset)


def calls(tree: ast.expr) -> list[ast.Call]:
    """All calls, in order of position, those of the maths functions and of gradient too."""
    return sorted((n for n in ast.walk(tree) if isinstance(n, ast.Call)), key=lambda node: node.col_offset)


def dependencies(tree: ast.expr, values: Mapping[str, Expression]) -> set[str]:
    """Every name that the expression rests on, through the expressions of values too."""
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        for name in names(waiting.pop()):
            if name.id not in found:
                found.add(name.id)
                if name.id in values:
                    waiting.append(values[name.id].tree)
    return found


def is_plain_arithmetic(tree: ast.expr) -> bool:
    """Whether a reader can redo it by hand from the printed inputs: numbers, names and + - * / ** alone."""
    match tree:
        case ast.Constant(value=int() | float()):
            return True
        case ast.Name(id=name):
            return name not in ("true", "false")
        case ast.UnaryOp(operand=operand):
            return is_plain_arithmetic(operand)
        case ast.BinOp(left=left, right=right):
            return is_plain_arithmetic(left) and is_plain_arithmetic(right)
    return False


def literal(tree: ast.expr) -> float | bool | tuple | None:
    """The number, truth or nested tuple that a literal expression writes down; None if it is not a literal."""
    match tree:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id="true"):
            return True
        case ast.Name(id="false"):
            return False
        case ast.UnaryOp(op=op, operand=ast.Constant(value=int() | float() as number)):
            return -float(number) if isinstance(op, ast.USub) else float(number)
        case ast.List(elts=elements):
            inner = tuple(literal(element) for element in elements)
            return None if any(part is None for part in inner) else inner
    return None
