"""The computation of an item as Python that a reader can paste and run: the same calls, with their results."""

import ast
from collections.abc import Mapping

from build_tools import expression as language
from build_tools.digits import shown
from build_tools.model import Function, Item, Number, Outcome

_WIDTH = 72  # a longer line is broken at its brackets, so that a phone scrolls little


def snippet(item: Item, outcome: Outcome) -> str:
    """Empty if the item computes nothing."""
    if not item.values:
        return ""
    writer = _Writer(item, outcome.functions)
    body = [writer.assignment(v.name, v.expression.tree, outcome.values[v.name]) for v in item.values]
    return "\n".join([*writer.imports(), *([""] if writer.imports() else []), *writer.inputs(), "", *body])


class _Writer:
    """Knows which names hold tensors: those that reach a tensor parameter or a maths function, and what rests on them."""

    def __init__(self, item: Item, functions: Mapping[str, Function]):
        self.item = item
        self.functions = functions
        self.tensors = {name for v in item.values for name in self._tensor_names(v.expression.tree)}
        self.tensors |= {g.name for g in item.given if g.expression.text.startswith("[")}
        for value in item.values:
            if self.is_tensor(value.expression.tree):
                self.tensors.add(value.name)

    def _tensor_names(self, tree: ast.expr) -> set[str]:
        found = set()
        for call in language.calls(tree):
            function = self.functions.get(call.func.id)
            arguments = [
                *call.args,
                *(k.value for k in call.keywords if not function or k.arg not in function.numbers),
            ]
            found |= {argument.id for argument in arguments if isinstance(argument, ast.Name)}
        return found - {"true", "false"}

    def is_tensor(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.tensors
            case ast.Call():
                return True
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case ast.UnaryOp(operand=operand):
                return self.is_tensor(operand)
            case ast.List(elts=elements):
                return any(self.is_tensor(element) for element in elements)
        return False

    def imports(self) -> list[str]:
        used = {call.func.id for v in self.item.values for call in language.calls(v.expression.tree)}
        modules = sorted({self.functions[name].module for name in used if name in self.functions})
        lines = [
            f"from {module} import {', '.join(sorted(n for n in used if n in self.functions and self.functions[n].module == module))}"
            for module in modules
        ]
        if not used and not self.tensors:
            return lines
        return ["import torch", *lines, "", "torch.set_default_dtype(torch.float64)"]

    def inputs(self) -> list[str]:
        used = {name.id for v in self.item.values for name in language.names(v.expression.tree)}
        lines = []
        for given in (each for each in self.item.given if each.name in used):
            literal = given.expression.text.replace("true", "True").replace("false", "False")
            lines.append(
                f"{given.name} = {f'torch.tensor({_float(literal)})' if given.name in self.tensors else literal}"
            )
        return lines

    def assignment(self, name: str, tree: ast.expr, result: Number) -> str:
        node = ast.fix_missing_locations(self.rewrite(tree))
        line = f"{name} = {ast.unparse(node)}"
        comment = f"  # {shown(result)}"
        if len(line) > _WIDTH:
            line = f"{name} = {_broken(node)}"
        return line + comment

    def rewrite(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id="true" | "false" as name):
                return ast.Constant(name == "true")
            case ast.List(elts=elements) if self.is_tensor(node):
                return _call(
                    "torch.stack", ast.List([self.tensor(element) for element in elements], ast.Load())
                )
            case ast.List(elts=elements):
                return ast.List([self.rewrite(element) for element in elements], ast.Load())
            case ast.UnaryOp(op=op, operand=operand):
                return ast.UnaryOp(op, self.rewrite(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return ast.BinOp(self.rewrite(left), op, self.rewrite(right))
            case ast.Call(func=ast.Name(id=language.GRADIENT)):
                return self.gradient(node)
            case ast.Call(func=ast.Name(id=name)) if name in language.MATHS:
                return self.maths(name, node.args)
            case ast.Call(func=func, args=arguments, keywords=keywords):
                numbers = self.functions[func.id].numbers
                return ast.Call(
                    func,
                    [self.tensor(argument) for argument in arguments],
                    [
                        ast.keyword(k.arg, self.plain(k.value) if k.arg in numbers else self.tensor(k.value))
                        for k in keywords
                    ],
                )
        return node

    def tensor(self, node: ast.expr) -> ast.expr:
        """The node as code that gives a tensor."""
        if self.is_tensor(node) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return self.rewrite(node)
        inner = self.rewrite(node)
        return _call(
            "torch.tensor",
            ast.Constant(float(inner.value))
            if isinstance(inner, ast.Constant) and type(inner.value) is int
            else inner,
        )

    def plain(self, node: ast.expr) -> ast.expr:
        """The node as code that gives a plain number."""
        return _call("float", self.rewrite(node)) if self.is_tensor(node) else self.rewrite(node)

    def maths(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        torch_name = {"min": "amin", "max": "amax"}.get(name, name)
        if len(arguments) > 1:
            return _call(
                f"torch.{torch_name}",
                _call("torch.stack", ast.List([self.tensor(a) for a in arguments], ast.Load())),
            )
        return _call(f"torch.{torch_name}", self.tensor(arguments[0]))

    def gradient(self, node: ast.Call) -> ast.expr:
        name = node.args[1].id
        at = node.keywords[0].value if node.keywords else node.args[1]
        parameters = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
        return ast.Call(
            _call("torch.func.grad", ast.Lambda(parameters, self.rewrite(node.args[0]))),
            [self.tensor(at)],
            [],
        )


def _call(name: str, argument: ast.expr) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, [argument], [])


def _float(literal: str) -> str:
    """A whole number as a float, so that torch.tensor makes a float of it."""
    return f"{literal}.0" if literal.lstrip("+-").isdigit() else literal


def _broken(node: ast.expr) -> str:
    """A call with its arguments on lines of their own; anything else as it is."""
    if not isinstance(node, ast.Call):
        return ast.unparse(node)
    if isinstance(node.func, ast.Call):
        return f"{_broken(node.func)}({', '.join(map(ast.unparse, node.args))})"
    arguments = [ast.unparse(each) for each in node.args]
    arguments += [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords]
    return "\n".join([f"{ast.unparse(node.func)}(", *(f"    {each}," for each in arguments), ")"])
