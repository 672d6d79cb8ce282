"""Public bug reports about the KL divergence, its gradients and its controller: the right answers by hand.

The name of a test is the project and the number of its report.
"""

import math

import mpmath
import pytest
import torch

from ppo_core import (
    adapt_beta,
    full_kl,
    kl_k1,
    kl_k2,
    kl_k3,
    kl_loss,
    kl_penalty,
    masked_mean,
    ratio,
    shaped_rewards,
)

GRADIENTS = ["own", "straight_through", "score_function"]
ESTIMATORS = ["k1", "k2", "k3"]


@pytest.fixture(autouse=True)
def on_the_device(device):
    """Make every tensor of a test on the device."""
    with torch.device(device):
        yield


def tensor(x, dtype=torch.float64, **options):
    return torch.tensor(x, dtype=dtype, **options)


def bools(x):
    return torch.tensor(x, dtype=torch.bool)


# --- overflow and NaN


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("d", [100, 200])
def test_openrlhf_1335_k3_far_away_has_no_nan_in_its_gradient(dtype, d):
    # Clamped after the exponential, the value looked fine and the gradient was 0 times infinity. OpenRLHF#525,
    # OpenRLHF#1160, NeMo-RL#876 and verl#891 are about the same exponential. Here nothing is clamped: beyond
    # e^88 the own slope 1 - e^d is minus infinity, as it should be, and -d where the slope is that of k2.
    logprobs = tensor([-d], dtype, requires_grad=True)
    expected = {"own": -math.inf, "straight_through": -d, "score_function": -d}
    for gradient in GRADIENTS:
        loss = kl_loss(logprobs, torch.zeros_like(logprobs), estimator="k3", gradient=gradient)
        assert loss.item() == math.inf
        assert torch.autograd.grad(loss, logprobs)[0].item() == expected[gradient]


def test_openrlhf_1335_an_uncounted_token_far_away_costs_nothing():
    logprobs = tensor([-1.0, -100.0], torch.float32, requires_grad=True)
    for gradient in GRADIENTS:
        loss = kl_loss(
            logprobs,
            torch.zeros_like(logprobs),
            estimator="k3",
            gradient=gradient,
            mask=bools([True, False]),
        )
        # d = 1: e - 2, with slope 1 - e or -1.
        assert loss.tolist() == pytest.approx([math.e - 2, 0], rel=1e-6)
        slope = 1 - math.e if gradient == "own" else -1
        assert torch.autograd.grad(loss.sum(), logprobs)[0].tolist() == pytest.approx([slope, 0], rel=1e-6)


def test_nemo_rl_876_in_half_precision_the_exponential_is_taken_in_float32():
    # In float16 e^20 would be infinite, from 11.1 on.
    new, ref = tensor([-20.0], torch.float16), tensor([0.0], torch.float16)
    assert kl_k3(new, ref).item() == pytest.approx(math.exp(20) - 21, rel=1e-6)


def test_verl_6361_a_nan_outside_the_mask_does_not_reach_the_divergence():
    new = tensor([-1.0, -2.0, math.nan], requires_grad=True)
    ref = tensor([-2.0, math.nan, 0.0])
    for estimator, value in (("k1", 1), ("k2", 0.5), ("k3", 1 / math.e)):
        loss = kl_loss(new, ref, estimator=estimator, gradient="straight_through", mask=bools([1, 0, 0]))
        assert loss.tolist() == pytest.approx([value, 0, 0], rel=1e-14)
        assert torch.autograd.grad(loss.sum(), new)[0].tolist() == [1, 0, 0]


def test_skyrl_1635_an_empty_mask_is_no_divergence_and_no_nan():
    new = tensor([[-1.0, -2.0]], requires_grad=True)
    mask = bools([[0, 0]])
    for estimator in ESTIMATORS:
        for gradient in GRADIENTS:
            loss = kl_loss(new, tensor([[0.0, -9.0]]), estimator=estimator, gradient=gradient, mask=mask)
            mean = masked_mean(loss, mask)
            assert mean.item() == 0
            assert torch.autograd.grad(mean, new)[0].tolist() == [[0, 0]]


# --- digits


def test_unsloth_zoo_1240_and_tunix_2315_k3_near_zero():
    # tunix: policy -1e-6 against 0 gave -5.96e-8. In float32 the plain formula is 0 or wrong in the first digit.
    d = torch.tensor([1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 1e-2, -1e-6, -1e-3])
    with mpmath.workdps(40):
        exact = [float(mpmath.expm1(x) - x) for x in map(mpmath.mpf, d.tolist())]
    assert exact[:6] == pytest.approx(
        [5.0e-13, 5.00002e-11, 5.00017e-9, 4.50045e-8, 5.00167e-7, 5.01671e-5], rel=1e-5, abs=0
    )
    assert kl_k3(-d, torch.zeros_like(d)).tolist() == pytest.approx(exact, rel=5e-7, abs=0)
    plain = torch.exp(d) - d - 1
    assert plain[0] < 0
    assert plain[1:4].tolist() == [0, 0, 0]


def test_openrlhf_620_half_precision_inputs_give_a_float32_divergence():
    # Neighbours in bfloat16. In bfloat16 arithmetic e^-2^-7 is rounded to 1 - 2^-7, and k3 to 0.
    new, ref = tensor([-1.0], torch.bfloat16), tensor([-1.0078125], torch.bfloat16)
    d = -(2.0**-7)
    assert (torch.exp(ref - new) - (ref - new) - 1).item() == 0
    found = kl_k3(new, ref)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(d**2 / 2 + d**3 / 6 + d**4 / 24, rel=1e-6)


# --- gradients


def averaged(estimator, gradient, weight=None):
    """The gradient in the first logit, averaged over the policy (3/4, 1/4), against (1/2, 1/2).

    Log-probabilities move with it by 1 - 3/4 and by -3/4. d is log(2/3) and log 2.
    """
    logits = tensor([math.log(3), 0.0], requires_grad=True)
    logprobs = logits.log_softmax(-1)
    loss = kl_loss(logprobs, torch.full_like(logprobs, -math.log(2)), estimator=estimator, gradient=gradient)
    if weight is not None:
        loss = loss * weight(ratio(logprobs, logprobs))
    (slope,) = torch.autograd.grad((logprobs.exp().detach() * loss).sum(), logits)
    return slope[0].item()


# 3/4 log(3/2) / 4 + 1/4 (-log 2) (-3/4) = 3/16 log 3: the gradient of the divergence itself.
REVERSE = pytest.approx(3 / 16 * math.log(3), rel=1e-14)
# 3/4 (1 - 2/3) / 4 + 1/4 (1 - 2) (-3/4) = 1/4: that of the forward divergence, pi - ref.
FORWARD = pytest.approx(1 / 4, rel=1e-14)


def test_open_instruct_534_k1_in_the_loss_does_nothing():
    # 3/4 * 1/4 + 1/4 * (-3/4) = 0. A larger beta gave a larger divergence: only noise.
    assert averaged("k1", "own") == pytest.approx(0, abs=1e-15)
    assert averaged("k2", "own") == REVERSE


def test_openrlhf_1309_k3_in_the_loss_follows_the_forward_divergence():
    assert averaged("k3", "own") == FORWARD
    assert averaged("k3", "straight_through") == REVERSE


def test_trl_4637_k3_times_the_ratio_follows_the_reverse_divergence():
    # Also where the ratio is 1, as TRL#6503 found: its slope counts.
    assert averaged("k3", "own", lambda rho: rho) == REVERSE
    assert averaged("k3", "own", torch.detach) == FORWARD


def test_trl_4967_k1_in_the_reward_follows_the_reverse_divergence():
    # The score function with k1 as its weight, which is what a policy gradient makes of a penalty.
    assert averaged("k1", "score_function") == REVERSE
    assert averaged("k1", "straight_through") == REVERSE


def test_verl_6058_the_value_of_k3_with_the_gradient_of_k2():
    # "k3+" raised NotImplementedError. d = 1: e - 2, and -1.
    logprobs = tensor(-2.0, requires_grad=True)
    loss = kl_loss(logprobs, tensor(-1.0), estimator="k3", gradient="straight_through")
    assert loss.item() == pytest.approx(0.718282, abs=5e-7)
    assert torch.autograd.grad(loss, logprobs)[0].item() == -1


def test_skyrl_1340_a_loss_has_a_gradient():
    # The estimate was made under no_grad, so that the term was a constant.
    logprobs = tensor([-2.0], requires_grad=True)
    for estimator in ESTIMATORS:
        for gradient in GRADIENTS:
            assert kl_loss(logprobs, tensor([-1.0]), estimator=estimator, gradient=gradient).requires_grad


# --- what is logged


def test_slime_2114_the_penalty_does_not_change_the_divergence_that_is_logged():
    # slime scaled the logged tensor in place, and added the score to its last token.
    new, ref = tensor([[0.0]]) - 0.25, tensor([[0.0]]) - 0.75
    kl = kl_k1(new, ref)
    assert kl_penalty(new, ref, beta=0.1).item() == pytest.approx(0.05)
    assert shaped_rewards(tensor([2.0]), new, ref, bools([[1]]), beta=0.1).item() == pytest.approx(1.95)
    assert kl.item() == 0.5
    assert (new.item(), ref.item()) == (-0.25, -0.75)


def test_trl_1180_and_1161_which_estimate_may_be_negative():
    # The log-ratio was reported whichever estimate was trained on, and warned of as negative.
    new, ref = tensor([-2.0, -1.5]), tensor([-1.0, -1.0])
    assert kl_k1(new, ref).mean().item() == -0.75
    assert kl_k2(new, ref).min().item() == 0.125
    assert kl_k3(new, ref).tolist() == pytest.approx([math.e - 2, math.exp(0.5) - 1.5], rel=1e-14)
    assert full_kl(tensor([0.0, 1.0]), tensor([1.0, 0.0])).item() > 0


def test_trl_2562_a_penalty_per_token_and_one_per_sequence_are_the_same():
    # The option that chose between them chose nothing: beta (0.1 + 0.2) either way. There is none here.
    new, ref = tensor([[-1.0, -1.0]]), tensor([[-1.1, -1.2]])
    assert -kl_penalty(new, ref, beta=1).sum().item() == pytest.approx(-0.3)
    assert -1 * kl_k1(new, ref).sum().item() == pytest.approx(-0.3)
    # The unit matters to the controller, which asks for it.
    kl, mask = kl_k1(new, ref), bools([[1, 1]])
    betas = [
        adapt_beta(kl, mask, beta=1, target=0.3, horizon=1, unit=u).item() for u in ("sequence", "token")
    ]
    assert betas == pytest.approx([1, 0.8])


# --- the controller


def test_trlx_361_and_441_the_controller_is_fed_the_divergence_of_sequences():
    # Sums 6 and 4: mean 5. The mean over tokens is 2.5, and over the padded width 5/3.
    kl, mask = tensor([[1.0, 2, 3], [4, 0, 0]]), bools([[1, 1, 1], [1, 0, 0]])
    update = {"beta": 0.1, "horizon": 100}
    assert adapt_beta(kl, mask, target=5, unit="sequence", **update).item() == pytest.approx(0.1, rel=1e-14)
    assert adapt_beta(kl, mask, target=2.5, unit="token", **update).item() == pytest.approx(0.1, rel=1e-14)
    # The wrong one moves it: by a fifth, for two sequences of a hundred.
    assert adapt_beta(kl, mask, target=5, unit="token", **update).item() == pytest.approx(0.1 * (1 - 0.004))


def test_verl_1984_the_controller_counts_the_sequences_of_the_batch_not_the_steps(device):
    # Asked for: the step number. Then the same error would move beta 1000 times faster at step 1000.
    kl, mask = torch.full((64, 2), 9.0), torch.ones(64, 2).bool()
    first = adapt_beta(kl, mask, beta=0.1, target=6, horizon=10_000, unit="token").item()
    assert first == pytest.approx(0.1 * (1 + 0.2 * 64 / 10_000), rel=1e-6)
    second = adapt_beta(kl, mask, beta=first, target=6, horizon=10_000, unit="token").item()
    assert second / first == pytest.approx(first / 0.1, rel=1e-6)
    # A horizon in steps is refused where it would turn beta negative: 1 - 0.2 * 64 / 10.
    if device != "cpu":
        assert adapt_beta(kl, mask, beta=0.1, target=6, horizon=10, unit="token").isnan()
        return
    with pytest.raises(ValueError, match="^horizon must be above a fifth of the number of sequences"):
        adapt_beta(kl, mask, beta=0.1, target=6, horizon=10, unit="token")


@pytest.mark.parametrize("bad", [0, -1])
def test_openrlhf_1289_target_and_horizon_are_above_0(bad):
    kl, mask = torch.full((10, 1), 1.2), torch.ones(10, 1).bool()
    good = {"beta": 0.1, "target": 1, "horizon": 100, "unit": "token"}
    for name in ("target", "horizon"):
        with pytest.raises(ValueError, match=f"^{name} must be finite and above 0, got {bad}$"):
            adapt_beta(kl, mask, **{**good, name: bad})
    # Its valid case: 0.1 (1 + 0.2 * 10 / 100).
    assert adapt_beta(kl, mask, **good).item() == pytest.approx(0.102, rel=1e-6)


def test_miles_3222_a_strength_of_0_would_stay_0():
    with pytest.raises(ValueError, match="^beta must be finite and above 0, got 0$"):
        adapt_beta(torch.ones(1, 1), bools([[1]]), beta=0, target=1, horizon=100, unit="token")
