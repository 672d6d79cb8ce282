"""The exact KL divergence. Expected values by hand, or with 50 digits."""

import math
import random

import mpmath
import pytest
import torch

from ppo_core import full_kl

INF = math.inf


def tensor(x, device="cpu", dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def value_and_gradient(logits, ref_logits, device="cpu", dtype=torch.float64, **options):
    logits = tensor(logits, device, dtype).requires_grad_()
    value = full_kl(logits, tensor(ref_logits, device, dtype), **options)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return value.tolist(), gradient.tolist()


def exact(logits, ref_logits):
    """The divergence and its gradient p (log p - log q - KL), from rounded logits, with 50 digits."""
    with mpmath.workdps(50):
        p, q = ([mpmath.exp(mpmath.mpf(z) - max(row)) for z in row] for row in (logits, ref_logits))
        p, q = ([x / mpmath.fsum(row) for x in row] for row in (p, q))
        ratios = [mpmath.log(a) - mpmath.log(b) for a, b in zip(p, q, strict=True)]
        kl = mpmath.fsum(a * r for a, r in zip(p, ratios, strict=True))
        return float(kl), [float(a * (r - kl)) for a, r in zip(p, ratios, strict=True)]


def test_by_hand(device):
    # (3/4, 1/4) against (1/2, 1/2): 3/4 log(3/2) + 1/4 log(1/2) = 3/4 log 3 - log 2.
    # Its gradient at the first token is 3/4 (log(3/2) - KL) = 3/16 log 3.
    value, gradient = value_and_gradient([math.log(3), 0.0], [0.0, 0.0], device)
    assert value == pytest.approx(0.75 * math.log(3) - math.log(2), rel=1e-14)
    assert gradient == pytest.approx([3 / 16 * math.log(3), -3 / 16 * math.log(3)], rel=1e-14)


def test_the_order_of_the_two_matters(device):
    # (1/2, 1/2) against (3/4, 1/4): -1/2 log(3/4) = log 2 - 1/2 log 3.
    value, _ = value_and_gradient([0.0, 0.0], [math.log(3), 0.0], device)
    assert value == pytest.approx(math.log(2) - math.log(3) / 2, rel=1e-14)


def test_a_policy_that_is_its_reference_has_none(device):
    logits = [[0.3, -1.2, 5.0], [1e4, 0.0, -1e4], [-INF, 0.5, 0.25]]
    assert value_and_gradient(logits, logits, device) == ([0, 0, 0], [[0, 0, 0]] * 3)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_one_certain_token_costs_what_the_reference_thinks_of_it(size, device):
    # All the mass on one token, against an even reference: -log(1 / size).
    logits = [0.0] + [-INF] * (size - 1)
    value, gradient = value_and_gradient(logits, [0.0] * size, device)
    assert value == pytest.approx(math.log(size), rel=1e-14)
    assert gradient == [0] * size


# --- all its digits


def draw(size, spread, distance, shift, dtype=torch.float32):
    """Logits as the function sees them: the reference is the policy, moved by about `distance`, and shifted."""
    rng = random.Random(f"{size} {spread} {distance} {shift}")
    logits = [rng.gauss(0, spread) for _ in range(size)]
    ref_logits = [z + distance * rng.gauss(0, 1) + shift for z in logits]
    return [torch.tensor(row, dtype=dtype).tolist() for row in (logits, ref_logits)]


CASES = [
    (size, spread, distance, shift)
    for size, spread in ((3, 5), (50, 5), (200, 1))
    for distance in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10)
    for shift in (0, 0.7, -1000)
]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 4e-6), (torch.float64, 8e-15)], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_has_all_its_digits(case, dtype, tolerance, device):
    pair = draw(*case, dtype=dtype)
    kl, slope = exact(*pair)
    value, gradient = value_and_gradient(*pair, device, dtype)
    assert value == pytest.approx(kl, rel=tolerance, abs=0)
    assert gradient == pytest.approx(slope, rel=0, abs=20 * tolerance * max(map(abs, slope)))


def test_the_cases_reach_the_smallest_divergences():
    sizes = [exact(*draw(*case))[0] for case in CASES]
    assert min(sizes) < 1e-12
    assert any(3e-9 < kl < 3e-8 for kl in sizes)
    assert max(sizes) > 5


def test_the_formula_as_written_would_fail_that():
    logits, ref_logits = (tensor(row, dtype=torch.float32) for row in draw(200, 1, 1e-4, 0))
    right = exact(logits.tolist(), ref_logits.tolist())[0]
    logprobs, ref = logits.log_softmax(-1), ref_logits.log_softmax(-1)
    written = (logprobs.exp() * (logprobs - ref)).sum().item()
    assert 3e-9 < right < 7e-9
    assert abs(written - right) > right / 2
    assert full_kl(logits, ref_logits).item() == pytest.approx(right, rel=1e-6, abs=0)


@pytest.mark.parametrize("distance", [1e-4, 1.0])
def test_a_large_vocabulary(distance, device):
    generator = torch.Generator().manual_seed(0)
    logits, noise = torch.randn(2, 50_000, generator=generator)
    ref_logits = logits + distance * noise
    # float64 has the digits for both sums.
    expected = full_kl(logits.double(), ref_logits.double()).item()
    assert expected == pytest.approx(distance**2 / 2, rel=0.1)
    found = full_kl(logits.to(device), ref_logits.to(device)).item()
    assert found == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_it_is_never_negative(dtype, device):
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(200, 7, dtype=dtype, generator=generator)
    noise = torch.randn(200, 7, dtype=dtype, generator=generator)
    size = torch.logspace(-12, 2, 200, dtype=dtype)[:, None]
    found = full_kl(logits.to(device), (logits + size * noise).to(device))
    assert (found >= 0).all()
    assert (found[120:] > 0).all()  # where float32 still tells the two apart


def test_a_shift_of_all_logits_changes_nothing(device):
    # Whole numbers, so that the shifted logits are exact.
    logits, ref_logits = [3.0, -2.0, 0.0, 7.0], [2.0, 2.0, -5.0, 6.0]
    value, gradient = value_and_gradient(logits, ref_logits, device, torch.float32)
    for shift in (1e3, -1e6):
        for moved in (0, 1):
            pair = [logits, ref_logits]
            pair[moved] = [z + shift for z in pair[moved]]
            found, slope = value_and_gradient(*pair, device, torch.float32)
            assert found == pytest.approx(value, rel=1e-6)
            assert slope == pytest.approx(gradient, abs=1e-6)


# --- far away, and ruled out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", [120.0, 900.0, 1e5])
def test_all_the_mass_on_another_token_costs_its_distance(far, dtype, device):
    # The policy's token has log-probability -far in the reference; e^far is infinite in float32, or in both.
    value, gradient = value_and_gradient([far, 0.0, 0.0], [0.0, far, 0.0], device, dtype)
    assert value == pytest.approx(far, rel=1e-6)
    assert gradient == pytest.approx([0, 0, 0], abs=1e-40)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_far_away_nothing_overflows(dtype, device):
    # A tenth of the mass is at log(1/10) - (-1000); the gradient is p (1000 + log p - KL) there.
    value, gradient = value_and_gradient([0.0, math.log(9)], [-1000.0, 0.0], device, dtype)
    kl = 0.1 * (1000 - math.log(10)) + 0.9 * math.log(0.9)
    assert value == pytest.approx(kl, rel=1e-6)
    slope = 0.1 * (1000 - math.log(10) - kl)
    assert gradient == pytest.approx([slope, -slope], rel=1e-5)


def test_a_token_that_both_rule_out_adds_nothing(device):
    # Beside it the policies of test_by_hand.
    value, gradient = value_and_gradient([math.log(3), -INF, 0.0], [0.0, -INF, 0.0], device)
    assert value == pytest.approx(0.75 * math.log(3) - math.log(2), rel=1e-14)
    assert gradient == pytest.approx([3 / 16 * math.log(3), 0, -3 / 16 * math.log(3)], rel=1e-14)
    assert gradient[1] == 0


def test_a_token_that_the_policy_alone_rules_out_weighs_on_the_others(device):
    # (3/4, 0, 1/4) against thirds: 3/4 log(9/4) + 1/4 log(3/4) = 3/4 log 3 + log 3 - 2 log 2.
    value, gradient = value_and_gradient([math.log(3), -INF, 0.0], [0.0, 0.0, 0.0], device)
    kl = 1.75 * math.log(3) - 2 * math.log(2)
    assert value == pytest.approx(kl, rel=1e-14)
    slope = 0.75 * (math.log(9 / 4) - kl)
    assert gradient == pytest.approx([slope, 0, -slope], rel=1e-14)
    assert gradient[1] == 0


# The last is so unlikely that its probability is rounded to 0.
@pytest.mark.parametrize("logits", [[0.0, 1.0, 2.0], [0.0, -500.0, 0.0], [0.0, -5000.0, 0.0]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_token_that_the_reference_alone_rules_out_costs_infinity(logits, dtype, device):
    value, gradient = value_and_gradient([logits, [0.0] * 3], [[0.0, -INF, 0.0], [0.0] * 3], device, dtype)
    assert value == [INF, 0]
    assert not any(map(math.isfinite, gradient[0]))
    assert gradient[1] == [0, 0, 0]


def test_where_everything_is_ruled_out_there_is_no_divergence(device):
    nothing, something = [-INF, -INF], [0.0, 1.0]
    pairs = [(nothing, something), (something, nothing), (nothing, nothing)]
    assert all(math.isnan(value_and_gradient(*pair, device)[0]) for pair in pairs)


def test_a_large_negative_number_is_as_good_as_minus_infinity(device):
    low = torch.finfo(torch.float32).min
    value, gradient = value_and_gradient([math.log(3), low, 0.0], [0.0, low, 0.0], device, torch.float32)
    assert value == pytest.approx(0.75 * math.log(3) - math.log(2), rel=1e-6)
    assert gradient == pytest.approx([3 / 16 * math.log(3), 0, -3 / 16 * math.log(3)], rel=1e-6)


def test_a_place_that_does_not_count_may_hold_anything(device):
    logits = [[math.log(3), 0.0], [-INF, -INF], [0.0, INF], [0.0, 1.0]]
    ref_logits = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [-INF, 0.0]]
    mask = torch.tensor([True, False, False, False], device=device)
    value, gradient = value_and_gradient(logits, ref_logits, device, mask=mask)
    assert value == pytest.approx([0.75 * math.log(3) - math.log(2), 0, 0, 0], rel=1e-14)
    assert gradient[1:] == [[0, 0]] * 3


# --- the gradient in closed form


def test_the_gradient_has_a_gradient(device):
    # Close and far places, and tokens that the policy rules out, with both.
    logits = tensor([[0.3, -1.2, 1.0], [0.3, -1.2, 1.0], [3.0, 0.0, -3.0]], device).requires_grad_()
    ref_logits = tensor([[0.3, -1.2, 1.1], [0.0, 0.5, -0.5], [-3.0, 0.0, 3.0]], device)
    assert torch.autograd.gradgradcheck(lambda z: full_kl(z, ref_logits), [logits])


def test_nothing_is_kept_for_it_but_the_logits(device):
    logits = torch.randn(5, 7, device=device, requires_grad=True)
    ref_logits = torch.randn(5, 7, device=device)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        full_kl(logits, ref_logits)
    assert {x.data_ptr() for x in kept} == {logits.data_ptr(), ref_logits.data_ptr()}


def test_a_result_may_be_changed(device):
    logits = tensor([math.log(3), 0.0], device).requires_grad_()
    value = full_kl(logits, tensor([0.0, 0.0], device))
    value.mul_(2).backward()
    assert logits.grad.tolist() == pytest.approx([3 / 8 * math.log(3), -3 / 8 * math.log(3)], rel=1e-14)


def test_the_functions_of_functions_take_it(device):
    logits, ref_logits = torch.randn(2, 5, 7, device=device, dtype=torch.float64)
    expected = tensor(value_and_gradient(logits.tolist(), ref_logits.tolist(), device)[1], device)
    found = torch.func.grad(lambda z: full_kl(z, ref_logits).sum())(logits)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-16)
    # Place by place.
    found = torch.func.vmap(torch.func.grad(full_kl))(logits, ref_logits)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-16)


# --- errors

ONE, TWO, MASK = torch.ones(2, 3), torch.ones(2), torch.ones(2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: full_kl(ONE, TWO),
            ValueError,
            "logits and ref_logits must have the same shape, got [2, 3] and [2]; nothing is broadcast: expand or "
            "index one of them first",
        ),
        (
            lambda: full_kl(ONE[:, :0], ONE[:, :0]),
            ValueError,
            "logits must have a last dimension of at least 1, the vocabulary, got [2, 0]",
        ),
        (
            lambda: full_kl(ONE, ONE, mask=ONE > 0),
            ValueError,
            "mask must have the shape of logits without its last dimension, the vocabulary, got [2, 3] and "
            "[2, 3]; nothing is broadcast: expand or index one of them first",
        ),
        (
            lambda: full_kl(ONE, ONE.long()),
            TypeError,
            "ref_logits must be a floating-point tensor, got torch.int64; write ref_logits.float()",
        ),
        (
            lambda: full_kl(ONE, ONE, mask=TWO),
            TypeError,
            "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()",
        ),
    ],
)
def test_text_of_errors(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == text
