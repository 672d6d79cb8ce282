import math

import pytest
import torch

from ppo_core import clipped_surrogate, policy_loss, ratio


def loss_and_gradient(new, old, A, device, dtype=torch.float64, **arguments):
    new, old, A = (torch.tensor(x, dtype=dtype, device=device) for x in (new, old, A))
    new.requires_grad_()
    loss = policy_loss(new, old, A, epsilon=0.25, **arguments)
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    return loss.tolist(), gradient.tolist()


def test_by_hand(device):
    # Ratios 1.5, 1.5, 0.5, 0.5, 1 against advantages 2, -2, 2, -2, 3.
    new = [math.log(x) for x in (1.5, 1.5, 0.5, 0.5, 1.0)]
    loss, gradient = loss_and_gradient(new, [0.0] * 5, [2.0, -2.0, 2.0, -2.0, 3.0], device)
    assert loss == pytest.approx([-2.5, 3.0, -1.0, 1.5, -3.0], rel=1e-15)
    # Minus the ratio times the advantage, 0 where the clip is active.
    assert gradient == pytest.approx([0, 3.0, -1.0, 0, -3.0], rel=1e-15)


def test_it_is_the_negated_clipped_surrogate_of_the_ratio(device):
    new = torch.linspace(-2, 2, 401, dtype=torch.float64, device=device).repeat(3)
    A = torch.tensor([-1.5, 0.0, 2.5], dtype=torch.float64, device=device).repeat_interleave(401)
    old = torch.zeros_like(new)
    expected = -clipped_surrogate(ratio(new, old), A, epsilon=0.2)
    assert torch.equal(policy_loss(new, old, A, epsilon=0.2), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", [79.0, 80.0, 81.0, 88.0, 89.0, 1000.0, math.inf])
def test_past_the_ceiling_the_gradient_is_zero_however_far(far, dtype, device):
    assert loss_and_gradient([far], [0.0], [2.0], device, dtype) == ([-2.5], [0])
    assert loss_and_gradient([far], [0.0], [0.0], device, dtype) == ([0], [0])


def test_a_bad_token_that_overflows_has_an_infinite_loss(device):
    assert loss_and_gradient([1000.0], [0.0], [-2.0], device) == ([math.inf], [math.inf])
    # Short of that it is the formula, past 80 as before it.
    loss, gradient = loss_and_gradient([85.0], [0.0], [-2.0], device)
    assert loss == gradient == pytest.approx([2 * math.exp(85)], rel=1e-14)


def test_a_token_that_became_impossible(device):
    assert loss_and_gradient([-1000.0, -1000.0], [0.0, 0.0], [2.0, -2.0], device) == ([0, 1.5], [0, 0])


def test_under_the_mask_even_a_bad_token_may_overflow(device):
    mask = torch.tensor([True, False], device=device)
    assert loss_and_gradient([0.0, 1000.0], [0.0, 0.0], [-2.0, -2.0], device, mask=mask) == ([2, 0], [2, 0])
