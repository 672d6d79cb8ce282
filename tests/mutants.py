"""Wrong versions of library functions: one arithmetic detail changed in each.

`reached` finds the functions that others rest on, `mutants` makes the wrong versions of one, `applied` puts one in
the place of the right one for a while. It changes the code inside the function object, so that every module that
holds the function runs the wrong version, whichever way it was imported.
"""

import ast
import copy
import difflib
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGES = ("ppo_core", "lab")


@dataclass(frozen=True)
class Target:
    """Something that is mutated: a function, a method as Class.method, or a number that a function uses."""

    module: str
    name: str
    namespace: dict = field(repr=False, compare=False)  # of the live module

    @property
    def path(self) -> str:
        return self.namespace["__file__"]

    @property
    def is_number(self) -> bool:
        return isinstance(self.namespace.get(self.name), int | float)


@dataclass(frozen=True)
class Mutant:
    """One changed detail: the line of the definition as it was, and as it is now."""

    target: Target
    line: int
    before: str
    after: str
    tree: ast.stmt = field(repr=False, compare=False)

    @property
    def key(self) -> str:
        """The mutant without its line, so that a table of mutants outlives edits elsewhere in the file."""
        return f"{self.target.module}.{self.target.name}: {self.before} -> {self.after}"

    def __str__(self) -> str:
        where = f"{self.target.module.replace('.', '/')}.py:{self.line}"
        return f"{where}: {self.target.name}: {self.before} -> {self.after}"


# --- which functions


def public() -> list[Callable]:
    """The public functions of the packages, sorted by name."""
    packages = [importlib.import_module(package) for package in PACKAGES]
    found = [getattr(package, name) for package in packages for name in package.__all__]
    return sorted(filter(inspect.isfunction, found), key=lambda function: function.__name__)


def reached(functions: Iterable[Callable]) -> list[Target]:
    """The functions and all of the packages that they call, and the numbers those rest on; sorted."""
    found: dict[tuple[str, str], Target] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        namespace = function.__globals__
        key = (function.__module__, function.__qualname__)
        if key in found:
            continue
        found[key] = Target(*key, namespace)
        for name, value in _used(function):
            if isinstance(value, types.FunctionType):
                waiting.append(value)
            elif isinstance(value, type):
                waiting += _methods(value)
            elif isinstance(value, int | float):
                module = (namespace["__name__"], name)
                found[module] = Target(*module, namespace)
    return [found[key] for key in sorted(found)]


def _used(function: Callable) -> Iterator[tuple[str, object]]:
    """The functions and classes of ours and the numbers that the code of a function names."""
    names = _names(function.__code__)
    for name in sorted(names & set(function.__globals__)):
        value = function.__globals__[name]
        if isinstance(value, types.ModuleType) and _is_ours(value.__name__):
            members = [(each, getattr(value, each, None)) for each in sorted(names)]
        elif isinstance(value, dict):
            members = list(value.items())
        else:
            members = [(name, value)]
        for member, each in members:
            if isinstance(each, types.FunctionType | type) and _is_ours(each.__module__):
                yield member, each
            elif isinstance(each, int | float) and each is value:
                yield member, each


def _names(code: types.CodeType) -> set[str]:
    """The names in the code, in its lambdas and comprehensions too."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _methods(cls: type) -> list[types.FunctionType]:
    """What the source of a class defines; a NamedTuple has methods that no source defines."""
    found = [getattr(each, "__func__", each) for each in vars(cls).values()]
    source = vars(sys.modules[cls.__module__])["__file__"]
    return [
        each for each in found if isinstance(each, types.FunctionType) and each.__code__.co_filename == source
    ]


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in PACKAGES


# --- which changes


def mutants(target: Target) -> list[Mutant]:
    """Every changed version of the target, each once."""
    original = _definition(target)
    before = ast.unparse(original).splitlines()
    found: dict[str, Mutant] = {}
    for node in _sites(original):
        for new in _variants(node):
            # The copy holds `new` where the original holds `node`.
            tree = copy.deepcopy(original, {id(node): new})
            after = ast.unparse(ast.fix_missing_locations(tree)).splitlines()
            change = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
            old, now = (
                " ".join(line[2:].strip() for line in change if line[0] == sign) for sign in ("-", "+")
            )
            mutant = Mutant(target, node.lineno, old, now, tree)
            # Two ways to the same text are one mutant; no change in the text is none.
            if change:
                found.setdefault("\n".join(after), mutant)
    return list(found.values())


def all_mutants(functions: Iterable[Callable]) -> list[Mutant]:
    """The mutants of everything that the functions rest on, in an order that rests on their names alone."""
    return [mutant for target in reached(functions) for mutant in mutants(target)]


def _definition(target: Target) -> ast.stmt:
    cls, _, own_name = target.name.rpartition(".")
    body = _parsed(target.path).body
    if cls:
        (body,) = (each.body for each in body if isinstance(each, ast.ClassDef) and each.name == cls)
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]) if name == own_name:
                return statement
    raise LookupError(f"{target.name} is not defined at the top of {target.path}")


@cache
def _parsed(path: str) -> ast.Module:
    """The module without the docstrings of its functions, which would be copied for every mutant."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.fix_missing_locations(tree)


def _sites(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that compute: no docstring, annotation or message."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
        return
    if isinstance(node, ast.expr):
        yield node
    for name, child in ast.iter_fields(node):
        if name in ("returns", "annotation", "decorator_list"):
            continue
        for each in child if isinstance(child, list) else [child]:
            if isinstance(each, ast.AST):
                yield from _sites(each)


_OPERATORS = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult, ast.Div),
    ast.MatMult: (),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_OPPOSITES = {"min": "max", "amin": "amax", "minimum": "maximum", "any": "all"}
# In place there are no operators.
_OPPOSITES |= {"add_": "sub_", "mul_": "div_", "gt_": "lt_", "eq_": "ne_", "addcmul_": "addcdiv_"}
_OPPOSITES |= {there: here for here, there in _OPPOSITES.items()}
# Functions of one tensor whose absence is a mutant.
_DROPPED = ("abs", "cumsum", "detach", "exp", "expm1", "flip", "log", "log_softmax", "softmax")
_DROPPED += ("exp_", "neg", "neg_", "reciprocal", "sign", "square")


def _variants(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            for other in (number + 1, number - 1, 2 * number, 0 * number):
                yield _at(node, ast.Constant(other))
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right):
            for other in _OPERATORS[type(op)]:
                yield _at(node, ast.BinOp(left, other(), right))
            if isinstance(op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow | ast.MatMult):
                yield _at(node, ast.BinOp(right, op, left))
        case ast.BoolOp(op=op, values=values):
            for other in _OPERATORS[type(op)]:
                yield _at(node, ast.BoolOp(other(), values))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            for i, op in enumerate(ops):
                for other in _OPERATORS.get(type(op), ()):
                    yield _at(node, ast.Compare(left, [*ops[:i], other(), *ops[i + 1 :]], rights))
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _OPPOSITES:
        if isinstance(node.func, ast.Attribute):
            other = ast.Attribute(node.func.value, _OPPOSITES[name], ast.Load())
        else:
            other = ast.Name(_OPPOSITES[name], ast.Load())
        yield _at(node, ast.Call(_at(node, other), node.args, node.keywords))
    if name in ("clamp", "clamp_"):
        yield from _clamps(node)
        return
    if name in _DROPPED:
        # x.exp() or torch.exp(x)
        yield node.args[0] if _is_torch(node.func.value) else node.func.value
    if name == "where" and len(node.args) == 3:
        condition, yes, no = node.args
        yield _at(node, ast.Call(node.func, [condition, no, yes], node.keywords))
    elif len(node.args) == 2 and name != "isinstance" and not any(map(_is_literal, node.args)):
        yield _at(node, ast.Call(node.func, node.args[::-1], node.keywords))


def _clamps(node: ast.Call) -> Iterator[ast.expr]:
    """x.clamp(low, high), x.clamp(min=low), x.clamp(max=high): each bound dropped, and bounds exchanged.

    torch.clamp(x, ...) is the same.
    """
    function, arguments = node.func, node.args
    if _is_torch(function.value):
        x, *arguments = arguments
        function = _at(node, ast.Attribute(x, function.attr, ast.Load()))
    yield function.value
    keywords = [keyword for keyword in node.keywords if keyword.arg != "out"]
    names = [*("min", "max")[: len(arguments)], *(keyword.arg for keyword in keywords)]
    bounds = [*arguments, *(keyword.value for keyword in keywords)]
    if len(bounds) == 1:
        (bound,), (name,) = bounds, names
        yield _at(node, ast.Call(function, [], [ast.keyword(_OPPOSITES[name], bound)]))
        return
    for name, bound in zip(names, bounds, strict=True):
        yield _at(node, ast.Call(function, [], [ast.keyword(name, bound)]))
    exchanged = [ast.keyword(name, bound) for name, bound in zip(names, bounds[::-1], strict=True)]
    yield _at(node, ast.Call(function, [], exchanged))


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _at(place: ast.expr, node: ast.expr) -> ast.expr:
    return ast.copy_location(node, place)


# --- running one


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The live module with the mutant in it, as long as the context lasts."""
    live = mutant.target.namespace
    cls, _, name = mutant.target.name.rpartition(".")
    holder = vars(live[cls]) if cls else live
    scratch = dict(live)
    exec(compile(ast.Module([mutant.tree], []), mutant.target.path, "exec"), scratch)
    if mutant.target.is_number:
        original, live[name] = live[name], scratch[name]
        try:
            yield
        finally:
            live[name] = original
        return
    function, wrong = (getattr(each[name], "__func__", each[name]) for each in (holder, scratch))
    original = _inside(function)
    try:
        function.__code__, function.__defaults__, function.__kwdefaults__ = _inside(wrong)
        yield
    finally:
        function.__code__, function.__defaults__, function.__kwdefaults__ = original


def _inside(function: types.FunctionType) -> tuple:
    return function.__code__, function.__defaults__, function.__kwdefaults__
