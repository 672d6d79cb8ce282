import math

import pytest
import torch

from lab import dpo_minimiser, kl_divergence, kl_objective, kl_regularised_optimum
from ppo_core import implicit_reward

WORLDS = [
    ([0.5, 0.5], [1.0, 0.0]),
    ([0.2, 0.3, 0.5], [2.0, -1.0, 0.5]),
    ([0.97, 0.01, 0.01, 0.01], [0.0, 3.0, 1.0, -2.0]),
    ([0.25, 0.75], [3.0, -2.0]),
]
EACH_WORLD = pytest.mark.parametrize("world", WORLDS, ids=str)
BETAS = pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def test_divergence_by_hand():
    # 3/4 log(3/2) + 1/4 log(1/2)
    found = kl_divergence(tensor([0.75, 0.25]), tensor([0.5, 0.5])).item()
    assert found == pytest.approx(0.75 * math.log(3) - math.log(2), rel=1e-14)
    assert kl_divergence(tensor([0.1, 0.9]), tensor([0.1, 0.9])).item() == 0


def test_objective_by_hand():
    found = kl_objective(tensor([0.75, 0.25]), tensor([0.5, 0.5]), tensor([2.0, -2.0]), beta=0.5).item()
    assert found == pytest.approx(1 - 0.5 * (0.75 * math.log(3) - math.log(2)), rel=1e-14)
    assert kl_objective(tensor([0.75, 0.25]), tensor([0.5, 0.5]), tensor([2.0, -2.0]), beta=0).item() == 1


def test_optimum_by_hand():
    # Rewards log 3 and 0 at beta 1: odds of 3 to 1 times those of the reference. At beta 1/2: 9 to 1.
    rewards = tensor([math.log(3), 0.0])
    even, uneven = tensor([0.5, 0.5]), tensor([0.25, 0.75])
    assert kl_regularised_optimum(even, rewards, beta=1.0).tolist() == pytest.approx([0.75, 0.25], rel=1e-14)
    assert kl_regularised_optimum(uneven, rewards, beta=1.0).tolist() == pytest.approx([0.5, 0.5], rel=1e-14)
    assert kl_regularised_optimum(even, rewards, beta=0.5).tolist() == pytest.approx([0.9, 0.1], rel=1e-14)


@EACH_WORLD
@BETAS
def test_no_policy_beats_the_optimum(world, beta):
    ref, rewards = map(tensor, world)
    best = kl_regularised_optimum(ref, rewards, beta=beta)
    most = kl_objective(best, ref, rewards, beta=beta).item()
    # It is beta log Z.
    Z = math.fsum(q * math.exp(r / beta) for q, r in zip(*world, strict=True))
    assert most == pytest.approx(beta * math.log(Z), rel=1e-12)
    torch.manual_seed(0)
    for size in (1e-3, 0.1, 1.0, 5.0):
        for _ in range(20):
            other = torch.softmax(best.log() + size * torch.randn(len(best), dtype=torch.float64), -1)
            # Worse by beta KL(other || best), which is above 0.
            loss = most - kl_objective(other, ref, rewards, beta=beta).item()
            assert loss == pytest.approx(beta * kl_divergence(other, best).item(), rel=1e-6, abs=1e-12)
            assert loss > 0


@EACH_WORLD
@BETAS
def test_dpo_finds_the_optimum_without_seeing_a_reward(world, beta):
    ref, rewards = map(tensor, world)
    found = dpo_minimiser(ref, rewards, beta=beta)
    expected = kl_regularised_optimum(ref, rewards, beta=beta)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-15)
    # Its implicit rewards are the rewards, up to one constant.
    shift = implicit_reward(found.log(), ref.log(), beta=beta) - rewards
    assert (shift - shift[0]).abs().max() < 1e-8


@pytest.mark.parametrize("rewards", [[20.5, 0.0], [-19.0, 2.0], [-1.0, -22.0]])
def test_rewards_further_apart_than_is_allowed(rewards):
    with pytest.raises(ValueError, match="^rewards must be at most 20 apart, got"):
        dpo_minimiser(tensor([0.5, 0.5]), tensor(rewards), beta=10.0)


def test_the_search_goes_on_while_any_logit_moves():
    """The middle one of three evenly spread rewards is right from the start."""
    found = dpo_minimiser(torch.full((3,), 1 / 3).double(), tensor([2.0, 0.0, -2.0]), beta=1.0)

    # e^2, 1 and e^-2 over their sum, 8.524391
    torch.testing.assert_close(found, tensor([0.8668133, 0.1173104, 0.0158762]), atol=1e-6, rtol=0)


def test_rewards_as_far_apart_as_is_allowed():
    ref = tensor([0.5, 0.5])
    found = dpo_minimiser(ref, tensor([20.0, 0.0]), beta=10.0)
    assert found[1].item() == pytest.approx(1 / (1 + math.exp(2)), rel=1e-6)
    with pytest.raises(ValueError) as raised:
        dpo_minimiser(ref, tensor([20.5, 0.0]), beta=10.0)
    assert str(raised.value) == (
        "rewards must be at most 20 apart, got [20.5, 0.0]; further apart the loss is too flat to find its minimum"
    )


TWO = torch.tensor([0.5, 0.5])
CALLS = {
    "objective": lambda probs, beta: kl_objective(TWO, probs, TWO, beta=beta),
    "optimum": lambda probs, beta: kl_regularised_optimum(probs, TWO, beta=beta),
    "minimiser": lambda probs, beta: dpo_minimiser(probs, TWO, beta=beta),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ([1.0, 0.0], "ref_probs must all be above 0, got [1.0, 0.0]; leave impossible actions out"),
        ([0.5, 0.25], "ref_probs must sum to 1, got [0.5, 0.25] with sum 0.75"),
    ],
)
def test_text_of_errors(call, bad, text):
    with pytest.raises(ValueError) as raised:
        call(torch.tensor(bad), 0.5)
    assert str(raised.value) == text


@pytest.mark.parametrize("name", ["optimum", "minimiser"])
def test_a_leash_must_be_there(name):
    with pytest.raises(ValueError) as raised:
        CALLS[name](TWO, 0)
    assert str(raised.value) == "beta must be finite and above 0, got 0"


def test_both_arguments_of_a_divergence_are_distributions():
    for arguments, name in (((TWO, 2 * TWO), "ref_probs"), ((2 * TWO, TWO), "probs")):
        with pytest.raises(ValueError, match=rf"^{name} must sum to 1, got \[1.0, 1.0\] with sum 2$"):
            kl_divergence(*arguments)
