"""What is watched during a run. Expected values are counted or worked out by hand."""

import math

import mpmath
import pytest
import torch

from ppo_core import (
    approximate_kl,
    clip_fractions,
    effective_sample_size,
    explained_variance,
    policy_loss,
    ratio_quantiles,
)

NAN, INF = math.nan, math.inf


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def everything(x):
    return torch.ones_like(x, dtype=torch.bool)


def fractions(ratios, advantages, device, mask=None, **clips):
    """The three fractions of tokens with the given ratios."""
    logprobs = tensor(ratios, device).log()
    mask = everything(logprobs) if mask is None else torch.tensor(mask, device=device)
    found = clip_fractions(
        logprobs, torch.zeros_like(logprobs), tensor(advantages, device), mask, **{"epsilon": 0.25, **clips}
    )
    return [share.item() for share in found]


# --- clip fractions ---


def test_the_fractions_by_hand(device):
    #         above            inside           below
    ratios = [1.5, 1.5, 1.5, 1.1, 1.1, 1.1, 0.5, 0.5]
    signs = [2.0, -2.0, 0.0, 2.0, -2.0, 0.0, 2.0, -2.0]
    # Clipped are the good token above the ceiling and the bad one below the floor: one of eight each.
    assert fractions(ratios, signs, device) == [1 / 8, 1 / 8, 0]
    # A cap of 1.4 on bad tokens cuts the second.
    assert fractions(ratios, signs, device, dual_clip=1.4) == [1 / 8, 1 / 8, 1 / 8]
    # A ceiling of 1.6 lets the first through.
    assert fractions(ratios, signs, device, epsilon_high=0.6) == [0, 1 / 8, 0]
    # Of the counted two, one is clipped.
    mask = [True, True] + [False] * 6
    assert fractions(ratios, signs, device, mask=mask) == [1 / 2, 0, 0]


def test_the_fractions_have_names(device):
    x = torch.zeros(2, device=device)
    assert clip_fractions(x, x, x, everything(x), epsilon=0.2)._fields == ("upper", "lower", "dual")


def test_on_an_edge_nothing_is_clipped(device):
    # The edge is put where the ratio is; both differences are exact.
    above, below = (torch.exp(tensor(x, device)).item() for x in (0.2, -0.3))
    for logprob, advantage, clips in (
        (0.2, 1.0, {"epsilon": above - 1}),
        (0.2, 1.0, {"epsilon": 0.5, "epsilon_high": above - 1}),
        (-0.3, -1.0, {"epsilon": 1 - below}),
        (0.2, -1.0, {"epsilon": 0.5, "dual_clip": above}),
    ):
        for nearby, expected in ((logprob, 0), (logprob + 1e-9 * math.copysign(1, logprob), 1)):
            x = tensor([nearby], device)
            found = clip_fractions(
                x, torch.zeros_like(x), tensor([advantage], device), everything(x), **clips
            )
            assert sum(found).item() == expected, (nearby, clips)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_they_count_the_tokens_to_which_the_loss_gives_no_gradient(dtype, device):
    torch.manual_seed(0)
    clips = {"epsilon": 0.2, "epsilon_high": 0.3, "dual_clip": 1.5}
    # Many ratios on the edges themselves, up to rounding.
    edges = torch.tensor([0.8, 1.3, 1.5, 1.0], dtype=dtype, device=device).log()
    logprobs = torch.cat([torch.randn(500, dtype=dtype, device=device), edges.repeat(50)]).requires_grad_()
    old, advantages = torch.zeros_like(logprobs), torch.randn_like(logprobs)
    (slope,) = torch.autograd.grad(policy_loss(logprobs, old, advantages, **clips).sum(), logprobs)
    found = clip_fractions(logprobs, old, advantages, everything(old), **clips)
    assert min(found) > 0.02
    assert sum(found).item() == pytest.approx((slope == 0).double().mean().item(), rel=1e-6)


@pytest.mark.parametrize("far", [200.0, 1000.0, INF])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ratios_that_overflow_are_past_every_bound(far, dtype, device):
    logprobs = tensor([far, far, -far, -far], device, dtype)
    advantages = tensor([1.0, -1.0, 1.0, -1.0], device, dtype)
    found = clip_fractions(
        logprobs, torch.zeros_like(logprobs), advantages, everything(logprobs), epsilon=0.2, dual_clip=3
    )
    assert [share.item() for share in found] == [1 / 4, 1 / 4, 1 / 4]


@pytest.mark.parametrize("place", range(3))
def test_a_nan_makes_all_fractions_nan(place, device):
    tensors = [torch.zeros(2, device=device) for _ in range(3)]
    tensors[place][1] = NAN
    found = clip_fractions(*tensors, everything(tensors[0]), epsilon=0.2, dual_clip=3)
    assert all(share.isnan() for share in found)


# --- approximate KL ---


def test_the_approximate_kl_by_hand(device):
    # Ratios 2, 1/2 and 1: 2 - 1 - ln 2, 1/2 - 1 + ln 2, 0. The sum is 1/2.
    logprobs = tensor([math.log(2), -math.log(2), 0.0], device)
    found = approximate_kl(logprobs, torch.zeros_like(logprobs), everything(logprobs))
    assert found.item() == pytest.approx(1 / 6, rel=1e-14)


def test_its_mean_over_the_old_policy_is_the_divergence_of_the_old_from_the_new(device):
    # Three actions, each as often among the tokens as the old policy takes it: 2, 5 and 3 of 10.
    old = torch.tensor([0.2] * 2 + [0.5] * 5 + [0.3] * 3, dtype=torch.float64, device=device).log()
    new = torch.tensor([0.4] * 2 + [0.1] * 5 + [0.5] * 3, dtype=torch.float64, device=device).log()
    divergence = sum(p * math.log(p / q) for p, q in ((0.2, 0.4), (0.5, 0.1), (0.3, 0.5)))
    assert approximate_kl(new, old, everything(old)).item() == pytest.approx(divergence, rel=1e-13)


@pytest.mark.parametrize("d", [1e-6, 1e-4, -1e-4, 1e-2])
def test_it_is_exact_near_zero(d, device):
    logprobs = tensor([d], device, torch.float32)
    with mpmath.workdps(30):
        exact = float(mpmath.expm1(logprobs.item()) - mpmath.mpf(logprobs.item()))
    found = approximate_kl(logprobs, torch.zeros_like(logprobs), everything(logprobs))
    assert found.item() == pytest.approx(exact, rel=1e-6)


def test_it_is_infinite_when_a_ratio_is(device):
    logprobs = tensor([0.0, 100.0], device, torch.float32)
    assert approximate_kl(logprobs, torch.zeros_like(logprobs), everything(logprobs)).item() == INF
    # The other way a token has only become impossible: 0 - 1 + 100.
    assert approximate_kl(-logprobs, torch.zeros_like(logprobs), everything(logprobs)).item() == 99 / 2


# --- explained variance ---


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0, 3.0, 6.0], 1),  # the returns themselves
        ([11.0, 12.0, 13.0, 16.0], 1),  # and off by one number
        ([5.0, 5.0, 5.0, 5.0], 0),  # a constant
        # Off by 0, 0, 0 and 4: the mean is 1, the squares 1, 1, 1, 9.
        ([1.0, 2.0, 3.0, 2.0], 1 - 12 / 14),
        # The returns twice over, with the wrong sign: the errors are three times the returns.
        ([-2.0, -4.0, -6.0, -12.0], 1 - 9),
    ],
)
def test_the_explained_variance_by_hand(values, expected, device):
    # The mean is 3, the squares of the distances are 4, 1, 0 and 9.
    returns = tensor([1.0, 2.0, 3.0, 6.0], device)
    found = explained_variance(tensor(values, device), returns, everything(returns))
    assert found.item() == pytest.approx(expected, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e6])
def test_returns_that_do_not_vary_have_no_variance_to_explain(constant, dtype, device):
    # The rounded mean of equal numbers can be another number: a variance that is not 0.
    returns = torch.full((37,), constant, dtype=dtype, device=device)
    values = torch.arange(37, dtype=dtype, device=device)
    assert explained_variance(values, returns, everything(returns)).isnan()


@pytest.mark.parametrize("mask", [[True, False, False], [False, False, False]])
def test_one_return_or_none_has_no_variance_to_explain(mask, device):
    returns = tensor([1.0, 2.0, 3.0], device)
    assert explained_variance(returns, returns, torch.tensor(mask, device=device)).isnan()


@pytest.mark.parametrize("scale", [1e-30, 1e25])
def test_squares_past_the_range_of_float32_do_no_harm(scale, device):
    returns = tensor([1.0, 2.0, 3.0, 6.0], device, torch.float32) * scale
    values = tensor([1.0, 2.0, 3.0, 2.0], device, torch.float32) * scale
    found = explained_variance(values, returns, everything(returns))
    assert found.item() == pytest.approx(1 - 12 / 14, rel=1e-5)


@pytest.mark.parametrize("shift", [1e4, -1e4])
def test_a_large_mean_does_not_cancel(shift, device):
    # In float32, where the square of 10000 has no room for the squares of these distances beside it.
    returns = tensor([1.0, 2.0, 3.0, 6.0], device, torch.float32) + shift
    values = tensor([1.0, 2.0, 3.0, 2.0], device, torch.float32)
    found = explained_variance(values, returns, everything(returns))
    assert found.item() == pytest.approx(1 - 12 / 14, rel=1e-5)


# --- effective sample size ---


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1),
        ([7.0, 7.0], 1),
        ([5.0], 1),
        ([1.0, 3.0], 16 / 10 / 2),
        ([1.0, 1.0, 1.0, 3.0], 36 / 12 / 4),
        ([1.0, 0.0, 0.0, 0.0], 1 / 4),
        ([1.0, 1.0, 0.0, 0.0], 2 / 4),
    ],
)
@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
def test_the_effective_sample_size_by_hand(weights, expected, shift, device):
    # Common factors, here e^1000 and e^-1000, are nothing to it.
    log_weights = tensor(weights, device).log() + shift
    found = effective_sample_size(log_weights, everything(log_weights))
    assert found.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_weights_that_overflow(dtype, device):
    log_weights = tensor([1000.0, 1000.0, 0.0, -1000.0], device, dtype)
    assert effective_sample_size(log_weights, everything(log_weights)).item() == 1 / 2


def test_only_counted_samples_weigh(device):
    # What is not counted is the greatest: it must not be what the others are divided by.
    log_weights = tensor([-1000.0, 1000.0, -1000.0, NAN], device)
    mask = torch.tensor([True, False, True, False], device=device)
    assert effective_sample_size(log_weights, mask).item() == 1
    nothing = torch.zeros_like(mask)
    assert effective_sample_size(log_weights, nothing).item() == 0


@pytest.mark.parametrize("bad", [[-INF, -INF], [0.0, INF], [0.0, NAN]])
def test_weights_without_relation_have_no_size(bad, device):
    log_weights = tensor(bad, device)
    assert effective_sample_size(log_weights, everything(log_weights)).isnan()


# --- quantiles ---


def quantile(ratios, q, device, mask=None):
    logprobs = tensor(ratios, device).log()
    mask = everything(logprobs) if mask is None else torch.tensor(mask, device=device)
    return ratio_quantiles(logprobs, torch.zeros_like(logprobs), mask, q=q).item()


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (0, 0.5),
        (0.25, 1),
        (0.3, 1 + 0.2 * 1),  # place 1.2: a fifth of the way from 1 to 2
        (0.5, 2),
        (0.9, 4 + 0.6 * 6),  # place 3.6, from 4 to 10
        (1, 10),
    ],
)
def test_quantiles_by_hand(q, expected, device):
    assert quantile([4.0, 0.5, 10.0, 2.0, 1.0], q, device) == pytest.approx(expected, rel=1e-14)
    # Others that are not counted do not move them.
    mixed = [99.0, 4.0, 0.01, 0.5, 10.0, 2.0, 1.0, INF]
    mask = [False, True, False, True, True, True, True, False]
    assert quantile(mixed, q, device, mask) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("q", [0, 0.1, 0.37, 0.5, 0.99, 1])
@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_they_are_the_quantiles_of_pytorch(n, q, device):
    torch.manual_seed(n)
    logprobs = torch.randn(n, dtype=torch.float64, device=device)
    expected = torch.quantile(logprobs.exp(), q)
    found = ratio_quantiles(logprobs, torch.zeros_like(logprobs), everything(logprobs), q=q)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("q", [0, 0.5, 1])
def test_equal_ratios_are_every_quantile(q, device):
    ratios = [1.1] * 10
    assert quantile(ratios, q, device) == torch.exp(tensor(1.1, device).log()).item()


@pytest.mark.parametrize(
    ("q", "expected"), [(0, 1), (0.25, 1.75), (0.4, INF), (0.5, INF), (0.75, INF), (1, INF)]
)
def test_infinite_ratios_are_the_greatest(q, expected, device):
    # Places 0, 1, 2 and 3 hold 1, 2, infinity and infinity. Place 3/4 is 7/4, place 6/5 lies between 2 and
    # infinity, place 9/4 between two infinities.
    ratios, mask = [INF, 1.0, 3.0, INF, 2.0], [True, True, False, True, True]
    assert quantile(ratios, q, device, mask) == expected


@pytest.mark.parametrize("q", [0, 0.5, 1])
def test_a_ratio_that_is_nan_makes_every_quantile_nan(q, device):
    assert math.isnan(quantile([1.0, NAN, 2.0], q, device))
    assert quantile([1.0, NAN, 1.0], q, device, [True, False, True]) == 1


@pytest.mark.parametrize("q", [0, 0.5, 1])
def test_of_nothing_there_is_no_quantile(q, device):
    assert math.isnan(quantile([1.0, 2.0], q, device, [False, False]))
    nothing = torch.zeros(0, device=device)
    assert ratio_quantiles(nothing, nothing, nothing.bool(), q=q).isnan()


def test_the_places_of_a_large_batch_are_told_apart(device):
    # The last place is 2^24 + 3, which float32 would round to the next: past the end.
    logprobs = torch.zeros(2**24 + 4, device=device)
    logprobs[0] = math.log(2)
    found = ratio_quantiles(logprobs, torch.zeros_like(logprobs), everything(logprobs), q=1)
    assert found.item() == pytest.approx(2, rel=1e-6)


# --- all of them ---

CALLS = {
    "clip_fractions": lambda x, mask: torch.stack(clip_fractions(x, x, x, mask, epsilon=0.2, dual_clip=3)),
    "approximate_kl": lambda x, mask: approximate_kl(x, x, mask),
    "effective_sample_size": effective_sample_size,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0)], ids=str)
def test_an_empty_mask_gives_zero(call, shape, device):
    x = torch.full(shape, NAN, device=device)
    assert (call(x, torch.zeros(shape, dtype=torch.bool, device=device)) == 0).all()
