"""Evaluate the code of one side of a row, and give its result as plain lists."""

import ast
import math
from collections.abc import Mapping

import torch

Plain = float | str | list


def evaluate(code: str, names: Mapping[str, object]) -> object:
    """Run all lines and return the value of the last one, which is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        raise SyntaxError(f"the last line is no expression: {code}")
    scope = dict(names)
    exec(compile(tree, "<row>", "exec"), scope)
    return eval(compile(ast.Expression(last.value), "<row>", "eval"), scope)


def result(code: str, names: Mapping[str, object], slope: str | None = None) -> dict[str, Plain]:
    """The value of the code, and the gradient of its sum into the input `slope`; or the error that it raised."""
    names = dict(names)
    if slope is not None:
        names[slope] = names[slope].clone().requires_grad_()
    try:
        value = evaluate(code, names)
        answer = {"value": plain(value)}
        if slope is not None:
            (gradient,) = torch.autograd.grad(value.sum(), names[slope])
            answer["slope"] = plain(gradient)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    return answer


def by_hand(arithmetic: str) -> object:
    """The value of arithmetic on plain numbers: nothing but `math` is known there."""
    return eval(arithmetic, {"__builtins__": {}} | {k: v for k, v in vars(math).items() if k[0] != "_"})


def plain(value: object) -> Plain:
    """Numbers and lists of them; what JSON has no number for is a word."""
    if isinstance(value, torch.Tensor):
        return plain(value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (bool, int, float)):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, str):
        return value
    raise TypeError(f"a row must give numbers, got {type(value).__name__}")
