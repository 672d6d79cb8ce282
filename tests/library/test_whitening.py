"""Whitening and REINFORCE++. Expected values are worked out by hand or in exact fractions."""

import math
import random
from fractions import Fraction

import mpmath
import pytest
import torch

from ppo_core import reinforce_plus_plus, whiten

from .packed import packed, packed_ids, padded


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


# --- whiten


def test_whitening_by_hand(device):
    x, mask = tensor([[1.0, 99.0], [2.0, 3.0]], device), bools([[True, False], [True, True]], device)
    # Mean 2, squares 1 + 0 + 1: over 2 the deviation is 1, over 3 it is sqrt(2/3).
    assert whiten(x, mask, ddof=1, eps=1.0).tolist() == [[-0.5, 0], [0, 0.5]]
    found = whiten(x, mask, ddof=0, eps=1e-12).flatten().tolist()
    assert found == pytest.approx([-math.sqrt(1.5), 0, 0, math.sqrt(1.5)], rel=1e-11)


def test_whitening_two_elements_tells_the_divisors_apart(device):
    x, mask = tensor([3.0, 5.0], device), bools([True, True], device)
    assert whiten(x, mask, ddof=0, eps=1e-12).tolist() == pytest.approx([-1, 1], rel=1e-11)
    root = math.sqrt(0.5)
    assert whiten(x, mask, ddof=1, eps=1e-12).tolist() == pytest.approx([-root, root], rel=1e-11)


def test_eps_is_added_to_the_deviation(device):
    # Mean 1 + 5e-6, deviation 5e-6 sqrt 2 = 7.07e-6 with ddof 1. Over 1e-6 more: 5 / 8.07 = 0.6195; over 1e-4
    # more: 5 / 107.07 = 0.0467. An eps inside the root would give other numbers.
    x, mask = tensor([1.0, 1.00001], device), bools([True, True], device)
    assert whiten(x, mask, ddof=1, eps=1e-6).tolist() == pytest.approx([-0.6195, 0.6195], abs=5e-5)
    assert whiten(x, mask, ddof=1, eps=1e-4).tolist() == pytest.approx([-0.0467, 0.0467], abs=5e-5)


# --- few elements


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("eps", [1e-8, 1.0])
def test_whitening_one_element_gives_zero(ddof, eps, device):
    x, mask = tensor([7.0, 99.0], device), bools([True, False], device)
    assert whiten(x, mask, ddof=ddof, eps=eps).tolist() == [0, 0]
    assert whiten(x[:1], mask[:1], ddof=ddof, eps=eps).tolist() == [0]


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("under", [7.0, math.nan, math.inf])
def test_whitening_nothing_gives_zero(ddof, under, device):
    x, mask = tensor([under, 99.0], device), bools([False, False], device)
    assert whiten(x, mask, ddof=ddof, eps=1e-8).tolist() == [0, 0]
    assert whiten(x[:0], mask[:0], ddof=ddof, eps=1e-8).tolist() == []


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("value", [0.1, -7.7, 10000.1, 1e-3])
@pytest.mark.parametrize("size", [3, 7, 1000])
def test_whitening_equal_elements_gives_zero(ddof, value, size, device):
    # The mean of seven times 0.1 is not 0.1 in float32, but 7e-9 off. With an eps of 1e-8 that would come out
    # as 0.43, and -7.7 as -0.98: an advantage where there is none.
    x = torch.full((size + 1,), value, device=device)
    mask = torch.arange(size + 1, device=device) != 2
    assert whiten(x, mask, ddof=ddof, eps=1e-8).tolist() == [0] * (size + 1)


# --- digits


def exactly_whitened(x, ddof):
    """Whiten plain floats without an eps, in fractions, with a square root of 30 digits."""
    x = [Fraction(element) for element in x]
    mean = sum(x) / len(x)
    variance = sum((element - mean) ** 2 for element in x) / (len(x) - ddof)
    with mpmath.workdps(30):
        root = mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator)
        return [
            float(mpmath.mpf(e.numerator) / e.denominator / root) for e in (element - mean for element in x)
        ]


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_a_spread_far_below_the_mean_keeps_its_digits(ddof, seed, device):
    # Mean 1e4 and spread 1e-2 in float32, whose steps there are 1e-3. In one pass the squares, about 1e8, have
    # steps of 8: nothing of the variance, 1e-4, is left. In two passes the mean is rounded by up to 5e-4, which
    # puts every element off by up to 0.07; corrected once, the result is right to the last digits.
    rng = random.Random(seed)
    x = torch.tensor([rng.gauss(1e4, 1e-2) for _ in range(100)], dtype=torch.float32, device=device)
    mask = torch.arange(100, device=device) % 5 != 3

    found = whiten(x, mask, ddof=ddof, eps=1e-30)

    expected = torch.tensor(exactly_whitened(x[mask].tolist(), ddof), dtype=torch.float64, device=device)
    torch.testing.assert_close(found[mask].double(), expected, rtol=1e-6, atol=1e-6)
    assert (found[~mask] == 0).all()


def test_a_small_spread_around_a_large_mean_by_hand(device):
    x = tensor([4096.0, 4096.5, 4097.0], device, torch.float32)
    found = whiten(x, torch.ones_like(x).bool(), ddof=1, eps=1e-12).tolist()
    assert found == pytest.approx([-1, 0, 1], abs=1e-6)


@pytest.mark.parametrize("ddof", [0, 1])
def test_the_result_has_mean_zero_and_deviation_one(ddof, device):
    generator = torch.Generator().manual_seed(0)
    x = 3 + 5 * torch.randn(6, 7, dtype=torch.float64, generator=generator).to(device)
    mask = (torch.rand(6, 7, generator=generator) < 0.6).to(device)
    counted = whiten(x, mask, ddof=ddof, eps=1e-14)[mask]
    assert abs(counted.mean().item()) < 1e-14
    assert counted.std(correction=ddof).item() == pytest.approx(1, rel=1e-12)


def test_shift_and_scale_change_nothing(device):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(20, dtype=torch.float64, generator=generator).to(device)
    mask = torch.ones_like(x).bool()
    expected = whiten(x, mask, ddof=1, eps=1e-14)
    torch.testing.assert_close(whiten(4 * x - 32, mask, ddof=1, eps=1e-14), expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(whiten(-x, mask, ddof=1, eps=1e-14), -expected, rtol=0, atol=0)


# --- REINFORCE++


def test_reinforce_plus_plus_by_hand(device):
    # gamma 1/2. Returns 2 + 4/2 = 4 and 4; 1. Mean 3, squares 1 + 1 + 4 = 6: over 3 the deviation is sqrt 2,
    # over 2 it is sqrt 3. The hole is no step and gets nothing.
    rewards, mask = (
        tensor([[2.0, 0.0, 4.0], [1.0, 0.0, 0.0]], device),
        [[True, False, True], [True, False, False]],
    )
    mask = bools(mask, device)
    found = reinforce_plus_plus(rewards, mask, gamma=0.5, ddof=0, eps=1e-14).flatten().tolist()
    one = 1 / math.sqrt(2)
    assert found == pytest.approx([one, 0, one, -2 * one, 0, 0], rel=1e-13)
    found = reinforce_plus_plus(rewards, mask, gamma=0.5, ddof=1, eps=1e-14).flatten().tolist()
    one = 1 / math.sqrt(3)
    assert found == pytest.approx([one, 0, one, -2 * one, 0, 0], rel=1e-13)
    # Over sqrt 2 and an eps of sqrt 2 it is half of the first.
    found = reinforce_plus_plus(rewards, mask, gamma=0.5, ddof=0, eps=math.sqrt(2)).flatten().tolist()
    half = 1 / math.sqrt(8)
    assert found == pytest.approx([half, 0, half, -2 * half, 0, 0], rel=1e-13)


def test_reinforce_plus_plus_of_a_packed_row_by_hand(device):
    # The same two answers in one row, with a token of padding.
    rewards = tensor([[2.0, 0.0, 4.0, 1.0, 0.0]], device)
    mask, ids = (
        bools([[True, False, True, True, False]], device),
        torch.tensor([[0, 0, 0, 1, 2]], device=device),
    )
    found = (
        reinforce_plus_plus(rewards, mask, gamma=0.5, ddof=0, eps=1e-14, sequence_ids=ids).flatten().tolist()
    )
    one = 1 / math.sqrt(2)
    assert found == pytest.approx([one, 0, one, -2 * one, 0], rel=1e-13)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_packed_equals_padded(seed, ddof, device):
    batch = padded(("rewards",), seed, device)
    mask = batch["mask"]
    rewards = torch.where(mask, batch["rewards"], torch.nan)
    numbers = {"gamma": 0.9, "ddof": ddof, "eps": 1e-8}
    found = reinforce_plus_plus(packed(rewards), packed(mask), **numbers, sequence_ids=packed_ids(device))
    # Equal but for the order of the sums.
    expected = packed(reinforce_plus_plus(rewards, mask, **numbers)).nan_to_num()
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-15)


def test_answers_that_are_all_alike_teach_nothing(device):
    rewards, mask = tensor([[0.0, 1.0], [0.0, 1.0]], device), bools([[True, True], [True, True]], device)
    found = reinforce_plus_plus(rewards, mask, gamma=1.0, ddof=1, eps=1e-8)
    assert found.tolist() == [[0, 0], [0, 0]]


def test_a_lost_reward_makes_the_batch_nan_in_a_compiled_graph(device):
    rewards, mask = tensor([[1.0, 2.0], [0.0, 3.0]], device), bools([[True, True], [True, False]], device)

    def call(rewards, mask):
        return reinforce_plus_plus(rewards, mask, gamma=1.0, ddof=1, eps=1e-8)

    found = torch.compile(call, fullgraph=True, backend="aot_eager")(rewards, mask)
    assert found.isnan().tolist() == [[True, True], [True, False]]
    if device == "cpu":
        with pytest.raises(ValueError, match=r"got 3 at index \[1, 1\], which would be lost"):
            call(rewards, mask)


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ddof": 2}, ValueError, "ddof must be 0 (divide by the count) or 1 (divide by the count less one), got 2"),
        ({"ddof": True}, TypeError, "ddof must be a plain number, got bool; write a float or an int"),
        ({"eps": 0.0}, ValueError, "eps must be finite and above 0, got 0.0"),
        ({"eps": math.nan}, ValueError, "eps must be finite and above 0, got nan"),
        ({"mask": torch.ones(2)}, TypeError, "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
    ],
)  # fmt: skip
def test_what_does_not_fit(arguments, error, message):
    arguments = {"mask": torch.ones(2).bool(), "ddof": 1, "eps": 1e-8, **arguments}
    for call in (whiten, lambda x, **more: reinforce_plus_plus(x, gamma=1.0, **more)):
        with pytest.raises(error) as raised:
            call(torch.ones(2), **arguments)
        assert str(raised.value) == message


def test_shapes_that_differ():
    text = "must have the same shape, got [2] and [2, 1]; nothing is broadcast: expand or index one of them first"
    mask = torch.ones(2, 1).bool()
    with pytest.raises(ValueError) as raised:
        whiten(torch.ones(2), mask, ddof=1, eps=1e-8)
    assert str(raised.value) == f"x and mask {text}"
    with pytest.raises(ValueError) as raised:
        reinforce_plus_plus(torch.ones(2), mask, gamma=1.0, ddof=1, eps=1e-8)
    assert str(raised.value) == f"rewards and mask {text}"


def test_a_discount_is_a_fraction():
    with pytest.raises(ValueError, match=r"^gamma must lie between 0 and 1, got 1.1$"):
        reinforce_plus_plus(torch.ones(2), torch.ones(2).bool(), gamma=1.1, ddof=1, eps=1e-8)
