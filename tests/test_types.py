"""The type checker is strict about `ppo_core`, and those who use it see its types."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checked(tmp_path) -> Callable[[str], list[str]]:
    """Checks a file of the code as the project is checked, and lists the errors with their lines."""

    def check(code: str) -> list[str]:
        (tmp_path / "planted.py").write_text(code, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "planted.py")]
        run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert run.stderr == ""
        lines = run.stdout.splitlines()
        assert run.returncode == bool(lines)
        return [line.rpartition("planted.py:")[2] for line in lines if ": note: " not in line]

    return check


def test_right_use_of_the_library_passes(checked):
    code = """
import torch
from ppo_core import clip_fractions, policy_loss

x, mask = torch.zeros(2, 3, requires_grad=True), torch.ones(2, 3, dtype=torch.bool)
loss: torch.Tensor = policy_loss(x, x, x, epsilon=0.2, mask=mask)
upper: torch.Tensor = clip_fractions(x, x, x, mask, epsilon=0.2).upper
"""
    assert checked(code) == []


def test_planted_errors_are_noticed(checked):
    code = """
import torch
from ppo_core import clip_fractions, policy_loss

x = torch.zeros(2)
policy_loss([1.0], x, x, epsilon=0.2)
policy_loss(x, x, x, epsilon="0.2")
policy_loss(x, x, x)
loss: float = policy_loss(x, x, x, epsilon=0.2)
clip_fractions(x, x, x, x > 0, epsilon=0.2).middle
"""
    assert checked(code) == [
        '6: error: Argument 1 to "policy_loss" has incompatible type "list[float]"; expected "Tensor"  [arg-type]',
        '7: error: Argument "epsilon" to "policy_loss" has incompatible type "str"; expected "float"  [arg-type]',
        '8: error: Missing named argument "epsilon" for "policy_loss"  [call-arg]',
        '9: error: Incompatible types in assignment (expression has type "Tensor", variable has type "float")  [assignment]',
        '10: error: "ClipFractions" has no attribute "middle"  [attr-defined]',
    ]


def test_a_function_without_types_is_noticed(checked):
    # Only the strict checker minds: the others take such a function as it is.
    assert checked("def double(x):\n    return 2 * x\n") == [
        "1: error: Function is missing a type annotation  [no-untyped-def]"
    ]
