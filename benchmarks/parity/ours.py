"""Our side of the rows: what their code may call."""

import ast
import inspect

import torch

import ppo_core
from benchmarks.parity.run import called


def our_names() -> dict[str, object]:
    """What our side of a row may call."""
    return {name: getattr(ppo_core, name) for name in ppo_core.__all__} | {"torch": torch}


def missing(code: str) -> str | None:
    """Say what the code asks of ppo_core that is not there: a function or an argument of one; None: nothing."""
    for node in ast.walk(ast.parse(code)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        name = node.func.id
        if name not in ppo_core.__all__:
            if name not in {"sum", "zip", "range", "float", "list"}:
                return f"ppo_core has no {name}"
            continue
        known = inspect.signature(getattr(ppo_core, name)).parameters
        for keyword in node.keywords:
            if keyword.arg not in known:
                return f"{name} has no argument {keyword.arg}"
    return None


def functions(code: str) -> list[str]:
    """The functions of ppo_core that the code calls, in the order in which they stand."""
    return [name for name in called(code) if name in ppo_core.__all__]
