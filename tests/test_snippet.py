"""Every computation that a page shows is run as a reader would run it, and gives what stands beside it."""

import ast
import json
import math
import re

import pytest
import torch

from build_tools.site import Result, make

BLOCK = re.compile(r"^```python\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def real(config) -> Result:
    result = make(config, use_cache=False)
    assert result.faults == ()
    return result


@pytest.fixture(autouse=True)
def default_dtype():
    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


def comments(code: str) -> dict[str, object]:
    """What stands beside each name, or under it, where anything does."""
    found = {}
    lines = [*code.split("\n"), ""]
    for statement in ast.parse(code).body:
        beside, under = lines[statement.end_lineno - 1 : statement.end_lineno + 1]
        match = re.search(r"  # (.*)$", beside) or re.fullmatch(r"# (.*)", under)
        if isinstance(statement, ast.Assign) and match:
            found[statement.targets[0].id] = json.loads(match[1])
    return found


def differences(code: str) -> dict[str, tuple]:
    """The names whose value, once the code is run by itself, is not what stands beside them."""
    namespace: dict[str, object] = {}
    torch.set_default_dtype(torch.float32)
    exec(compile(code, "snippet", "exec"), namespace)
    found = {}
    for name, said in comments(code).items():
        value = namespace[name]
        if isinstance(value, tuple):  # a named tuple of terms
            value = torch.stack(value)
        value = value.tolist() if isinstance(value, torch.Tensor) else value
        if not same(value, said):
            found[name] = (value, said)
    return found


def same(value: object, said: object) -> bool:
    if isinstance(said, list):
        return isinstance(value, list) and len(value) == len(said) and all(map(same, value, said))
    return not isinstance(value, list) and math.isclose(value, said, rel_tol=1e-11, abs_tol=1e-13)


def test_each_computation_of_the_site_gives_what_stands_beside_it(real):
    compared = 0
    for page in real.pages:
        for code in BLOCK.findall(page.text):
            assert differences(code) == {}, f"{page.uri}:\n{code}"
            compared += len(comments(code))

    items = {item.id: item for document in real.bank.documents for item in document.items}
    embedded = [items[item.embed.text] for item in items.values() if item.embed]
    assert compared == sum(len(item.values) for item in [*items.values(), *embedded])
    assert compared >= real.counts()["values"] > 0


def test_a_wrong_result_is_noticed(real):
    code = next(code for page in real.pages for code in BLOCK.findall(page.text) if "  # 2.4" in code)

    assert differences(code) == {}
    wrong = differences(code.replace("  # 2.4", "  # 2.5", 1))
    assert [(round(value, 12), said) for value, said in wrong.values()] == [(2.4, 2.5)]
    assert differences(code.replace("epsilon = 0.2", "epsilon = 0.3")) != {}


PAGE = "---\nkind: page\ntitle: Page\n---\n## Part {{#part}}\n```yaml\n{block}\n```\n{names}\n"


@pytest.fixture
def code_of(project):
    def build(given: str, *values: str) -> str:
        lines = "\n".join(f"  {value}" for value in values)
        names = re.findall(r"(\w+):", given) + [value.split(":")[0] for value in values]
        block = f"given: {given}\nvalues:\n{lines}"
        text = PAGE.format(block=block, names=" ".join(f"{{={name}}}" for name in names))
        result = make(project({"a.md": text}), use_cache=False)
        assert result.faults == ()
        return BLOCK.search(result.pages[0].text)[1]

    return build


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("{x: 2, y: 3}", ["z: x * y + 1 = 7"]),
        ("{x: 2, y: 3}", ["z: surrogate(x, y) = 6"]),
        ("{x: 2, y: 3}", ["z: surrogate(x * 2, -y) = -12"]),
        ("{x: 2}", ["z: surrogate(x, 3) = 6", "w: surrogate(-3, x) = -6"]),
        # A plain number that a later call takes as a tensor.
        ("{x: 2}", ["y: 1 + x = 3", "z: surrogate(y, y) = 9"]),
        ("{x: 2}", ["y: 1 + x = 3", "z: log(y * y) = 2.1972"]),
        # A number that one call takes plain and another as a tensor.
        ("{x: 0.5}", ["z: clip_ratio(x, epsilon=x) = 0.5", "w: clip_ratio(2, epsilon=z) = 1.5"]),
        # Whole numbers in lists are floats, too.
        ("{v: [1, 2]}", ["s: sum(v) = 3", "t: '[1, 0] * 2 = [2, 0]'"]),
        ("{v: [1, 2], x: 3}", ["w: v - [1, 0] = [0, 2]", "u: '[x, 0] * v = [3, 0]'", "m: mean(v) = 1.5"]),
        ("{v: [1, 2], x: 3}", ["s: sum([[x, 1], v]) = 7"]),
        ("{v: [1, 2]}", ["w: surrogate([2, 3], v) = [2, 6]"]),
        ("{v: [1, -2]}", ["w: -v = [-1, 2]", "a: abs(w) = [1, 2]"]),
        # The smallest and largest, of a list and of several arguments.
        ("{v: [1, 4]}", ["a: max(v) = 4", "b: max(v, [3, 2]) = [3, 4]", "c: min(2, a, 7) = 2"]),
        # Masks.
        ("{v: [1, 4], m: [true, false]}", ["a: masked_mean(v, m) = 1", "b: masked_sum(v, [true, true]) = 5"]),
        ("{v: [1, 4], m: [true, true]}", ['a: aggregate(v, m, mode="constant", denominator=10) = 0.5']),
        # Gradients, where values stand for their expressions.
        ("{x: 2}", ["y: x * x = 4", "g: gradient(y, x) = 4"]),
        ("{x: 2}", ["y: x * x = 4", "z: y * y = 16", "g: gradient(z + y, x) = 36", "h: gradient(z, y) = 8"]),
        ("{x: 2, p: 5}", ["g: gradient(x * x, x, at=p) = 10", "h: gradient(x ** 3, x, at=1) = 3"]),
        ("{v: [1, 2]}", ["g: gradient(sum(v * v), v) = [2, 4]"]),
        (
            "{x: 2, e: 0.2}",
            ["c: 1 + e = 1.2", "g: gradient(min(x, c) * 2, x) = 0", "h: gradient(min(x, c) * 2, c) = 2"],
        ),
        (
            "{x: 1.6, A: 2}",
            ["u: clipped_surrogate(x, A, epsilon=0.2) = 2.4", "g: gradient(u, x, at=1.1) = 2"],
        ),
        ("{x: 0.00001, y: 1e-9}", ["z: x * y = 1.0e-14", "w: log(y) = -20.72"]),
    ],
)
def test_what_an_expression_becomes(code_of, given, values):
    code = code_of(given, *values)

    assert len(comments(code)) == len(values)
    assert differences(code) == {}, code


def test_how_it_reads(code_of):
    code = code_of(
        "{x: 1.6, A: 2, e: 0.20}",
        "c: 1 + e = 1.2",
        "u: clipped_surrogate(x, A, epsilon=e) = 2.4",
        "g: gradient(clipped_surrogate(x, A, epsilon=e), x, at=c / 1.5) = 2",
    )

    assert (
        code
        == """\
import torch
from ppo_core import clipped_surrogate

torch.set_default_dtype(torch.float64)

x = torch.tensor(1.6)
A = torch.tensor(2.0)
e = 0.20

c = 1 + e  # 1.2
u = clipped_surrogate(x, A, epsilon=e)  # 2.4
g = torch.func.grad(
    lambda x: clipped_surrogate(x, A, epsilon=e),
)(torch.tensor(c / 1.5))  # 2"""
    )


def test_what_needs_no_torch_imports_none(code_of):
    assert code_of("{Q: 0.7, V: 0.4}", "A: Q - V = 0.3") == "Q = 0.7\nV = 0.4\n\nA = Q - V  # 0.3"
