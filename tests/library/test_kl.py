import math

import mpmath
import pytest
import torch

from ppo_core import checks, kl_k1, kl_k2, kl_k3, kl_penalty

# d = ref - new on both sides of the change from the series to expm1, at the ends, and at nothing at all.
GRID = [
    sign * digits * 10.0**exponent
    for sign in (1, -1)
    for exponent in range(-12, 1)
    for digits in (0, 1, 3, 9.9, 9.999999, 10.000001)
]


@pytest.fixture(params=["fast", "plain"], autouse=True)
def path(request, monkeypatch):
    """All of it by the plain definitions too."""
    if request.param == "plain":
        monkeypatch.setattr(checks, "is_ordinary", lambda *_: False)


def value_and_gradient(estimator, d, dtype, device):
    new = torch.zeros(len(d), dtype=dtype, device=device, requires_grad=True)
    value = estimator(new, torch.tensor(d, dtype=dtype, device=device))
    (gradient,) = torch.autograd.grad(value.sum(), new)
    return value.tolist(), gradient.tolist()


def test_by_hand(device):
    # d = ref - new = 0.5, -1, 2
    d = [0.5, -1.0, 2.0]
    assert value_and_gradient(kl_k1, d, torch.float64, device) == ([-0.5, 1, -2], [1, 1, 1])
    assert value_and_gradient(kl_k2, d, torch.float64, device) == ([0.125, 0.5, 2], [-0.5, 1, -2])
    value, gradient = value_and_gradient(kl_k3, d, torch.float64, device)
    assert value == pytest.approx([math.sqrt(math.e) - 1.5, 1 / math.e, math.e**2 - 3], rel=1e-14)
    assert gradient == pytest.approx([1 - math.sqrt(math.e), 1 - 1 / math.e, 1 - math.e**2], rel=1e-14)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.float64, 5e-15)], ids=str)
def test_k3_has_all_its_digits(dtype, tolerance, device):
    d = torch.tensor(GRID, dtype=dtype).tolist()  # rounded as the function sees it
    value, gradient = value_and_gradient(kl_k3, d, dtype, device)
    with mpmath.workdps(60):
        exact = [mpmath.expm1(x) - x for x in map(mpmath.mpf, d)]
        slope = [-mpmath.expm1(x) for x in map(mpmath.mpf, d)]
    tiny = torch.finfo(dtype).tiny
    assert value == pytest.approx([float(x) for x in exact], rel=tolerance, abs=tiny)
    assert gradient == pytest.approx([float(x) for x in slope], rel=tolerance, abs=tiny)
    assert min(value) >= 0


def test_k3_in_float32_is_right_to_the_last_bit_or_two_as_far_as_the_series_goes(device):
    d = torch.tensor([-0.0999, -0.09, -0.05, 0.05, 0.09, 0.0999]).tolist()
    value, _ = value_and_gradient(kl_k3, d, torch.float32, device)
    with mpmath.workdps(60):
        exact = [float(mpmath.expm1(x) - x) for x in map(mpmath.mpf, d)]
    assert value == pytest.approx(exact, rel=2e-7)


def test_the_formula_as_written_would_fail_that():
    d, right = torch.tensor(1e-4), 5.000166670833417e-9
    assert abs((torch.exp(d) - 1 - d).item() - right) > right
    assert kl_k3(torch.tensor(0.0), d).item() == pytest.approx(right, rel=1e-6, abs=0)


@pytest.mark.parametrize("estimator", [kl_k1, kl_k2, kl_k3])
def test_at_the_reference_everything_is_zero(estimator, device):
    ((value,), (gradient,)) = value_and_gradient(estimator, [0.0], torch.float64, device)
    assert value == 0
    assert gradient == (1 if estimator is kl_k1 else 0)


def test_k3_far_away(device):
    value, gradient = value_and_gradient(kl_k3, [100.0, -1000.0], torch.float64, device)
    assert value == pytest.approx([math.exp(100) - 101, 999], rel=1e-14)
    assert gradient == pytest.approx([1 - math.exp(100), 1], rel=1e-14)
    # In float32 e^100 overflows: infinite, as the docstring says, and not NaN.
    assert value_and_gradient(kl_k3, [100.0], torch.float32, device) == ([math.inf], [-math.inf])
    # On the other side nothing overflows, the series near 0 neither, where it is not used.
    assert value_and_gradient(kl_k3, [-1e9], torch.float32, device) == ([1e9], [1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_far_token_under_the_mask_does_not_spoil_a_near_one(dtype, device):
    new = torch.tensor([-1.0, -1000.0], dtype=dtype, device=device, requires_grad=True)
    ref = torch.tensor([-1.001, 0.0], dtype=dtype, device=device)
    kl_k3(new, ref, mask=torch.tensor([True, False], device=device)).sum().backward()
    # -1.001 keeps its distance to -1 only to four digits in float32.
    tolerance = 1e-3 if dtype == torch.float32 else 1e-12
    assert new.grad[0].item() == pytest.approx(-math.expm1(-0.001), rel=tolerance)
    assert new.grad[1].item() == 0


def test_penalty_by_hand(device):
    new, ref = (torch.tensor(x, dtype=torch.float64, device=device).log() for x in (0.8, 0.5))
    new.requires_grad_()
    penalty = kl_penalty(new, ref, beta=0.1)
    assert penalty.item() == pytest.approx(0.047000362924573563, rel=1e-14)
    penalty.backward()
    assert new.grad.item() == 0.1
    assert kl_penalty(new, ref, beta=0).item() == 0


@pytest.mark.parametrize("d", [0.19, 0.199, -0.19, -0.199])
def test_outside_the_series_the_other_form_keeps_the_digits_of_float64(d, device):
    logprobs = torch.tensor(0.0, dtype=torch.float64, device=device)
    ref_logprobs = torch.tensor(d, dtype=torch.float64, device=device)
    with mpmath.workdps(40):
        exact = mpmath.expm1(mpmath.mpf(d)) - mpmath.mpf(d)
        # The first term that the series leaves out, 2 d^9 / 11!, would be up to 2e-14 of the whole here.
        assert abs(kl_k3(logprobs, ref_logprobs).item() / exact - 1) < 4e-15
