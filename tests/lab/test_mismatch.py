import math

import pytest
import torch

from lab import precision_ratio, temperature_ratio


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def test_rounding_by_hand():
    # bfloat16 has 1/8 as its step at 20: 20.0625 lies in the middle and goes to the even 20.
    # 20.05 goes to 20: both are 20, an even policy, and the exact one is 1 / (1 + e^-0.05).
    found = precision_ratio(tensor([20.05, 20.0])).tolist()
    first = 1 / (1 + math.exp(-0.05))
    assert found == pytest.approx([2 * first, 2 * (1 - first)], rel=1e-13)
    # 20.07 goes to 20.125.
    found = precision_ratio(tensor([20.07, 20.0])).tolist()
    expected = (1 + math.exp(-0.125)) / (1 + math.exp(-0.07))
    assert found[0] == pytest.approx(expected, rel=1e-13)


def test_logits_that_bfloat16_holds_make_no_mismatch():
    assert precision_ratio(tensor([1.5, -0.25, 96.0, 0.0])).tolist() == pytest.approx([1] * 4, rel=1e-15)
    assert precision_ratio(torch.tensor([1.3, 2.7], dtype=torch.bfloat16)).tolist() == [1, 1]


def test_temperature_by_hand():
    # Odds 3 to 1, at half the temperature 9 to 1.
    found = temperature_ratio(tensor([math.log(3), 0.0]), temperature=0.5).tolist()
    assert found == pytest.approx([0.75 / 0.9, 0.25 / 0.1], rel=1e-13)
    assert temperature_ratio(tensor([math.log(3), 0.0]), temperature=1).tolist() == [1, 1]


def test_the_ratio_is_the_weight_that_corrects():
    # An average over the sampler, weighted by the ratio, is the average over the trainer.
    logits, scores = tensor([0.3, -1.2, 2.0]), tensor([1.0, 5.0, -2.0])
    for temperature in (0.5, 2.0):
        sampler = torch.softmax(logits / temperature, -1)
        weights = temperature_ratio(logits, temperature=temperature)
        expected = (torch.softmax(logits, -1) * scores).sum()
        torch.testing.assert_close((sampler * weights * scores).sum(), expected, rtol=1e-13, atol=0)
        assert ((sampler * scores).sum() - expected).abs() > 0.1


@pytest.mark.parametrize(
    "call", [precision_ratio, lambda logits: temperature_ratio(logits, temperature=2.0)], ids=["p", "t"]
)
@pytest.mark.parametrize("shape", [(), (1,), (1, 2), (0,)])
def test_text_of_errors(call, shape):
    with pytest.raises(ValueError) as raised:
        call(torch.zeros(shape))
    assert str(raised.value) == f"logits must have the shape [n] with n at least 2, got {list(shape)}"


def test_text_of_errors_of_the_temperature():
    for bad in (0, -1.0, math.inf):
        with pytest.raises(ValueError) as raised:
            temperature_ratio(torch.zeros(2), temperature=bad)
        assert str(raised.value) == f"temperature must be finite and above 0, got {bad}"
