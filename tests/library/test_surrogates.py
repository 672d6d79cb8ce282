import math

import pytest
import torch

from ppo_core import clip_ratio, clipped_surrogate, surrogate


def slope(function, rho, A, device, **parameters):
    """Return value and slope in the ratio, at one point."""
    rho = torch.tensor(rho, dtype=torch.float64, device=device, requires_grad=True)
    value = function(rho, torch.tensor(A, dtype=torch.float64, device=device), **parameters)
    (gradient,) = torch.autograd.grad(value, rho)
    return value.item(), gradient.item()


def test_surrogate_by_hand(device):
    assert slope(surrogate, 1.6, 2.0, device) == (3.2, 2)
    assert slope(surrogate, 0.5, -3.0, device) == (-1.5, -3)


def test_clip_ratio_by_hand(device):
    rho = torch.tensor([0.5, 0.75, 1.0, 1.25, 1.6], dtype=torch.float64, device=device, requires_grad=True)
    clipped = clip_ratio(rho, epsilon=0.25)
    assert clipped.tolist() == [0.75, 0.75, 1.0, 1.25, 1.25]
    # On the edges the slope is that of the band.
    (gradient,) = torch.autograd.grad(clipped.sum(), rho)
    assert gradient.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("rho", "A", "value", "gradient"),
    [
        # A good token: rises up to the ceiling, then flat. Not bounded below.
        (0.1, 2.0, 0.2, 2),
        (1.0, 2.0, 2.0, 2),
        (1.25, 2.0, 2.5, 2),
        (1.5, 2.0, 2.5, 0),
        # A bad token: flat below the floor, then falls without limit.
        (0.5, -2.0, -1.5, 0),
        (0.75, -2.0, -1.5, -2),
        (1.0, -2.0, -2.0, -2),
        (9.0, -2.0, -18.0, -2),
        # A token as expected asks for nothing, whatever its ratio.
        (0.1, 0.0, 0.0, 0),
        (9.0, 0.0, 0.0, 0),
        (9.0, -0.0, 0.0, 0),
    ],
)
def test_clipped_surrogate_by_hand(rho, A, value, gradient, device):
    assert slope(clipped_surrogate, rho, A, device, epsilon=0.25) == (value, gradient)


@pytest.mark.parametrize(
    ("rho", "A", "value", "gradient"),
    [
        (math.inf, 2.0, 2.5, 0),
        (math.inf, 0.0, 0.0, 0),
        (math.inf, -2.0, -math.inf, -2),
        (0.0, 2.0, 0.0, 2),
        (0.0, -2.0, -1.5, 0),
    ],
)
def test_clipped_surrogate_at_the_ends_of_the_axis(rho, A, value, gradient, device):
    assert slope(clipped_surrogate, rho, A, device, epsilon=0.25) == (value, gradient)


@pytest.mark.parametrize("epsilon", [1e-6, 0.2, 0.999999])
def test_clipped_surrogate_equals_the_minimum_bit_for_bit(epsilon, device):
    rho = torch.linspace(0, 3, 601, dtype=torch.float64, device=device).repeat(7)
    A = torch.linspace(-3, 3, 7, dtype=torch.float64, device=device).repeat_interleave(601)
    minimum = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    assert torch.equal(clipped_surrogate(rho, A, epsilon=epsilon), minimum)


def test_with_a_tiny_epsilon_the_first_step_is_a_policy_gradient_step(device):
    assert slope(clipped_surrogate, 1.0, 2.0, device, epsilon=1e-6) == (2, 2)
    # After it a move to the improving side is clipped, a move to the wrong side keeps its gradient.
    assert slope(clipped_surrogate, 1.001, 2.0, device, epsilon=1e-6)[1] == 0
    assert slope(clipped_surrogate, 0.999, 2.0, device, epsilon=1e-6)[1] == 2
