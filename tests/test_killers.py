"""Details of the library that only a wrong version of it would show: each test was written for a mutant that survived.

The expected numbers are worked out by hand or with mpmath.
"""

import math

import mpmath
import pytest
import torch

from lab import expected_reward, kl_gradient, sampled_kl_gradient
from ppo_core import kl_k3, policy_loss, shaped_rewards


def test_probabilities_may_miss_the_sum_1_by_a_millionth_and_no_more():
    rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    near = torch.tensor([0.5, 0.5 + 0.5e-6], dtype=torch.float64)
    assert expected_reward(near, rewards).item() == 0.5
    far = torch.tensor([0.5, 0.5 + 1.5e-6], dtype=torch.float64)
    with pytest.raises(ValueError, match="probs must sum to 1"):
        expected_reward(far, rewards)


@pytest.mark.parametrize("d", [-0.199, -0.11, -0.09, 0.09, 0.11, 0.199])
def test_k3_is_as_good_as_float64_on_both_sides_of_its_series(d):
    with mpmath.workdps(40):
        exact = float(mpmath.expm1(mpmath.mpf(d)) - mpmath.mpf(d))
    # Summed up to d^10, the series itself would be off by 2e-14 of the result at 0.199.
    estimate = kl_k3(torch.zeros(1, dtype=torch.float64), torch.tensor([d], dtype=torch.float64))
    assert estimate.item() == pytest.approx(exact, rel=5e-15, abs=0)


def test_of_several_answers_without_tokens_the_first_is_named():
    mask = torch.tensor([[[True], [False]], [[True], [False]]])
    logprobs = torch.zeros(mask.shape)
    with pytest.raises(ValueError, match=r"no counted token in the answer at index \[0, 1\]"):
        shaped_rewards(torch.zeros(2, 2), logprobs, logprobs, mask, beta=0.1)


def test_differentiating_for_a_caller_leaves_the_callers_tensors_as_they_were():
    logits, ref_logits = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])
    kl_gradient(logits, ref_logits)
    sampled_kl_gradient(logits, ref_logits, estimator="k2")
    assert not logits.requires_grad
    assert not ref_logits.requires_grad
    wanted = logits.clone().requires_grad_()
    kl_gradient(wanted, ref_logits)
    assert wanted.grad is None


def test_an_overflow_on_a_slightly_bad_token_is_infinite_as_the_formula_says():
    # exp(1000) times 0.5 has no float; only for a good token is a bound on the ratio the formula's own.
    losses = policy_loss(torch.zeros(1), torch.full((1,), -1000.0), torch.tensor([-0.5]), epsilon=0.2)
    assert losses.item() == math.inf
