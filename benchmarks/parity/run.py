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


def called(code: str) -> list[str]:
    """The functions that the code calls by a name of its own or of a module, in the order in which they stand.

    What the code itself names, and methods of what a call gives, are none.
    """
    tree = ast.parse(code)
    own = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [(each.lineno, each.col_offset, name) for each in calls if (name := _dotted(each))]
    return list(dict.fromkeys(name for _, _, name in sorted(found) if name.split(".")[0] not in own))


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return None
