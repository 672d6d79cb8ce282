import itertools
import math

import pytest
import torch

import lab
import reference

NAMES = [
    "expected_reward",
    "exact_policy_gradient",
    "policy_gradient_mean",
    "policy_gradient_variance",
    "best_baseline",
]
WORLDS = [
    ([0.9, 0.1], [1.0, 0.0]),
    ([0.5, 0.5], [1.0, -1.0]),
    ([0.25, 0.5, 0.25], [1.0, 2.0, 4.0]),
    ([1e-6, 0.3, 0.7 - 1e-6], [-3.0, 0.0, 5.0]),
    ([0.1] * 10, [float(a * a) for a in range(10)]),
]
BASELINES = [0.0, 0.9, -2.5, 1e3]


def world(probs, rewards, dtype=torch.float64):
    return torch.tensor(probs, dtype=dtype), torch.tensor(rewards, dtype=dtype)


def test_two_actions_by_hand():
    # Estimates without a baseline: 1 * 0.1 and 0 * -0.9. Mean 0.9 * 0.1 = 0.09.
    # Variance 0.9 * 0.1^2 - 0.09^2 = 0.0009.
    probs, rewards = world([0.9, 0.1], [1.0, 0.0])
    assert lab.expected_reward(probs, rewards).item() == pytest.approx(0.9, rel=1e-15)
    assert lab.exact_policy_gradient(probs, rewards).item() == pytest.approx(0.09, rel=1e-14)
    assert lab.policy_gradient_mean(probs, rewards).item() == pytest.approx(0.09, rel=1e-14)
    assert lab.policy_gradient_variance(probs, rewards).item() == pytest.approx(0.0009, rel=1e-12)
    # With the baseline 0.9 they are 0.1 * 0.1 and -0.9 * -0.9: variance 0.9 * 0.01^2 + 0.1 * 0.81^2 - 0.09^2.
    assert lab.policy_gradient_mean(probs, rewards, baseline=0.9).item() == pytest.approx(0.09, rel=1e-14)
    variance = lab.policy_gradient_variance(probs, rewards, baseline=0.9)
    assert variance.item() == pytest.approx(0.0576, rel=1e-12)
    # 0.9 * 1 * 0.1^2 / (0.9 * 0.1^2 + 0.1 * 0.9^2) = 0.009 / 0.09
    assert lab.best_baseline(probs, rewards).item() == pytest.approx(0.1, rel=1e-14)


def test_three_actions_by_hand():
    # Scores 3/4, -1/4, -1/4; estimates 3/4, -1/2, -1; mean 3/16 - 4/16 - 4/16.
    probs, rewards = world([0.25, 0.5, 0.25], [1.0, 2.0, 4.0])
    assert lab.expected_reward(probs, rewards).item() == 2.25
    assert lab.policy_gradient_mean(probs, rewards).item() == -0.3125
    # 1/4 (17/16)^2 + 1/2 (3/16)^2 + 1/4 (11/16)^2 = (289 + 18 + 121) / 1024
    assert lab.policy_gradient_variance(probs, rewards).item() == 428 / 1024
    # Weights 9/64, 2/64, 1/64.
    assert lab.best_baseline(probs, rewards).item() == pytest.approx((9 + 4 + 4) / 12, rel=1e-15)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", WORLDS, ids=str)
def test_agrees_with_the_plain_float_twin(name, where):
    for baseline in BASELINES if name.startswith("policy_gradient") else [None]:
        options = {} if baseline is None else {"baseline": baseline}
        found = getattr(lab, name)(*world(*where), **options)
        assert found.shape == () and found.dtype == torch.float64
        expected = getattr(reference, name)(*where, **options)
        assert found.item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("where", WORLDS, ids=str)
def test_the_policy_gradient_theorem_holds_with_any_baseline(where):
    probs, rewards = world(*where)
    exact = lab.exact_policy_gradient(probs, rewards).item()
    for baseline in BASELINES:
        mean = lab.policy_gradient_mean(probs, rewards, baseline=baseline).item()
        assert mean == pytest.approx(exact, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("where", WORLDS, ids=str)
def test_no_baseline_beats_the_best(where):
    probs, rewards = world(*where)
    best = lab.best_baseline(probs, rewards).item()
    least = lab.policy_gradient_variance(probs, rewards, baseline=best).item()
    # The variance is a parabola in the baseline, with the curvature sum of p s^2.
    curvature = math.fsum(p * ((a == 0) - where[0][0]) ** 2 for a, p in enumerate(where[0]))
    for step in (-1, -0.01, 0.01, 1):
        variance = lab.policy_gradient_variance(probs, rewards, baseline=best + step).item()
        assert variance - least == pytest.approx(curvature * step**2, rel=1e-6, abs=1e-12)


def test_the_variance_is_that_of_samples():
    # 20 000 draws, so the estimate of the variance is good to a few percent.
    torch.manual_seed(0)
    probs, rewards = world([0.25, 0.5, 0.25], [1.0, 2.0, 4.0])
    actions = torch.multinomial(probs, 20000, replacement=True)
    estimates = (rewards[actions] - 0.5) * ((actions == 0).double() - 0.25)
    expected = lab.policy_gradient_variance(probs, rewards, baseline=0.5).item()
    assert estimates.var().item() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_no_grad_and_leaves_make_no_difference(name):
    probs, rewards = world(*WORLDS[2])
    expected = getattr(lab, name)(probs, rewards)
    with torch.no_grad():
        assert torch.equal(getattr(lab, name)(probs, rewards), expected)
    assert torch.equal(getattr(lab, name)(probs.requires_grad_(), rewards.requires_grad_()), expected)
    assert (probs.grad, rewards.grad) == (None, None)


def test_the_exact_gradient_is_a_number():
    probs, rewards = (x.requires_grad_() for x in world(*WORLDS[2]))
    assert not lab.exact_policy_gradient(probs, rewards).requires_grad


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(name, half):
    probs, rewards = world(*WORLDS[2], dtype=half)
    found = getattr(lab, name)(probs, rewards)
    assert found.dtype == torch.float32
    assert torch.equal(found, getattr(lab, name)(probs.float(), rewards.float()))


TWO = torch.tensor([0.5, 0.5])
ERRORS = [
    ((TWO, torch.ones(3)), ValueError, "probs and rewards must have the same shape, got [2] and [3]; nothing is "
     "broadcast: expand or index one of them first"),
    ((TWO[:1], TWO[:1]), ValueError, "probs must have the shape [n] with n at least 2, got [1]"),
    ((TWO[None], TWO[None]), ValueError, "probs must have the shape [n] with n at least 2, got [1, 2]"),
    ((torch.tensor([1.0, 0.0]), TWO), ValueError, "probs must all be above 0, got [1.0, 0.0]; leave impossible "
     "actions out"),
    ((torch.tensor([1.5, -0.5]), TWO), ValueError, "probs must all be above 0, got [1.5, -0.5]; leave impossible "
     "actions out"),
    ((torch.tensor([0.5, torch.nan]), TWO), ValueError, "probs must all be above 0, got [0.5, nan]; leave "
     "impossible actions out"),
    ((torch.tensor([0.5, 0.25]), TWO), ValueError, "probs must sum to 1, got [0.5, 0.25] with sum 0.75"),
    (([0.5, 0.5], TWO), TypeError, "probs must be a torch.Tensor, got list; write torch.tensor(probs)"),
    ((TWO, TWO.int()), TypeError, "rewards must be a floating-point tensor, got torch.int32; write "
     "rewards.float()"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "error"), list(itertools.product(NAMES, ERRORS)), ids=lambda x: x if isinstance(x, str) else x[2]
)
def test_text_of_errors(name, error):
    arguments, kind, text = error
    with pytest.raises(kind) as raised:
        getattr(lab, name)(*arguments)
    assert str(raised.value) == text


@pytest.mark.parametrize("name", ["policy_gradient_mean", "policy_gradient_variance"])
def test_text_of_errors_of_the_baseline(name):
    for bad, kind, text in [
        (math.nan, ValueError, "baseline must be finite, got nan"),
        (-math.inf, ValueError, "baseline must be finite, got -inf"),
        (math.inf, ValueError, "baseline must be finite, got inf"),
        (True, TypeError, "baseline must be a plain number, got bool; write a float or an int"),
        (TWO[0], TypeError, "baseline must be a plain number, got Tensor; write a float or an int"),
    ]:
        with pytest.raises(kind) as raised:
            getattr(lab, name)(TWO, TWO, baseline=bad)
        assert str(raised.value) == text
