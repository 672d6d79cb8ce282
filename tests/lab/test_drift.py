import math

import pytest
import torch

from lab import ratio_after_steps, repeated_steps


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def test_one_step_by_hand():
    # At the old policy the slope is p_a (A_a - mean): mean 0, so 1/2 and -1/2 with these advantages.
    found = repeated_steps(tensor([0.0, 0.0]), tensor([1.0, -1.0]), epsilon=0.2, lr=math.log(3), steps=1)
    assert found.tolist() == pytest.approx([0.75, 0.25], rel=1e-14)
    found = ratio_after_steps(tensor([0.0, 0.0]), tensor([1.0, -1.0]), epsilon=0.2, lr=math.log(3), steps=1)
    assert found.tolist() == pytest.approx([1.5, 0.5], rel=1e-14)


def test_the_first_step_does_not_see_the_band():
    arguments = tensor([0.3, -0.2, 0.1]), tensor([1.0, -2.0, 0.5])
    found = [repeated_steps(*arguments, epsilon=e, lr=0.1, steps=1) for e in (1e-9, 0.5)]
    assert torch.equal(*found)


def test_two_tokens_past_the_band_stand_still():
    # After the first step both ratios are outside, on the improving sides: no slope is left.
    arguments = tensor([0.0, 0.0]), tensor([1.0, -1.0])
    once, often = (repeated_steps(*arguments, epsilon=0.2, lr=math.log(3), steps=n) for n in (1, 10))
    assert torch.equal(once, often)


def test_a_clipped_token_is_carried_on_by_the_others():
    # The rare good token is past its ceiling after a step; the bad one still falls and its share goes
    # elsewhere.
    logits, advantages = tensor([0.9, 0.05, 0.05]).log(), tensor([-1.0, 1.0, 0.0])
    ratios = [
        ratio_after_steps(logits, advantages, epsilon=0.2, lr=1.0, steps=n).tolist() for n in range(1, 8)
    ]
    good = [row[1] for row in ratios]
    assert 1.2 < good[0] < 2
    assert good == sorted(good) and good[-1] > 3
    # Even a token with the advantage 0, which has no term of its own, is carried along.
    assert ratios[-1][2] > 2
    # In the end the bad one is below its floor, and everything stands still.
    late = [ratio_after_steps(logits, advantages, epsilon=0.2, lr=1.0, steps=n).tolist() for n in (50, 51)]
    assert late[0] == late[1] and late[0][0] < 0.8


def test_small_steps_stop_near_the_band():
    # Two tokens leave the band together, and by no more than one small step.
    arguments = tensor([0.0, 0.0]), tensor([1.0, -1.0])
    found = ratio_after_steps(*arguments, epsilon=0.2, lr=0.001, steps=1000).tolist()
    assert found == pytest.approx([1.2, 0.8], abs=0.001)
    assert found[0] > 1.2 and found[1] < 0.8


TWO = torch.zeros(2)


@pytest.mark.parametrize("call", [repeated_steps, ratio_after_steps])
@pytest.mark.parametrize(
    ("logits", "change", "text"),
    [
        (TWO[:1], {}, "logits must have the shape [n] with n at least 2, got [1]"),
        (TWO[None], {}, "logits must have the shape [n] with n at least 2, got [1, 2]"),
        (TWO, {"lr": 0}, "lr must be finite and above 0, got 0"),
        (TWO, {"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        (TWO, {"steps": 2.5}, "steps must be a whole number of at least 1, got 2.5"),
        (TWO, {"steps": math.inf}, "steps must be a whole number of at least 1, got inf"),
        (TWO, {"epsilon": 1}, "epsilon must lie strictly between 0 and 1, got 1; at 1 or more no ratio is below "
         "the floor 1 - epsilon, at 0 or less there is no band; 0.2 is usual"),
    ],
)  # fmt: skip
def test_text_of_errors(call, logits, change, text):
    with pytest.raises(ValueError) as raised:
        call(logits, torch.ones_like(logits), **{"epsilon": 0.2, "lr": 1.0, "steps": 1, **change})
    assert str(raised.value) == text
