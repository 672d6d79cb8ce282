"""Every arithmetic detail of the library functions behind the content is changed; something must notice each time.

First the content: a value with other digits, a check that fails. What the content does not see, the tests of the
library must. What neither sees must stand in EQUIVALENT, with the reason why no test could.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from build_tools.evaluate import evaluate_item
from build_tools.load import load
from build_tools.model import Item
from mutants import Mutant, Target, all_mutants, applied, reached

ROOT = Path(__file__).parent.parent
# The tests of the library and its doctests. What test_library_surface runs it runs in processes of its own, which
# hold no mutant.
TESTS = (
    "ppo_core",
    "lab",
    "tests/library",
    "tests/lab",
    "tests/test_killers.py",
    "--ignore=tests/library/test_library_surface.py",
)
SAMPLE = 31  # the short version tries every 31st
# Whose code is changed: the library, and the two worlds of the laboratory that show the errata on variance and leash.
# The other worlds have their own tests; which of their mutants change no result is not yet worked out.
CHANGED = ("ppo_core.", "lab.bandit.", "lab.kl_gradients.")

_CONSTANT_SHIFT = "logits that differ by one number for all actions are the same policy"
_ONE_DIMENSION = "the argument has one dimension, which is the first and the last"
_NOT_CHOSEN = "torch.where never chooses the filler, it must only be finite"
_TIMES_ZERO = "what has no probability is multiplied by 0, so the filler must only be finite"
_FAR = "its exponential is past every ceiling, and float32 holds it"
_SQUARE = "the square has no sign"
_NO_BASELINE = "no baseline changes the mean"

# Changes that change no result, each with the reason.
EQUIVALENT = {
    "ppo_core.policy.FAR_PAST_THE_CEILING: FAR_PAST_THE_CEILING = 80.0 -> FAR_PAST_THE_CEILING = 81.0": _FAR,
    "ppo_core.policy.FAR_PAST_THE_CEILING: FAR_PAST_THE_CEILING = 80.0 -> FAR_PAST_THE_CEILING = 79.0": _FAR,
    "ppo_core.values.value_loss: return (counted(values, mask) - counted(returns.detach(), mask)) ** 2 / 2 -> return (counted(returns.detach(), mask) - counted(values, mask)) ** 2 / 2": _SQUARE,
    "ppo_core.advantages.gae: next_value = rewards.new_zeros(rewards.shape[:-1]) -> next_value = rewards.new_zeros(rewards.shape[:-0])": (
        "one 0 for all answers is as good as one for each"
    ),
    "ppo_core.entropies.entropy: finite = torch.where(logits == -torch.inf, 0.0, logprobs) -> finite = torch.where(logits == -torch.inf, 1.0, logprobs)": _TIMES_ZERO,
    "ppo_core.entropies.entropy: finite = torch.where(logits == -torch.inf, 0.0, logprobs) -> finite = torch.where(logits == -torch.inf, -1.0, logprobs)": _TIMES_ZERO,
    "lab.bandit.exact_policy_gradient: logits = probs.detach().log().requires_grad_() -> logits = probs.log().requires_grad_()": (
        "autograd.grad asks for the gradient of `logits` alone, so nothing flows further"
    ),
    "lab.bandit.exact_policy_gradient: value = (torch.softmax(logits, -1) * rewards).sum() -> value = (torch.softmax(logits, -0) * rewards).sum()": _ONE_DIMENSION,
    "lab.bandit.policy_gradient_mean: def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=0.0) -> Tensor: -> def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=1.0) -> Tensor:": _NO_BASELINE,
    "lab.bandit.policy_gradient_mean: def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=0.0) -> Tensor: -> def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=-1.0) -> Tensor:": _NO_BASELINE,
    "lab.bandit.policy_gradient_variance: return (probs * (estimates - mean) ** 2).sum() -> return (probs * (mean - estimates) ** 2).sum()": (
        "the square has no sign"
    ),
    "lab.kl_gradients.kl_gradient: logprobs = torch.log_softmax(z, -1) -> logprobs = torch.log_softmax(z, -0)": _ONE_DIMENSION,
    "lab.kl_gradients.kl_gradient: divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -1))).sum() -> divergence = (logprobs.exp() * (logprobs - ref_logits)).sum()": _CONSTANT_SHIFT,
    "lab.kl_gradients.kl_gradient: divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -1))).sum() -> divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -0))).sum()": _ONE_DIMENSION,
    "lab.kl_gradients.sampled_kl_gradient: logprobs = torch.log_softmax(z, -1) -> logprobs = torch.log_softmax(z, -0)": _ONE_DIMENSION,
    "lab.kl_gradients.sampled_kl_gradient: per_action = ESTIMATORS[estimator](logprobs, torch.log_softmax(ref_logits, -1)) -> per_action = ESTIMATORS[estimator](logprobs, torch.log_softmax(ref_logits, -0))": _ONE_DIMENSION,
    "ppo_core.kl.SERIES_DEGREE: SERIES_DEGREE = 10 -> SERIES_DEGREE = 11": "d^11 / 11! is below the last bit of the sum",
    "ppo_core.kl.SERIES_DEGREE: SERIES_DEGREE = 10 -> SERIES_DEGREE = 20": "so are all later terms",
    "ppo_core.kl.kl_k3: small = d.abs() < SERIES_RADIUS -> small = d.abs() <= SERIES_RADIUS": (
        "at the radius both forms are right"
    ),
    "ppo_core.kl.kl_k3: x = torch.where(small, d, 0.0) -> x = torch.where(small, d, 1.0)": _NOT_CHOSEN,
    "ppo_core.kl.kl_k3: x = torch.where(small, d, 0.0) -> x = torch.where(small, d, -1.0)": _NOT_CHOSEN,
}


@pytest.fixture(scope="module")
def items(config) -> list[Item]:
    bank, faults = load(config.root)
    assert not faults
    return [item for document in bank.documents for item in document.items]


@pytest.fixture(scope="module")
def called(items, functions) -> dict[str, list[str]]:
    """The public functions that each item calls."""
    return {item.id: list(evaluate_item(item, functions)[0].functions) for item in items}


@pytest.fixture(scope="module")
def everything(called, functions) -> list[Mutant]:
    return all_mutants(functions[name].call for names in called.values() for name in names)


def items_by_target(items: list[Item], called: Mapping, functions: Mapping) -> dict[Target, list[Item]]:
    """The items that can notice a change of the target: those that rest on it."""
    found: dict[Target, list[Item]] = {}
    for item in items:
        for target in reached(functions[name].call for name in called[item.id]):
            found.setdefault(target, []).append(item)
    return found


def content_notices(mutant: Mutant, items: list[Item], functions: Mapping) -> bool:
    with applied(mutant):
        for item in items:
            try:
                if evaluate_item(item, functions)[1]:
                    return True
            except Exception:  # the mutant may raise what no library function does; the build would stop
                return True
    return False


def killers(called: list[str], numbers: list[int], tests: tuple[str, ...]) -> dict[int, str | None]:
    """The test that fails under each of the mutants, or None."""
    request = {"functions": called, "mutants": numbers, "tests": tests}
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("mutant_runner.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    failing = answer.pop("none")
    assert failing is None, f"{failing} fails without any mutant"
    return {int(number): killer for number, killer in answer.items()}


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="each mutant runs in a forked process")


@needs_fork
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(SAMPLE, id="a sample"),
        pytest.param(1, id="all", marks=pytest.mark.slow),
    ],
)
def test_every_mutant_is_noticed(items, called, everything, functions, step):
    witnesses = items_by_target(items, called, functions)
    # A mutant is known to the runner by its number among all.
    numbered = [(n, mutant) for n, mutant in enumerate(everything) if mutant.key.startswith(CHANGED)]
    tried = dict(numbered[::step])
    by_content = {
        number
        for number, mutant in tried.items()
        if content_notices(mutant, witnesses[mutant.target], functions)
    }
    # The long version runs the tests on the listed mutants too, so that none is listed without need.
    left = [n for n in tried if n not in by_content and (step == 1 or tried[n].key not in EQUIVALENT)]
    names = sorted({name for each in called.values() for name in each})
    by_tests = killers(names, left, TESTS)
    assert set(by_tests) == set(left)
    survivors = [tried[number] for number, killer in by_tests.items() if killer is None]
    print(
        f"{len(tried)} mutants tried: {len(by_content)} noticed by the content, "
        f"{len(left) - len(survivors)} by the tests, {len(tried) - len(left) + len(survivors) - len(by_content)} "
        "change no result"
    )
    assert by_content and left
    unknown = [str(mutant) for mutant in survivors if mutant.key not in EQUIVALENT]
    assert not unknown, "not noticed:\n" + "\n".join(unknown)
    if step == 1:
        assert {mutant.key for mutant in survivors} == set(EQUIVALENT)


def test_the_table_names_mutants_that_are_made(everything):
    assert set(EQUIVALENT) <= {mutant.key for mutant in everything}
    assert all(EQUIVALENT.values())


# --- the parts of this test


def known_mutant(everything: list[Mutant]) -> int:
    """The number of a mutant that the content and the tests notice."""
    changes = [(mutant.target.name, mutant.after) for mutant in everything]
    return changes.index(("clipped_surrogate", "return bounded / advantages"))


def test_without_content_the_content_notices_nothing(items, everything, functions):
    mutant = everything[known_mutant(everything)]
    assert content_notices(mutant, items, functions)
    assert not content_notices(mutant, [], functions)


@needs_fork
def test_tests_notice_only_what_they_look_at(tmp_path, called, everything):
    names = sorted({name for each in called.values() for name in each})
    number = known_mutant(everything)
    (tmp_path / "empty").mkdir()
    assert killers(names, [number], (str(tmp_path / "empty"),)) == {number: None}
    test = tmp_path / "test_one.py"
    test.write_text(
        "import torch, ppo_core\n\ndef test_two():\n    one, two = torch.ones(1), torch.full((1,), 2.0)\n"
        "    assert ppo_core.clipped_surrogate(one, two, epsilon=0.2).item() == 2\n",
        encoding="utf-8",
    )
    (killer,) = killers(names, [number], (str(test),)).values()
    assert killer.endswith("test_one.py::test_two")
    test.write_text("def test_none():\n    assert False\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="test_none fails without any mutant"):
        killers(names, [number], (str(test),))
