"""Advantages of the answers of a group. Expected values are worked out by hand."""

import math

import pytest
import torch

from ppo_core import group_centred, group_relative, leave_one_out

ALL = {
    "group_relative": lambda scores: group_relative(scores, eps=1e-12),
    "group_centred": group_centred,
    "leave_one_out": leave_one_out,
}
EACH = pytest.mark.parametrize("call", ALL.values(), ids=ALL)


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def test_a_group_by_hand(device):
    # Mean 2, squares 1 + 0 + 1 over 2: standard deviation 1, plus an eps of 1.
    scores = tensor([[1.0, 2.0, 3.0], [30.0, 10.0, 20.0]], device)
    found = group_relative(scores, eps=1.0)
    assert found.tolist() == [[-0.5, 0, 0.5], [10 / 11, -10 / 11, 0]]
    # 1 - 2, 2 - 2, 3 - 2; 30 - 20 and so on.
    assert group_centred(scores).tolist() == [[-1, 0, 1], [10, -10, 0]]
    # 1 - 5/2, 2 - 4/2, 3 - 3/2 and so on: each against the mean of the other two.
    assert leave_one_out(scores).tolist() == [[-1.5, 0, 1.5], [15, -15, 0]]


def test_a_group_of_two_by_hand(device):
    # Mean 1, squares 1 + 1, divided by 1: standard deviation sqrt 2.
    scores = tensor([2.0, 0.0], device)
    found = group_relative(scores, eps=1e-12).tolist()
    assert found == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)], rel=1e-11)
    assert group_centred(scores).tolist() == [1, -1]
    assert leave_one_out(scores).tolist() == [2, -2]


def test_one_right_answer_among_eight(device):
    # Seven wrong: mean 1/8, squares (7/8)^2 + 7 (1/8)^2 = 7/8, over 7 the variance is 1/8. Divided by the
    # deviation the rare right answer weighs 7/8 sqrt 8 = 2.47, and 0.875 without.
    scores = tensor([1.0] + [0.0] * 7, device)
    assert group_centred(scores).tolist() == [0.875] + [-0.125] * 7
    expected = [0.875 * math.sqrt(8)] + [-0.125 * math.sqrt(8)] * 7
    assert group_relative(scores, eps=1e-12).tolist() == pytest.approx(expected, rel=1e-11)
    # 1 - 0; 0 - 1/7.
    assert leave_one_out(scores).tolist() == pytest.approx([1] + [-1 / 7] * 7, rel=1e-15)


@EACH
@pytest.mark.parametrize("value", [0.1, -7.7, 10000.1, 1e-30])
@pytest.mark.parametrize("size", [2, 3, 7, 64])
def test_equal_scores_teach_nothing(call, value, size, device):
    # Seven times 0.1 in float32 add up to 0.70000005, and the mean is not 0.1: what is left of it must not be
    # divided by itself.
    found = call(torch.full((size,), value, device=device))
    assert found.abs().max() <= (0 if device == "cpu" else 1e-6)


@EACH
def test_advantages_of_a_group_add_up_to_nothing(call, device):
    generator = torch.Generator().manual_seed(0)
    scores = 100 + torch.randn(6, 5, dtype=torch.float64, generator=generator).to(device)
    assert call(scores).sum(-1).abs().max() < 1e-12


@EACH
def test_a_shift_of_all_scores_changes_nothing(call, device):
    scores = tensor([1.0, 0.0, 3.0, 4.0], device)
    torch.testing.assert_close(call(scores + 1024), call(scores), rtol=1e-14, atol=0)


@EACH
def test_small_differences_of_large_scores_survive(call, device):
    # In float32, around 1000: the mean comes off before anything is squared.
    large, small = (
        tensor([1000.25, 999.75, 1000.5], device, torch.float32),
        tensor([0.25, -0.25, 0.5], device),
    )
    torch.testing.assert_close(call(large), call(small).float(), rtol=3e-7, atol=0)


def test_what_the_three_have_in_common(device):
    # Over the deviation, or times G / (G - 1).
    scores = tensor([3.0, -1.0, 4.0, 1.0, -5.0], device)
    centred = group_centred(scores)
    assert leave_one_out(scores).tolist() == pytest.approx((centred * 5 / 4).tolist(), rel=1e-15)
    expected = (centred / scores.std()).tolist()
    assert group_relative(scores, eps=1e-14).tolist() == pytest.approx(expected, rel=1e-13)


@EACH
@pytest.mark.parametrize(("shape", "shown"), [((3, 1), "[3, 1]"), ((2, 0), "[2, 0]"), ((), "[]")])
def test_a_group_of_one_is_refused(call, shape, shown):
    with pytest.raises(ValueError) as raised:
        call(torch.zeros(shape))
    assert str(raised.value) == (
        f"scores must have a last dimension of at least 2, the answers of a group, got {shown}; one answer "
        "alone has nothing to be compared with"
    )


@EACH
def test_whole_numbers_are_refused(call):
    with pytest.raises(TypeError) as raised:
        call(torch.tensor([1, 0]))
    assert (
        str(raised.value) == "scores must be a floating-point tensor, got torch.int64; write scores.float()"
    )


@pytest.mark.parametrize("eps", [0, -1e-8, math.inf, math.nan])
def test_an_eps_that_keeps_nothing_above_zero_is_refused(eps):
    with pytest.raises(ValueError) as raised:
        group_relative(torch.zeros(2), eps=eps)
    assert str(raised.value) == f"eps must be finite and above 0, got {eps}"
