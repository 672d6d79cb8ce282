import math

import pytest
import torch

from ppo_core import log_ratio, ratio


def test_by_hand(device):
    # 0.8 is 1.6 times 0.5; 0.25 is half of 0.5.
    new = torch.tensor([0.8, 0.25], dtype=torch.float64, device=device).log()
    old = torch.tensor([0.5, 0.5], dtype=torch.float64, device=device).log()
    assert ratio(new, old).tolist() == pytest.approx([1.6, 0.5], rel=1e-15)
    assert log_ratio(new, old).tolist() == pytest.approx(
        [0.47000362924573563, -0.6931471805599453], rel=1e-15
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_the_same_weights_give_exactly_one(dtype, device):
    logprobs = torch.linspace(-30, 0, 101, dtype=dtype, device=device)
    assert (ratio(logprobs, logprobs) == 1).all()
    assert (log_ratio(logprobs, logprobs) == 0).all()


def test_gradients_are_one_and_the_ratio(device):
    new = torch.tensor([0.8, 0.25], dtype=torch.float64, device=device).log().requires_grad_()
    old = torch.tensor([0.5, 0.5], dtype=torch.float64, device=device).log()
    (slope,) = torch.autograd.grad(log_ratio(new, old).sum(), new)
    assert slope.tolist() == [1, 1]
    (slope,) = torch.autograd.grad(ratio(new, old).sum(), new)
    assert slope.tolist() == pytest.approx([1.6, 0.5], rel=1e-15)


def test_it_overflows_where_the_docstring_says(device):
    # The largest float32 is about e^88.72.
    new = torch.tensor([88.7, 88.8], device=device)
    finite, infinite = ratio(new, torch.zeros_like(new)).tolist()
    assert math.isfinite(finite) and infinite == math.inf


def test_half_precision_inputs_keep_the_digits_of_the_ratio(device):
    # 0.0625 is exact in bfloat16; its exponential, 1.0644944589, is not: bfloat16 would give 1.0625.
    new, old = (torch.tensor([x], dtype=torch.bfloat16, device=device) for x in (-1.0, -1.0625))
    assert ratio(new, old).item() == pytest.approx(1.0644944589, rel=1e-6)
