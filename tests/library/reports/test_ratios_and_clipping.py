"""Public bug reports about ratios, clipping and importance weights: the smallest input, the answer by hand."""

import math

import pytest
import torch

from ppo_core import (
    aggregate,
    masked_weights,
    policy_loss,
    ratio,
    sequence_policy_loss,
    sequence_ratio,
    truncated_weights,
)


def tensor(x, device, **options):
    return torch.tensor(x, dtype=torch.float32, device=device, **options)  # where e^89 overflows


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


def test_nemo_4120_an_overflow_under_the_mask(device):
    # Log-ratios 0 and 200, the second does not count: the loss is -A at the first, the gradient -A too. The
    # infinite ratio times a mask of 0 was NaN.
    for A in (3.0, -3.0):
        new = tensor([0.0, 200.0], device, requires_grad=True)
        advantages, mask = tensor([A, A], device), bools([1, 0], device)
        loss = policy_loss(new, torch.zeros_like(new), advantages, epsilon=0.2, mask=mask)
        (gradient,) = torch.autograd.grad(loss.sum(), new)
        assert loss.tolist() == gradient.tolist() == [-A, 0]


@pytest.mark.parametrize("far", [89.0, 1000.0])
def test_miles_1363_and_slime_2198_no_advantage_and_an_infinite_ratio(far, device):
    # A = 0 asks for nothing: loss 0 and gradient 0, where 0 times infinity was NaN. No clamp is needed.
    new = tensor([far], device, requires_grad=True)
    loss = policy_loss(new, torch.zeros_like(new), torch.zeros_like(new), epsilon=0.2)
    assert (loss.item(), torch.autograd.grad(loss, new)[0].item()) == (0, 0)


def test_slime_2198_a_clamp_leaves_nan_and_ordinary_tokens_alone(device):
    new = tensor([0.1, math.nan, 200.0], device)
    found = ratio(new, torch.zeros_like(new), log_bound=20)
    assert found[0].item() == ratio(new, torch.zeros_like(new))[0].item()
    assert found[1].isnan()
    assert found[2].item() == pytest.approx(math.exp(20), rel=1e-6)


def test_verl_782_an_empty_mask(device):
    new = tensor([[1.0, math.nan]], device, requires_grad=True)
    old, A, nothing = torch.zeros_like(new), torch.ones_like(new), bools([[0, 0]], device)
    for losses in (
        policy_loss(new, old, A, epsilon=0.2, mask=nothing),
        sequence_policy_loss(new, old, A, nothing, epsilon=0.2),
    ):
        loss = aggregate(losses, nothing, mode="token_mean")
        (gradient,) = torch.autograd.grad(loss, new)
        assert (loss.item(), gradient.tolist()) == (0, [[0, 0]])


def test_verl_2506_advantages_in_the_place_of_the_mask(device):
    x = tensor([[1.0, -1.0]], device)
    with pytest.raises(TypeError, match="takes 3 positional arguments"):
        policy_loss(x, x, x, x, epsilon=0.2)
    with pytest.raises(
        TypeError, match=r"^mask must be a bool tensor \(True: the token counts\), got torch.float32"
    ):
        policy_loss(x, x, x, epsilon=0.2, mask=x)
    with pytest.raises(
        TypeError, match=r"^mask must be a bool tensor \(True: the token counts\), got torch.float32"
    ):
        sequence_policy_loss(x, x, x, x, epsilon=0.2)


@pytest.mark.parametrize(
    ("lengths", "by_sequence", "by_token"),
    # Losses 1 and 0: the mean over sequences is 1/2 for any lengths; over tokens it is the share of the first.
    [((1, 3), 1 / 2, 1 / 4), ((3, 1), 1 / 2, 3 / 4)],
)
def test_trl_3823_and_6042_a_sequence_is_not_weighed_by_its_length(lengths, by_sequence, by_token, device):
    mask = torch.arange(3, device=device) < torch.tensor(lengths, device=device)[:, None]
    A = tensor([[-1.0] * 3, [0.0] * 3], device)
    same = torch.zeros_like(A)
    losses = sequence_policy_loss(same, same, A, mask, epsilon=0.2)
    assert losses.shape == mask.shape
    assert aggregate(losses, mask, mode="sequence_mean_token_mean").item() == by_sequence
    assert aggregate(losses, mask, mode="token_mean").item() == by_token
    # The fault itself, one loss for each sequence against a mask for each token, is refused.
    with pytest.raises(
        ValueError, match=r"^losses and mask must have the same shape, got \[2, 1\] and \[2, 3\]"
    ):
        aggregate(losses[:, :1], mask, mode="token_mean")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_trl_454_the_same_weights_give_the_ratio_one(dtype, device):
    logprobs = (torch.rand(4, 50, device=device) * -20).to(dtype)
    every = torch.ones_like(logprobs, dtype=torch.bool)
    assert (ratio(logprobs, logprobs) == 1).all()
    assert (sequence_ratio(logprobs, logprobs, every) == 1).all()


def test_trl_6789_and_7269_a_sampler_with_a_truncated_support(device):
    # Top-p kept 0.895 of the mass, so the sampler's probabilities are those of the trainer over 0.895, and
    # every weight is 0.895. It is no fault of the weights: both sides must use one support.
    p = tensor([[0.5, 0.3, 0.095]], device)
    every = torch.ones_like(p, dtype=torch.bool)
    found = truncated_weights(p.log(), (p / 0.895).log(), every, level="token", max_weight=2)
    assert found[0].tolist() == pytest.approx([0.895] * 3, rel=1e-6)
    found = truncated_weights(p.log(), (p / 0.895).log(), every, level="sequence", max_weight=2)
    assert found[0].tolist() == pytest.approx([0.895**3] * 3, rel=1e-6)


def test_slime_2247_the_dual_clip_is_used(device):
    # Ratios 2, 2, 1/2 with A = 2, -2, 2: -1.2 * 2, then 1.5 * 2 where it was 2 * 2, then -1/2 * 2.
    new = tensor([2.0, 2.0, 0.5], device).log()
    A = tensor([2.0, -2.0, 2.0], device)
    without = policy_loss(new, torch.zeros_like(new), A, epsilon=0.2)
    assert without.tolist() == pytest.approx([-2.4, 4.0, -1.0], rel=1e-6)
    found = policy_loss(new, torch.zeros_like(new), A, epsilon=0.2, dual_clip=1.5)
    assert found.tolist() == pytest.approx([-2.4, 3.0, -1.0], rel=1e-6)


def test_verl_4105_a_weight_carries_no_gradient(device):
    # Loss -w log pi with w = pi / pi_sampler = 1/2, where both logprobs are one tensor: the slope is -w. With
    # a gradient through w it would be -w (1 + log pi).
    logprobs = tensor([[math.log(0.2)]], device, requires_grad=True)
    sampler = tensor([[math.log(0.4)]], device)
    every = bools([[1]], device)
    for level in ("token", "sequence"):
        for weights in (
            truncated_weights(logprobs, sampler, every, level=level, max_weight=2),
            masked_weights(logprobs, sampler, every, level=level, min_weight=0.25, max_weight=2),
        ):
            (gradient,) = torch.autograd.grad(-(weights * logprobs).sum(), logprobs)
            assert gradient.item() == pytest.approx(-0.5, rel=1e-6)


def test_liger_1082_a_weight_scales_the_gradient(device):
    # A weight of 0.01 for every token makes gradient and loss 0.01 of what they were.
    new = tensor([[-1.0, -2.0]], device, requires_grad=True)
    every, A = bools([[1, 1]], device), tensor([[1.0, -3.0]], device)
    weights = truncated_weights(new, new.detach() - math.log(0.01), every, level="token", max_weight=2)
    losses = policy_loss(new, new.detach(), A, epsilon=0.2)
    (plain,) = torch.autograd.grad(losses.sum(), new, retain_graph=True)
    (weighted,) = torch.autograd.grad((losses * weights).sum(), new)
    assert plain.tolist() == [[-1, 3]]
    assert weighted[0].tolist() == pytest.approx([-0.01, 0.03], rel=1e-5)


def test_prime_rl_2084_a_stale_token_is_left_out_and_leaves_no_nan(device):
    # The sampler said -100, the trainer says -1: the weight e^99 is infinite in float32 and outside every
    # window, so the token gets 0, not 0 times infinity. Good and bad, loss and gradient.
    new = tensor([[-1.0, -1.0]], device, requires_grad=True)
    sampler, every = tensor([[-100.0, -1.0]], device), bools([[1, 1]], device)
    weights = masked_weights(new, sampler, every, level="token", min_weight=0.5, max_weight=5)
    assert weights.tolist() == [[0, 1]]
    for A in (2.0, -2.0):
        loss = policy_loss(new, new.detach(), torch.full_like(new, A).detach(), epsilon=0.2) * weights
        (gradient,) = torch.autograd.grad(loss.sum(), new)
        assert loss.tolist() == gradient.tolist() == [[0, -A]]


def test_unsloth_zoo_870_the_weight_of_a_sequence_is_a_product(device):
    # 1/2 times 2 is 1; the sum of the two is 2.5.
    new = tensor([[0.5, 2.0]], device).log()
    found = truncated_weights(
        new, torch.zeros_like(new), bools([[1, 1]], device), level="sequence", max_weight=5
    )
    assert found[0].tolist() == pytest.approx([1, 1], rel=1e-6)
