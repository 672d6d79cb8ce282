"""Runs expressions of the closed language on float64 tensors. The only module, with `evaluate`, that knows torch."""

import ast
from collections.abc import Mapping

import torch
from torch import Tensor

from build_tools import expression as language
from build_tools.errors import Fault, did_you_mean
from build_tools.libraries import LibraryFunction
from build_tools.model import Expression, Number


class EvaluationError(Exception):
    """The expression cannot be run; carries the fault."""

    def __init__(self, fault: Fault):
        super().__init__(str(fault))
        self.fault = fault


def to_tensor(number: Number) -> Tensor:
    if isinstance(number, bool) or (
        isinstance(number, tuple) and _first(number) is True or _first(number) is False
    ):
        return torch.tensor(number, dtype=torch.bool)
    return torch.tensor(number, dtype=torch.float64)


def _first(number: Number) -> Number:
    while isinstance(number, tuple) and number:
        number = number[0]
    return number


def to_number(tensor: Tensor) -> Number:
    """The result as plain Python: a float, a truth, or nested tuples."""

    def freeze(value):
        return tuple(freeze(each) for each in value) if isinstance(value, list) else value

    return freeze(tensor.detach().tolist())


class Interpreter:
    """One expression at a time, in a scope of names. Holds what a scope needs: the functions and the lookup."""

    def __init__(self, functions: Mapping[str, LibraryFunction], scope: "Scope", expression: Expression):
        self.functions = functions
        self.scope = scope
        self.expression = expression
        self.known: dict[ast.expr, Tensor] = {}  # each part is worked out once, however often it is asked for

    def fail(self, node: ast.expr, code: str, message: str) -> EvaluationError:
        return EvaluationError(Fault(language.node_place(self.expression, node), code, message))

    def run(self) -> Tensor:
        return self.value(self.expression.tree)

    def value(self, node: ast.expr) -> Tensor:
        if node not in self.known:
            self.known[node] = self.work_out(node)
        return self.known[node]

    def work_out(self, node: ast.expr) -> Tensor:
        match node:
            case ast.Constant(value=number):
                return to_tensor(float(number))
            case ast.Name(id="true" | "false" as name):
                return to_tensor(name == "true")
            case ast.Name(id=name):
                return self.scope.lookup(name)
            case ast.List(elts=elements):
                return self.stack(node, [self.value(element) for element in elements])
            case ast.UnaryOp(op=op, operand=operand):
                value = self.number(operand)
                return -value if isinstance(op, ast.USub) else value
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(node, self.number(left), op, self.number(right))
            case ast.Compare():
                return torch.tensor(all(self.comparisons(node)))
            case ast.Call(func=ast.Name(id=name)):
                if name == language.GRADIENT:
                    return self.gradient(node)
                if name in language.MATHS:
                    return self.maths(node)
                return self.library(node)
        raise self.fail(node, "bad-expression", "this cannot be evaluated")

    def number(self, node: ast.expr) -> Tensor:
        value = self.value(node)
        if value.dtype == torch.bool:
            raise self.fail(
                node, "bad-call", "expected a number, got a truth; true and false only fill masks"
            )
        return value

    def stack(self, node: ast.expr, values: list[Tensor]) -> Tensor:
        if not values:
            return torch.zeros(0, dtype=torch.float64)
        shapes = {tuple(value.shape) for value in values}
        if len(shapes) > 1 or len({value.dtype for value in values}) > 1:
            raise self.fail(
                node,
                "bad-list",
                "the elements of a list must be alike: all numbers, all truths, or lists of one length",
            )
        return torch.stack(values)

    def arithmetic(self, node: ast.BinOp, left: Tensor, op: ast.operator, right: Tensor) -> Tensor:
        if left.dim() and right.dim() and left.shape != right.shape:
            raise self.fail(
                node,
                "bad-shape",
                f"lists of different shapes, {list(left.shape)} and {list(right.shape)}; make them alike, or use one number",
            )
        match op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                if bool((right == 0).any()):
                    raise self.fail(node.right, "division-by-zero", "the divisor is 0; change an input")
                return left / right
        return left**right

    def comparisons(self, node: ast.Compare) -> list[bool]:
        sides = [self.value(side) for side in (node.left, *node.comparators)]
        results = []
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if left.dim() and right.dim() and left.shape != right.shape:
                raise self.fail(
                    node,
                    "bad-shape",
                    f"compares lists of different shapes, {list(left.shape)} and {list(right.shape)}; compare like with like",
                )
            if (left.dtype == torch.bool) != (right.dtype == torch.bool):
                raise self.fail(node, "bad-call", "compares a number and a truth; compare like with like")
            results.append(bool(_COMPARE[type(op)](left, right).all()))
        return results

    def maths(self, node: ast.Call) -> Tensor:
        name = node.func.id
        arguments = [self.number(argument) for argument in node.args]
        if node.keywords:
            raise self.fail(node, "bad-call", f"{name} takes no named arguments; write {name}(number)")
        if name == "close":
            if len(arguments) != 3 or arguments[2].dim():
                raise self.fail(node, "bad-call", "write close(a, b, tolerance)")
            difference = self.arithmetic(
                ast.BinOp(node.args[0], ast.Sub(), node.args[1], col_offset=node.col_offset),
                arguments[0],
                ast.Sub(),
                arguments[1],
            )
            return (difference.abs() <= arguments[2]).all()
        if name in ("min", "max") and len(arguments) > 1:
            return getattr(self.stack(node, arguments), "a" + name)(0)
        if len(arguments) != 1:
            raise self.fail(
                node, "bad-call", f"{name} takes one argument, got {len(arguments)}; write {name}(number)"
            )
        if not arguments[0].numel():
            raise self.fail(node, "bad-call", f"{name} of an empty list; give it an element")
        return {"min": torch.amin, "max": torch.amax}.get(name, getattr(torch, name))(arguments[0])

    def library(self, node: ast.Call) -> Tensor:
        name = node.func.id
        if name not in self.functions:
            known = (*self.functions, *language.MATHS, language.GRADIENT)
            raise self.fail(
                node,
                "unknown-function",
                f'"{name}" is not a public function of the libraries; {did_you_mean(name, known)}',
            )
        function = self.functions[name]
        try:
            bound = function.signature.bind(*node.args, **{k.arg: k.value for k in node.keywords})
        except TypeError as error:
            raise self.fail(node, "bad-call", f"{error}; write {name}{function.signature_text}") from None
        for parameter, argument in bound.arguments.items():
            bound.arguments[parameter] = self.argument(function, name, parameter, argument)
        try:
            result = function.call(*bound.args, **bound.kwargs)
            if isinstance(result, tuple):  # a named tuple of terms is a list of them
                result = torch.stack([torch.as_tensor(each, dtype=torch.float64) for each in result])
            return result if isinstance(result, Tensor) else to_tensor(result)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise self.fail(node, "call-failed", f"{name} refused its arguments: {reason}") from None

    def argument(self, function: LibraryFunction, name: str, parameter: str, node: ast.expr):
        """A tensor, or the plain number or word that the parameter's annotation asks for."""
        is_word = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if parameter in function.words:
            if not is_word:
                raise self.fail(node, "bad-call", f'{name} takes a quoted word as "{parameter}"')
            return node.value
        if is_word:
            raise self.fail(node, "bad-call", f'{name} takes a number as "{parameter}", not a word')
        if parameter not in function.numbers:
            return self.value(node)
        value = self.number(node)
        if value.requires_grad:
            raise self.fail(
                node,
                "no-dependence",
                f'{name} takes "{parameter}" as a plain number; no gradient flows through it, so differentiate by another name',
            )
        if value.dim():
            raise self.fail(node, "bad-call", f'{name} takes one number as "{parameter}", not a list')
        return value.item()

    def gradient(self, node: ast.Call) -> Tensor:
        body, name = node.args[0], node.args[1].id
        at = self.value(node.keywords[0].value) if node.keywords else self.scope.lookup(name)
        if at.dtype == torch.bool:
            raise self.fail(
                node.args[1],
                "bad-gradient",
                f'"{name}" holds truths; take the gradient with respect to numbers',
            )
        leaf = at.detach().clone().requires_grad_()
        inner = Interpreter(self.functions, self.scope.inside_gradient(name, leaf), self.expression)
        result = inner.value(body)
        if result.numel() != 1:
            raise self.fail(
                body, "bad-gradient", f"a gradient is taken of one number, not of {result.numel()}; sum them"
            )
        slope = None
        if result.requires_grad:
            (slope,) = torch.autograd.grad(result.sum(), leaf, allow_unused=True)
        if slope is None:
            raise self.fail(
                node,
                "no-dependence",
                f'the result does not depend on "{name}" through anything that can be differentiated; choose another name',
            )
        return slope


_COMPARE = {
    ast.Eq: torch.eq,
    ast.NotEq: torch.ne,
    ast.Lt: torch.lt,
    ast.LtE: torch.le,
    ast.Gt: torch.gt,
    ast.GtE: torch.ge,
}


class Scope:
    """What names stand for in one run: inputs, changed inputs, and values, each worked out once when first asked for.

    `printed` reads the inputs of every value as a reader does, from the digits on the page.
    """

    def __init__(
        self,
        functions: Mapping[str, LibraryFunction],
        given: Mapping[str, Tensor],
        expressions: Mapping[str, Expression],
        printed: Mapping[str, Tensor] | None = None,
    ):
        self.functions = functions
        self.known = dict(given)
        self.given = given
        self.expressions = expressions
        self.printed = printed or {}

    def lookup(self, name: str) -> Tensor:
        if name not in self.known:
            self.known[name] = (
                self.printed[name] if name in self.printed else self.run(self.expressions[name])
            )
        return self.known[name]

    def run(self, expression: Expression) -> Tensor:
        return Interpreter(self.functions, self, expression).run()

    def inside_gradient(self, name: str, leaf: Tensor) -> "Scope":
        """Values stand for their expressions there, so that the gradient reaches through them."""
        return Scope(self.functions, {**self.given, name: leaf}, self.expressions)
