"""The computation of an item as Python that a reader can paste and run: the same calls, with their results."""

import ast
import copy
import re
from collections.abc import Mapping

from build_tools import expression as language
from build_tools.digits import shown
from build_tools.model import Expression, Function, Item, Number, Outcome
from build_tools.prose import expressions_by_name

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
        self.values = expressions_by_name(item.values)
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
            case ast.List():
                return True
        return False

    def holds_tensor(self, node: ast.expr) -> bool:
        """Whether a list, or one inside it, has an element that is a tensor already."""
        return any(map(self.holds_tensor, node.elts)) if isinstance(node, ast.List) else self.is_tensor(node)

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
            typed = given.expression.text.replace("true", "True").replace("false", "False")
            literal = _WHOLE.sub(r"\g<0>.0", typed)
            lines.append(
                f"{given.name} = {f'torch.tensor({literal})' if given.name in self.tensors else literal}"
            )
        return lines

    def assignment(self, name: str, tree: ast.expr, result: Number) -> str:
        # A plain number that a later call takes as a tensor is made one where it is assigned.
        node = ast.fix_missing_locations(self.tensor(tree) if name in self.tensors else self.rewrite(tree))
        line = f"{name} = {ast.unparse(node)}"
        comment = f"  # {shown(result)}"
        if len(line) > _WIDTH:
            line = f"{name} = {_broken(node)}"
        last = line.rsplit("\n", 1)[-1]
        return line + comment if len(last + comment) <= _WIDTH else f"{line}\n{comment.strip()}"

    def rewrite(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id="true" | "false" as name):
                return ast.Constant(name == "true")
            case ast.List() if self.holds_tensor(node):
                return self.stack(node.elts)
            case ast.List():
                return _call("torch.tensor", _floats(self.listed(node)))
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
        return _call("torch.tensor", _floats(self.rewrite(node)))

    def stack(self, elements: list[ast.expr]) -> ast.expr:
        return _call("torch.stack", ast.List([self.tensor(element) for element in elements], ast.Load()))

    def listed(self, node: ast.expr) -> ast.expr:
        """A list of plain numbers as Python has it; a number by itself."""
        if isinstance(node, ast.List):
            return ast.List([self.listed(element) for element in node.elts], ast.Load())
        return self.rewrite(node)

    def plain(self, node: ast.expr) -> ast.expr:
        """The node as code that gives a plain number."""
        return _call("float", self.rewrite(node)) if self.is_tensor(node) else self.rewrite(node)

    def maths(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        torch_name = {"min": "amin", "max": "amax"}.get(name, name)
        if len(arguments) > 1:
            # The smallest or largest of its arguments, element by element.
            return ast.Call(_function(f"torch.{torch_name}"), [self.stack(arguments), ast.Constant(0)], [])
        return _call(f"torch.{torch_name}", self.tensor(arguments[0]))

    def gradient(self, node: ast.Call) -> ast.expr:
        name = node.args[1].id
        at = node.keywords[0].value if node.keywords else node.args[1]
        parameters = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
        body = _Inlined(name, self.values).visit(copy.deepcopy(node.args[0]))
        return ast.Call(
            _call("torch.func.grad", ast.Lambda(parameters, self.rewrite(body))),
            [self.tensor(at)],
            [],
        )


class _Inlined(ast.NodeTransformer):
    """Puts the expressions of values in the place of their names, where a gradient must reach through them."""

    def __init__(self, name: str, values: Mapping[str, Expression]):
        self.name = name
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == self.name or node.id not in self.values:
            return node
        tree = self.values[node.id].tree
        return (
            self.visit(copy.deepcopy(tree)) if self.name in language.dependencies(tree, self.values) else node
        )


def _function(name: str) -> ast.expr:
    return ast.parse(name, mode="eval").body


def _call(name: str, argument: ast.expr) -> ast.expr:
    return ast.Call(_function(name), [argument], [])


def _floats(node: ast.expr) -> ast.expr:
    """The same with whole numbers as floats, so that torch.tensor makes floats of them."""
    node = copy.deepcopy(node)
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and type(each.value) is int:
            each.value = float(each.value)
    return node


# A whole number that is not part of another one, such as the 9 of 1e-9.
_WHOLE = re.compile(r"(?<![\w.])(?<![eE][-+])\d+(?![\w.])")


def _broken(node: ast.expr) -> str:
    """A call with its arguments on lines of their own; anything else as it is."""
    if not isinstance(node, ast.Call):
        return ast.unparse(node)
    if isinstance(node.func, ast.Call):
        return f"{_broken(node.func)}({', '.join(map(ast.unparse, node.args))})"
    arguments = [ast.unparse(each) for each in node.args]
    arguments += [f"{each.arg}={ast.unparse(each.value)}" for each in node.keywords]
    return "\n".join([f"{ast.unparse(node.func)}(", *(f"    {each}," for each in arguments), ")"])
