"""Public bug reports about what is reported during a run, with the right answers by hand."""

import math

import pytest
import torch

from ppo_core import (
    approximate_kl,
    clip_fractions,
    effective_sample_size,
    explained_variance,
    ratio_quantiles,
)

NAN = math.nan


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def every(x):
    return torch.ones_like(x, dtype=torch.bool)


def test_verl_972_the_lower_fraction_is_not_always_zero(device):
    # One of two bad tokens is below the floor. A bad token above the ceiling is not clipped at all.
    logprobs = tensor([0.5, 1.5], device).log()
    A = tensor([-1.0, -1.0], device)
    found = clip_fractions(logprobs, torch.zeros_like(A), A, every(A), epsilon=0.2)
    assert [share.item() for share in found] == [0, 0.5, 0]


def test_verl_972_and_slime_2247_the_dual_clip_has_its_own_fraction(device):
    # Ratios 2, 2 and 1/2 with A = 2, -2 and 2: the first is past the ceiling, the second past c = 3/2, the
    # third below the floor with A > 0, where nothing is clipped.
    logprobs, A = tensor([2.0, 2.0, 0.5], device).log(), tensor([2.0, -2.0, 2.0], device)
    found = clip_fractions(logprobs, torch.zeros_like(A), A, every(A), epsilon=0.2, dual_clip=1.5)
    assert [share.item() for share in found] == pytest.approx([1 / 3, 0, 1 / 3], rel=1e-15)


def test_cleanrl_and_sb3_a_fraction_by_distance_from_1_counts_what_is_not_clipped(device):
    # Their count of |ratio - 1| > epsilon, and PipelineRL's, has the ratio 1.5 with A = -1. But its loss is
    # 1.5 and has its whole slope: nothing is clipped.
    logprobs, A = tensor([1.5], device).log(), tensor([-1.0], device)
    found = clip_fractions(logprobs, torch.zeros_like(A), A, every(A), epsilon=0.2)
    assert sum(found).item() == 0


def test_openrlhf_feeb0283_the_same_policy_is_no_distance_away(device):
    # Reported was minus the ratio: -1 where nothing has changed.
    logprobs = tensor([-1.0, -2.0, -3.0], device)
    assert approximate_kl(logprobs, logprobs, every(logprobs)).item() == 0


def test_openrlhf_a_far_policy_is_reported_as_far_as_it_is(device):
    # No clamp: a token 100 nats less likely counts e^-100 - 1 + 100, which is 99 in float64.
    logprobs = tensor([-100.0], device)
    assert approximate_kl(logprobs, torch.zeros_like(logprobs), every(logprobs)).item() == 99


def test_trl_and_torchtune_padding_does_not_bring_the_policies_together(device):
    # In TRL's PPO, trlx, torchtune and torchrl it does.
    # Log-ratios of 0.2 at two tokens of the answer and 0 at two of padding: the mean over all four is half of
    # the right one, e^0.2 - 1 - 0.2.
    logprobs = tensor([0.2, 0.2, 0.0, 0.0], device)
    mask = torch.tensor([True, True, False, False], device=device)
    found = approximate_kl(logprobs, torch.zeros_like(logprobs), mask)
    assert found.item() == pytest.approx(math.expm1(0.2) - 0.2, rel=1e-13)


def test_trl_6121_what_fills_the_padding_shows_in_nothing(device):
    # The log-probability 1, which is none, as the mark of padding in one of the two tensors.
    logprobs, old = tensor([-1.0, 1.0], device), tensor([-1.0, -3.0], device)
    mask = torch.tensor([True, False], device=device)
    A = tensor([1.0, 1.0], device)
    assert approximate_kl(logprobs, old, mask).item() == 0
    assert sum(clip_fractions(logprobs, old, A, mask, epsilon=0.2)).item() == 0
    assert [ratio_quantiles(logprobs, old, mask, q=q).item() for q in (0, 0.5, 1)] == [1, 1, 1]
    assert effective_sample_size(logprobs - old, mask).item() == 1


@pytest.mark.parametrize("d", [-3.0, -0.1, -1e-6, 1e-6, 0.1, 3.0])
def test_trl_1161_and_1180_the_reported_kl_is_never_negative(d, device):
    # A mean of log-ratios is, for tokens that have become more likely or less; this estimator is not.
    logprobs = tensor([d], device, torch.float32)
    assert approximate_kl(logprobs, torch.zeros_like(logprobs), every(logprobs)).item() > 0


def test_unsloth_zoo_1240_and_tunix_2315_a_small_distance_is_not_rounded_away(device):
    # d^2/2 + d^3/6 for d = 1e-4. The plain formula gives exactly 0 in float32.
    logprobs = tensor([1e-4], device, torch.float32)
    found = approximate_kl(logprobs, torch.zeros_like(logprobs), every(logprobs))
    assert found.item() == pytest.approx(5.00017e-9, rel=1e-5)


def test_trl_454_and_trlx_107_before_the_first_step_every_ratio_is_1(device):
    # The check that those reports wish for: the least and the greatest ratio are 1 exactly, and no token is
    # clipped.
    logprobs = tensor([-1.7, -0.1, -12.3], device)
    A = tensor([1.0, -1.0, 2.0], device)
    assert [ratio_quantiles(logprobs, logprobs, every(A), q=q).item() for q in (0, 1)] == [1, 1]
    assert sum(clip_fractions(logprobs, logprobs, A, every(A), epsilon=0.2)).item() == 0
    assert effective_sample_size(logprobs - logprobs, every(A)).item() == 1


def test_trl_6789_and_7269_a_truncated_support_shows_in_the_ratios(device):
    # The sampler kept a mass of 0.895 of every distribution and divided by it: each of its probabilities is
    # 1 / 0.895 of the trainer's, and every ratio 0.895.
    logprobs = tensor([0.5, 0.2, 0.1], device).log()
    old = logprobs - math.log(0.895)
    for q in (0, 0.5, 1):
        assert ratio_quantiles(logprobs, old, every(old), q=q).item() == pytest.approx(0.895, rel=1e-14)


def test_verl_782_and_skyrl_1635_nothing_counted_is_reported_as_documented(device):
    x = tensor([NAN, 1.0], device)
    nothing = torch.zeros_like(x, dtype=torch.bool)
    assert approximate_kl(x, x, nothing).item() == 0
    assert [share.item() for share in clip_fractions(x, x, x, nothing, epsilon=0.2)] == [0, 0, 0]
    assert effective_sample_size(x, nothing).item() == 0
    # There is nothing to be explained, and no ratio to be named.
    assert explained_variance(x, x, nothing).isnan()
    assert ratio_quantiles(x, x, nothing, q=0.5).isnan()


def test_skyrl_1305_what_is_not_counted_explains_nothing(device):
    # The critic is right where it counts, 1 and 3 with one number added, and far off elsewhere.
    values = tensor([5.0, 7.0, -90.0], device)
    returns = tensor([1.0, 3.0, 90.0], device)
    mask = torch.tensor([True, True, False], device=device)
    assert explained_variance(values, returns, mask).item() == 1
    assert explained_variance(values, returns, every(mask)).item() < 0
