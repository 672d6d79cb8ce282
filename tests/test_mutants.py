"""The maker of mutants makes the ones it should, and leaves nothing behind."""

import importlib
import importlib.util
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest
import torch

from mutants import Target, all_mutants, applied, mutants, reached


@pytest.fixture
def made(tmp_path, monkeypatch) -> Iterator[Callable[[str], list[str]]]:
    """Makes a module of the code, with one function `f`, and lists what its lines become in the mutants."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(code: str) -> list[str]:
        (tmp_path / "wrong_ways.py").write_text(textwrap.dedent(code), encoding="utf-8")
        importlib.invalidate_caches()
        module = importlib.import_module("wrong_ways")
        return [mutant.after for mutant in mutants(Target("wrong_ways", "f", vars(module)))]

    yield make
    sys.modules.pop("wrong_ways", None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a + b", ["a - b"]),
        ("a - b", ["a + b", "b - a"]),
        ("a * b", ["a / b"]),
        ("a / b", ["a * b", "b / a"]),
        ("a // b", ["a * b", "b // a"]),
        ("a % b", ["a // b", "b % a"]),
        ("a @ b", ["b @ a"]),
        ("a ** b", ["a * b", "a / b", "b ** a"]),
        ("-a", ["a"]),
        ("not a", ["a"]),
        ("a < b", ["a <= b", "a > b"]),
        ("a >= b", ["a > b", "a <= b"]),
        ("a == b", ["a != b"]),
        ("0 < a < b", ["0 <= a < b", "0 > a < b", "0 < a <= b", "0 < a > b", "1 < a < b", "-1 < a < b"]),
        ("a and b", ["a or b"]),
        ("a & b", ["a | b"]),
        ("3", ["4", "2", "6", "0"]),
        ("0.5", ["1.5", "-0.5", "1.0", "0.0"]),
        ("min(a, b)", ["max(a, b)", "min(b, a)"]),
        ("a.any()", ["a.all()"]),
        ("torch.maximum(a, b)", ["torch.minimum(a, b)", "torch.maximum(b, a)"]),
        ("a.clamp(b, c)", ["a", "a.clamp(min=b)", "a.clamp(max=c)", "a.clamp(min=c, max=b)"]),
        ("a.clamp(min=b)", ["a", "a.clamp(max=b)"]),
        ("torch.clamp(a, b, c, out=c)", ["a", "a.clamp(min=b)", "a.clamp(max=c)", "a.clamp(min=c, max=b)"]),
        ("a.clamp_(max=b)", ["a", "a.clamp_(min=b)"]),
        ("a.mul_(b)", ["a.div_(b)"]),
        ("a.exp_()", ["a"]),
        ("torch.where(a, b, c)", ["torch.where(a, c, b)"]),
        ("torch.exp(a)", ["a"]),
        ("a.detach()", ["a"]),
        ("g(a, b)", ["g(b, a)"]),
        ("isinstance(a, b)", []),
        ("a.softmax(-1)", ["a", "a.softmax(1)", "a.softmax(-2)", "a.softmax(-0)"]),
    ],
)
def test_a_line_becomes(made, line, expected):
    code = f"""
    import torch

    def f(a, b, c):
        'Adds 1 + 1.'
        return {line}
    """
    assert made(code) == [f"return {each}" for each in expected]


def test_messages_annotations_and_docstrings_are_left_alone(made):
    code = """
    def f(a: "1 + 1", b=2) -> "1 + 1":
        'Adds 1 + 1.'
        if a:
            raise ValueError(f"{1 + 1}", 1 + 1)
        return f"{a + 1}"
    """
    assert made(code) == [f"def f(a: '1 + 1', b={other}) -> '1 + 1':" for other in (3, 1, 4, 0)]


def test_a_mutant_lives_only_while_it_is_applied(functions):
    call = functions["clipped_surrogate"].call
    mutant = next(m for m in all_mutants([call]) if m.after == "return bounded / advantages")
    rho, A = torch.tensor([1.0]), torch.tensor([2.0])
    assert call(rho, A, epsilon=0.2).item() == 2
    with applied(mutant):
        assert call(rho, A, epsilon=0.2).item() == 0.5
    assert call(rho, A, epsilon=0.2).item() == 2
    number = next(m for m in all_mutants([functions["kl_k3"].call]) if m.target.name == "SERIES_DEGREE")
    with applied(number):
        assert number.target.namespace["SERIES_DEGREE"] == 11
    assert number.target.namespace["SERIES_DEGREE"] == 10


def test_what_is_reached_goes_through_helpers_numbers_and_tables(functions):
    names = {target.name for target in reached([functions["sampled_kl_gradient"].call])}
    assert names >= {"_logits", "floats", "kl_k3", "_drift", "log_ratio", "counted", "SERIES_RADIUS"}
    assert "aggregate" not in names


def test_what_is_reached_goes_into_classes(functions):
    names = {target.name for target in reached([functions["hidden_logprobs"].call])}
    assert names >= {"_Statistics.forward", "_Gradients.backward", "row_slopes", "chunks", "CHUNK_ELEMENTS"}


def test_what_is_reached_goes_into_lambdas_and_comprehensions(tmp_path):
    (tmp_path / "lab.py").write_text(
        "def inner(x):\n    return x\n\ndef other(x):\n    return x\n\n"
        "def outer(xs):\n    return [inner(x) for x in xs], lambda x: other(x)\n"
    )
    spec = importlib.util.spec_from_file_location("lab.written", tmp_path / "lab.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert [target.name for target in reached([module.outer])] == ["inner", "other", "outer"]


def test_a_mutant_of_a_method_lives_only_while_it_is_applied(functions):
    call = functions["hidden_logprobs"].call

    def gradient():
        hidden = torch.ones(2, 3, requires_grad=True)
        call(hidden, torch.eye(3), torch.tensor([0, 1])).logprobs.sum().backward()
        return hidden.grad

    right = gradient()
    mutant = next(
        m for m in all_mutants([call]) if m.target.name == "_Statistics.backward" and "[:0]" in m.after
    )
    with applied(mutant), pytest.raises(IndexError):
        gradient()
    assert torch.equal(gradient(), right)
