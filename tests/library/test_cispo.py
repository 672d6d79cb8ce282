import math

import pytest
import torch

from ppo_core import cispo_loss


def loss_and_gradient(new, old, A, device, dtype=torch.float64, **arguments):
    new, old, A = (torch.tensor(x, dtype=dtype, device=device) for x in (new, old, A))
    new.requires_grad_()
    loss = cispo_loss(new, old, A, **arguments)
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    return loss.tolist(), gradient.tolist()


def weights(ratios, device, **bounds):
    """The weights, read off the gradient of tokens with the advantage -1."""
    old = [-math.log(rho) - 1.0 for rho in ratios]
    return loss_and_gradient([-1.0] * len(old), old, [-1.0] * len(old), device, **bounds)[1]


def test_by_hand(device):
    # Log-probability -2 each; ratios 2, 1/2, 1; weights 1.25, 0.75, 1. Loss: -weight * A * -2.
    old = [-2 - math.log(2), -2 + math.log(2), -2.0]
    loss, gradient = loss_and_gradient(
        [-2.0] * 3, old, [3.0, -1.0, 4.0], device, epsilon_low=0.25, epsilon_high=0.25
    )
    assert loss == pytest.approx([7.5, -1.5, 8], rel=1e-14)
    # A clipped token keeps its gradient, minus the weight times the advantage.
    assert gradient == pytest.approx([-3.75, 0.75, -4], rel=1e-14)


RATIOS = [0.1, 0.5, 1.0, 1.5, 4.0]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"epsilon_low": 0.2, "epsilon_high": 0.28}, [0.8, 0.8, 1, 1.28, 1.28]),
        ({"min_ratio": 0.8, "max_ratio": 1.28}, [0.8, 0.8, 1, 1.28, 1.28]),
        ({"epsilon_low": 0.7}, [0.3, 0.5, 1, 1.5, 4]),
        ({"epsilon_low": 1}, [0.1, 0.5, 1, 1.5, 4]),
        ({"epsilon_low": 3.5}, [0.1, 0.5, 1, 1.5, 4]),
        ({"epsilon_high": 2}, [0.1, 0.5, 1, 1.5, 3]),
        ({"min_ratio": 0.3}, [0.3, 0.5, 1, 1.5, 4]),
        ({"min_ratio": 0}, [0.1, 0.5, 1, 1.5, 4]),
        ({"min_ratio": 1}, [1, 1, 1, 1.5, 4]),
        ({"max_ratio": 3}, [0.1, 0.5, 1, 1.5, 3]),
        ({"max_ratio": 1}, [0.1, 0.5, 1, 1, 1]),
        ({"min_ratio": 1, "max_ratio": 1}, [1, 1, 1, 1, 1]),
    ],
)
def test_bounds_by_hand(bounds, expected, device):
    assert weights(RATIOS, device, **bounds) == pytest.approx(expected, rel=1e-14)


def test_the_numbers_of_a_peer(device):
    # The tests of slime: ratios 1, 1.14, 1.56, 0.4 with 0.2 and 0.28 get the weights 1, 1.14, 1.28, 0.8.
    found = weights([1, 1.14, 1.56, 0.4], device, epsilon_low=0.2, epsilon_high=0.28)
    assert found == pytest.approx([1, 1.14, 1.28, 0.8], rel=1e-14)


def test_at_the_first_step_it_has_the_gradient_of_the_policy_loss(device):
    # All ratios are 1: minus the advantage.
    A = [2.0, -3.0, 0.0]
    _, gradient = loss_and_gradient([-1.0, -2.0, -3.0], [-1.0, -2.0, -3.0], A, device, epsilon_high=0.2)
    assert gradient == [-2, 3, 0]


def test_the_weight_is_held_fixed(device):
    # The slope of -rho A log pi with a moving weight would be -rho A (1 + log pi).
    new = math.log(0.5)
    _, (gradient,) = loss_and_gradient([new], [new - math.log(1.5)], [1.0], device, max_ratio=10)
    assert gradient == pytest.approx(-1.5, rel=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", [89.0, 1000.0, math.inf])
def test_where_the_ratio_overflows(far, dtype, device):
    # The old policy made the token with probability e^-far; its log-probability now is -1.
    def found(A, new=-1.0, **bounds):
        (loss,), (gradient,) = loss_and_gradient([new], [new - far], [A], device, dtype, **bounds)
        return loss, gradient

    assert found(2.0, epsilon_high=3) == (8, -8)
    assert found(2.0, max_ratio=4) == (8, -8)
    # A token as expected asks for nothing, with an upper bound or without.
    assert found(0.0, epsilon_high=3) == found(0.0, epsilon_low=0.5) == (0, 0)
    if far > 700 or dtype == torch.float32:
        assert found(2.0, epsilon_low=0.5) == (math.inf, -math.inf)
        assert found(-2.0, min_ratio=0.5) == (-math.inf, math.inf)
    # A token that is certain now has the log-probability 0, and so the loss.
    loss, gradient = found(2.0, new=0.0, epsilon_low=0.5)
    assert loss == 0 and gradient < -1e38


def test_a_token_that_became_improbable(device):
    # Ratio 0 for a float, weight 1/2 with a lower bound.
    found = loss_and_gradient([-1000.0] * 2, [-1.0] * 2, [2.0, -2.0], device, max_ratio=4)
    assert found == ([0, 0], [0, 0])
    found = loss_and_gradient([-1000.0] * 2, [-1.0] * 2, [2.0, -2.0], device, min_ratio=0.5)
    assert found == ([1000, -1000], [-1, 1])


@pytest.mark.parametrize("bounds", [{"epsilon_high": 0.3}, {"min_ratio": 0.5}])
def test_under_the_mask_anything_may_lie(bounds, device):
    mask = torch.tensor([True, False, False, False], device=device)
    new, old = [-1.0, math.nan, 500.0, -math.inf], [-1.0, -1.0, -500.0, math.inf]
    found = loss_and_gradient(new, old, [2.0, math.inf, 1.0, math.nan], device, mask=mask, **bounds)
    assert found == ([2, 0, 0, 0], [-2, 0, 0, 0])


def test_a_nan_surfaces(device):
    nan = math.nan
    for new, old, A in (
        (nan, -1.0, 1.0),
        (-1.0, nan, 1.0),
        (-1.0, -1.0, nan),
        (-1.0, nan, 0.0),
        (nan, -1.0, 0.0),
    ):
        (loss,), _ = loss_and_gradient([new], [old], [A], device, epsilon_low=0.2, epsilon_high=0.3)
        assert math.isnan(loss)


ONE = torch.ones(2)
BOTH = (
    "the bounds must be given as epsilon_low, epsilon_high (distances from 1) or as min_ratio, max_ratio (the "
    "ratios themselves), got {}"
)


@pytest.mark.parametrize(
    ("bounds", "came"),
    [
        ({}, "none"),
        ({"epsilon_high": 0.2, "max_ratio": 5.0}, "epsilon_high and max_ratio"),
        ({"epsilon_high": 0.2, "min_ratio": 0.5}, "epsilon_high and min_ratio"),
        ({"epsilon_low": 0.2, "max_ratio": 5.0}, "epsilon_low and max_ratio"),
        ({"epsilon_low": 0.2, "min_ratio": 0.5}, "epsilon_low and min_ratio"),
        ({"epsilon_low": 0.2, "epsilon_high": 0.2, "min_ratio": 0.5, "max_ratio": 5.0},
         "epsilon_low and epsilon_high and min_ratio and max_ratio"),
    ],
)  # fmt: skip
def test_the_bounds_are_given_in_one_way(bounds, came):
    with pytest.raises(ValueError) as raised:
        cispo_loss(ONE, ONE, ONE, **bounds)
    assert str(raised.value) == BOTH.format(came)


@pytest.mark.parametrize(
    ("name", "bad", "text"),
    [
        *((name, bad, f"must be finite and above 0, got {bad}")
          for name in ("epsilon_low", "epsilon_high") for bad in (0, -0.2, math.inf, math.nan)),
        *(("min_ratio", bad, f"must lie between 0 and 1, got {bad}") for bad in (-0.1, 1.1, math.inf, math.nan)),
        # A distance given for a ratio would give every token, even an unchanged one, the weight 0.28.
        *(("max_ratio", bad, f"must be finite and at least 1, got {bad}; it is the largest ratio itself, not its "
           "distance from 1") for bad in (0.28, 0, -1, math.inf, math.nan)),
    ],
)  # fmt: skip
def test_bad_bounds(name, bad, text):
    with pytest.raises(ValueError) as raised:
        cispo_loss(ONE, ONE, ONE, **{name: bad})
    assert str(raised.value) == f"{name} {text}"


@pytest.mark.parametrize("name", ["epsilon_low", "epsilon_high", "min_ratio", "max_ratio"])
def test_bounds_are_plain_numbers(name):
    for bad, kind in ((True, "bool"), (torch.tensor(1.0), "Tensor")):
        with pytest.raises(TypeError) as raised:
            cispo_loss(ONE, ONE, ONE, **{name: bad})
        assert str(raised.value) == f"{name} must be a plain number, got {kind}; write a float or an int"


def test_bad_tensors():
    with pytest.raises(ValueError, match=r"^logprobs and mask must have the same shape, got \[2\] and \[1\]"):
        cispo_loss(ONE, ONE, ONE, epsilon_high=0.2, mask=torch.ones(1, dtype=torch.bool))
    with pytest.raises(
        ValueError, match=r"^logprobs and advantages must have the same shape, got \[2\] and \[1\]"
    ):
        cispo_loss(ONE, ONE, torch.ones(1), epsilon_high=0.2)


def test_a_compiled_loss_takes_other_bounds():
    compiled = torch.compile(cispo_loss, fullgraph=True, backend="aot_eager")
    new, old, A = torch.randn(3, 40, dtype=torch.float64)
    for low, high in ((0.2, 0.3), (0.1, 1.5), (0.5, 0.25), (0.3, 4.0)):
        options = {"epsilon_low": low, "epsilon_high": high}
        torch.testing.assert_close(compiled(new, old, A, **options), cispo_loss(new, old, A, **options))
