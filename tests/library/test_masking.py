import pytest
import torch

from ppo_core import masked_mean, masked_sum

MASK = [[True, False], [False, True]]


def test_by_hand(device):
    x = torch.tensor([[1.0, 2.0], [4.0, 8.0]], device=device, requires_grad=True)
    mask = torch.tensor(MASK, device=device)
    assert masked_sum(x, mask).item() == 9
    assert masked_mean(x, mask).item() == 4.5
    (gradient,) = torch.autograd.grad(masked_sum(x, mask), x)
    assert gradient.tolist() == [[1, 0], [0, 1]]
    (gradient,) = torch.autograd.grad(masked_mean(x, mask), x)
    assert gradient.tolist() == [[0.5, 0], [0, 0.5]]


@pytest.mark.parametrize("function", [masked_sum, masked_mean])
@pytest.mark.parametrize("under", [2.0, float("nan"), float("inf")])
def test_an_empty_mask_gives_zero_and_no_gradient(function, under, device):
    x = torch.full((2, 3), under, device=device, requires_grad=True)
    result = function(x, torch.zeros(2, 3, dtype=torch.bool, device=device))
    assert result.item() == 0
    result.backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("function", [masked_sum, masked_mean])
def test_nothing_at_all_gives_zero(function, device):
    nothing = torch.zeros(0, device=device)
    assert function(nothing, nothing.bool()).item() == 0


def test_long_half_precision_sums_do_not_stall(device):
    # In float16 the sum of ones would stall at 2048, and overflow past 65504.
    x = torch.ones(70000, dtype=torch.float16, device=device)
    assert masked_sum(x, x > 0).item() == 70000
    assert masked_mean(x, x > 0).item() == 1
