import math

import pytest
import torch

from ppo_core import clipped_value_loss, value_loss


def loss_and_gradient(function, values, *others, device, **arguments):
    values = torch.tensor(values, dtype=torch.float64, device=device, requires_grad=True)
    others = [torch.tensor(x, dtype=torch.float64, device=device) for x in others]
    loss = function(values, *others, **arguments)
    (gradient,) = torch.autograd.grad(loss.sum(), values)
    return loss.tolist(), gradient.tolist()


def test_half_the_square_by_hand(device):
    found = loss_and_gradient(value_loss, [0.0, 3.0, 5.0], [2.0, 3.0, -1.0], factor=0.5, device=device)
    assert found == ([2, 0, 18], [-2, 0, 6])


def test_the_whole_square_by_hand(device):
    found = loss_and_gradient(value_loss, [0.0, 3.0, 5.0], [2.0, 3.0, -1.0], factor=1, device=device)
    assert found == ([4, 0, 36], [-4, 0, 12])


def test_the_half_or_the_whole_is_no_default():
    # Peers differ by this factor with the same coefficient; it cannot be left to them or to us.
    one = torch.ones(1)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'factor'"):
        value_loss(one, one)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'factor'"):
        clipped_value_loss(one, one, one, epsilon=0.2)


def test_the_clipped_loss_without_the_half_by_hand(device):
    found = loss_and_gradient(
        clipped_value_loss, [0.25, 1.5, 3.75], [0.0] * 3, [2.0] * 3, epsilon=0.5, factor=1, device=device
    )
    # (7/4)^2; clipped to 1/2: (3/2)^2; plain 7/4 beats clipped 3/2.
    assert found == ([49 / 16, 9 / 4, 49 / 16], [-7 / 2, 0, 7 / 2])


def test_the_clipped_loss_by_hand(device):
    # Old value 0, band from -1/2 to 1/2. Towards 2: inside the band, past it, and past the return itself.
    found = loss_and_gradient(
        clipped_value_loss, [0.25, 1.5, 3.75], [0.0] * 3, [2.0] * 3, epsilon=0.5, factor=0.5, device=device
    )
    # (7/4)^2 / 2; clipped to 1/2: (3/2)^2 / 2; plain 7/4 beats clipped 3/2.
    assert found == ([49 / 32, 9 / 8, 49 / 32], [-7 / 4, 0, 7 / 4])


def test_a_value_that_moved_away_is_pulled_back_in_full(device):
    found = loss_and_gradient(
        clipped_value_loss, [-3.0], [0.0], [2.0], epsilon=0.5, factor=0.5, device=device
    )
    assert found == ([12.5], [-5])


def test_the_mirror_image(device):
    found = loss_and_gradient(
        clipped_value_loss, [-0.25, -1.5, 3.0], [0.0] * 3, [-2.0] * 3, epsilon=0.5, factor=0.5, device=device
    )
    assert found == ([49 / 32, 9 / 8, 12.5], [7 / 4, 0, 5])


def test_the_band_lies_around_the_old_value(device):
    # Old value 10, band from 9 to 11, return 20: 10.5 is inside, 12 counts as 11.
    found = loss_and_gradient(
        clipped_value_loss, [10.5, 12.0], [10.0] * 2, [20.0] * 2, epsilon=1, factor=0.5, device=device
    )
    assert found == ([9.5**2 / 2, 40.5], [-9.5, 0])


def test_where_both_errors_are_equal_the_slope_is_the_plain_one(device):
    # Value 2, clipped to 1, return 1.5: both are half a unit off. And value and return on the edge of the
    # band.
    found = loss_and_gradient(
        clipped_value_loss, [2.0, 1.0], [0.0] * 2, [1.5, 3.0], epsilon=1, factor=0.5, device=device
    )
    assert found == ([0.125, 2], [0.5, -2])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_fault_in_any_input_surfaces(bad, device):
    for place in range(3):
        arguments = [1.0, 0.5, 2.0]
        arguments[place] = bad
        tensors = [torch.tensor(x, dtype=torch.float64, device=device) for x in arguments]
        found = clipped_value_loss(*tensors, epsilon=0.2, factor=1)
        assert not found.isfinite() or (place, bad) == (1, math.inf), place
