"""KL losses: the value of each estimator with each gradient. What the gradients average to: test_kl_enumerated."""

import math

import pytest
import torch

from ppo_core import kl_k1, kl_k2, kl_k3, kl_loss

ESTIMATORS = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}
GRADIENTS = ["own", "straight_through", "score_function"]
ALL = [(estimator, gradient) for estimator in ESTIMATORS for gradient in GRADIENTS]
E2, ROOT = math.exp(2), math.exp(0.5)
# d = 0.5, -1, 2, worked out by hand: e^d is ROOT, 1/e and E2.
D = [0.5, -1.0, 2.0]
VALUES = {"k1": [-0.5, 1, -2], "k2": [0.125, 0.5, 2], "k3": [ROOT - 1.5, 1 / math.e, E2 - 3]}
SLOPES = {
    ("k1", "own"): [1, 1, 1],
    ("k2", "own"): [-0.5, 1, -2],
    ("k3", "own"): [1 - ROOT, 1 - 1 / math.e, 1 - E2],
    # That of k2, whatever the value.
    ("k1", "straight_through"): [-0.5, 1, -2],
    ("k2", "straight_through"): [-0.5, 1, -2],
    ("k3", "straight_through"): [-0.5, 1, -2],
    # The own slope plus the value.
    ("k1", "score_function"): [0.5, 2, -1],
    ("k2", "score_function"): [-0.375, 1.5, 0],
    ("k3", "score_function"): [-0.5, 1, -2],
}


def value_and_gradient(d, estimator, gradient, device="cpu", dtype=torch.float64, logprob=-3.0):
    new = torch.full((len(d),), logprob, dtype=dtype, device=device, requires_grad=True)
    ref = new.detach() + torch.tensor(d, dtype=dtype, device=device)
    value = kl_loss(new, ref, estimator=estimator, gradient=gradient)
    (slope,) = torch.autograd.grad(value.sum(), new)
    return value.tolist(), slope.tolist()


@pytest.mark.parametrize(("estimator", "gradient"), ALL)
def test_by_hand(estimator, gradient, device):
    value, slope = value_and_gradient(D, estimator, gradient, device)
    assert value == pytest.approx(VALUES[estimator], rel=1e-14)
    assert slope == pytest.approx(SLOPES[estimator, gradient], rel=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("estimator", "gradient"), ALL)
def test_the_value_is_that_of_the_estimator_to_the_last_bit(estimator, gradient, dtype, device):
    generator = torch.Generator().manual_seed(0)
    new, ref = (10 * torch.randn(2, 100, dtype=dtype, generator=generator)).to(device)
    ref[:50] = new[:50] + 1e-4 * ref[:50]
    found = kl_loss(new, ref, estimator=estimator, gradient=gradient)
    assert torch.equal(found, ESTIMATORS[estimator](new, ref))


@pytest.mark.parametrize(("estimator", "gradient"), ALL)
def test_at_the_reference(estimator, gradient, device):
    value, slope = value_and_gradient([0.0], estimator, gradient, device)
    assert value == [0]
    # That of k1 is 1 wherever it is its own: noise of mean zero.
    assert slope == [1 if estimator == "k1" and gradient != "straight_through" else 0]


@pytest.mark.parametrize(("estimator", "gradient"), ALL)
def test_far_above_the_policy(estimator, gradient, device):
    # d = 100: in float32 e^100 is infinite, in float64 it is not.
    own = {"k1": 1, "k2": -100, "k3": 1 - math.exp(100)}
    values = {"k1": -100, "k2": 5000, "k3": math.exp(100) - 101}
    slope = {
        "own": own[estimator],
        "straight_through": -100,
        "score_function": own[estimator] + values[estimator],
    }
    slope = -100 if (estimator, gradient) == ("k3", "score_function") else slope[gradient]
    found = value_and_gradient([100.0], estimator, gradient, device)
    assert found == (pytest.approx([values[estimator]], rel=1e-14), pytest.approx([slope], rel=1e-14))
    found = value_and_gradient([100.0], estimator, gradient, device, torch.float32, logprob=-128.0)
    if estimator == "k3":
        assert found == ([math.inf], [-math.inf if gradient == "own" else -100])
    else:
        assert found == (pytest.approx([values[estimator]], rel=1e-6), pytest.approx([slope], rel=1e-6))


@pytest.mark.parametrize(("estimator", "gradient"), ALL)
@pytest.mark.parametrize("d", [[1e9, -1e9], [-1e15, 1e15]], ids=str)
def test_a_filler_makes_no_nan(estimator, gradient, d, device):
    value, slope = value_and_gradient(d, estimator, gradient, device, torch.float32, logprob=0.0)
    assert not any(map(math.isnan, value + slope))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_impossible_token_surfaces(estimator, device):
    new = torch.zeros(1, device=device)
    ref = torch.full_like(new, -math.inf)
    values = [kl_loss(new, ref, estimator=estimator, gradient=gradient).item() for gradient in GRADIENTS]
    assert values[0] == math.inf
    assert all(map(math.isnan, values[1:]))


@pytest.mark.parametrize(("estimator", "gradient"), ALL)
def test_the_slope_reaches_what_the_logprobs_depend_on(estimator, gradient, device):
    x = torch.tensor(-1.5, dtype=torch.float64, device=device, requires_grad=True)
    kl_loss(2 * x, torch.full_like(x, -2.5), estimator=estimator, gradient=gradient).backward()
    # d = -2.5 + 3 = 0.5, and the logprob moves twice as fast as x.
    assert x.grad.item() == pytest.approx(2 * SLOPES[estimator, gradient][0], rel=1e-14)


def test_only_an_own_slope_has_a_slope(device):
    new = torch.tensor(-1.0, dtype=torch.float64, device=device, requires_grad=True)
    slopes = {}
    for gradient in GRADIENTS:
        value = kl_loss(new, torch.zeros_like(new), estimator="k2", gradient=gradient)
        (slopes[gradient],) = torch.autograd.grad(value, new, create_graph=True)
    assert torch.autograd.grad(slopes["own"], new)[0].item() == 1
    assert not slopes["straight_through"].requires_grad
    assert not slopes["score_function"].requires_grad


ONE, TWO = torch.ones(2, 3), torch.ones(2)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: kl_loss(ONE, ONE, estimator="k4", gradient="own"),
            ValueError,
            "estimator must be one of k1, k2, k3, got 'k4'",
        ),
        (
            lambda: kl_loss(ONE, ONE, estimator="k3+", gradient="own"),
            ValueError,
            "estimator must be one of k1, k2, k3, got 'k3+'",
        ),
        (
            lambda: kl_loss(ONE, ONE, estimator="k3", gradient="k2"),
            ValueError,
            "gradient must be one of own, straight_through, score_function, got 'k2'",
        ),
        (
            lambda: kl_loss(ONE, ONE, estimator="k3", gradient=None),
            ValueError,
            "gradient must be one of own, straight_through, score_function, got None",
        ),
        (
            lambda: kl_loss(ONE, TWO, estimator="k3", gradient="straight_through"),
            ValueError,
            "logprobs and ref_logprobs must have the same shape, got [2, 3] and [2]; nothing is broadcast: expand "
            "or index one of them first",
        ),
        (
            lambda: kl_loss(ONE, ONE, estimator="k3", gradient="own", mask=TWO > 0),
            ValueError,
            "logprobs and mask must have the same shape, got [2, 3] and [2]; nothing is broadcast: expand or "
            "index one of them first",
        ),
        (
            lambda: kl_loss(ONE, ONE.long(), estimator="k3", gradient="own"),
            TypeError,
            "ref_logprobs must be a floating-point tensor, got torch.int64; write ref_logprobs.float()",
        ),
    ],
)
def test_text_of_errors(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == text


@pytest.mark.parametrize("missing", ["estimator", "gradient"])
def test_nothing_is_chosen_for_the_caller(missing):
    chosen = {"estimator": "k3", "gradient": "own"}
    del chosen[missing]
    with pytest.raises(TypeError, match=f"required keyword-only argument: '{missing}'"):
        kl_loss(ONE, ONE, **chosen)
