import math

import pytest
import torch

from ppo_core import discounted_returns, gae, group_relative, leave_one_out, whiten


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


# --- gae


def advantages(rewards, values, device, mask=None, **arguments):
    rewards = tensor(rewards, device)
    mask = torch.ones_like(rewards).bool() if mask is None else bools(mask, device)
    return gae(rewards, tensor(values, device), mask, **arguments).tolist()


def test_gae_by_hand(device):
    # gamma 1/2, lambda 1/2. Deltas 0 + 2/2 - 4 = -3, 8 + 6/2 - 2 = 9, 16 - 6 = 10.
    # Advantages 10, 9 + 10/4 = 11.5, -3 + 11.5/4 = -0.125.
    found = advantages([0.0, 8.0, 16.0], [4.0, 2.0, 6.0], device, gamma=0.5, lam=0.5)
    assert found == [-0.125, 11.5, 10.0]


def test_gae_of_an_answer_that_was_cut_off_by_hand(device):
    # The last delta is 16 + 20/2 - 6 = 20: then 20, 9 + 20/4 = 14, -3 + 14/4 = 0.5.
    cut = tensor(20.0, device)
    found = advantages([0.0, 8.0, 16.0], [4.0, 2.0, 6.0], device, gamma=0.5, lam=0.5, bootstrap=cut)
    assert found == [0.5, 14.0, 20.0]


def test_a_hole_is_no_time_step(device):
    # The same three tokens with holes before, between and behind.
    mask = [False, True, False, False, True, True, False]
    rewards, values = [0.0, 0.0, 0.0, 0.0, 8.0, 16.0, 0.0], [9.0, 4.0, 9.0, 9.0, 2.0, 6.0, 9.0]
    found = advantages(rewards, values, device, mask, gamma=0.5, lam=0.5)
    assert found == [0, -0.125, 0, 0, 11.5, 10.0, 0]
    cut = tensor(20.0, device)
    found = advantages(rewards, values, device, mask, gamma=0.5, lam=0.5, bootstrap=cut)
    assert found == [0, 0.5, 0, 0, 14.0, 20.0, 0]


def test_with_lambda_one_the_critic_is_a_baseline_alone(device):
    # 7 - V(s_t) whatever comes after.
    assert advantages([0.0, 0.0, 7.0], [1.0, -100.0, 1e6], device, gamma=1.0, lam=1.0) == [6, 107, 7 - 1e6]


def test_with_lambda_zero_only_the_next_value_counts(device):
    found = advantages([1.0, 2.0, 4.0], [8.0, 16.0, 32.0], device, gamma=0.5, lam=0.0)
    assert found == [1 + 8 - 8, 2 + 16 - 16, 4 - 32]


def test_the_impulse_response_of_gae(device):
    # One surprise of 1 at the last token, no critic: what reaches the token l steps before is (gamma
    # lambda)^l.
    found = advantages([0.0] * 4 + [1.0], [0.0] * 5, device, gamma=0.9, lam=0.5)
    assert found == pytest.approx([0.45**4, 0.45**3, 0.45**2, 0.45, 1.0], rel=1e-15)


def test_every_answer_has_its_own_end(device):
    rewards, values = [[1.0, 0.0], [0.0, 2.0]], [[0.5, 0.0], [1.0, 1.0]]
    mask = [[True, False], [True, True]]
    assert advantages(rewards, values, device, mask, gamma=1.0, lam=1.0) == [[0.5, 0], [1, 1]]
    cut = tensor([3.0, 0.0], device)
    found = advantages(rewards, values, device, mask, gamma=1.0, lam=1.0, bootstrap=cut)
    assert found == [[3.5, 0], [1, 1]]


def test_an_answer_without_a_token_has_no_advantages(device):
    found = advantages([[0.0, 0.0]], [[9.0, 9.0]], device, [[False, False]], gamma=1.0, lam=1.0)
    assert found == [[0, 0]]


def test_half_a_bootstrap_is_wide_too(device):
    rewards, values = tensor([1.0], device, torch.bfloat16), tensor([0.5], device, torch.bfloat16)
    cut = tensor(0.25, device, torch.bfloat16)
    found = gae(rewards, values, bools([True], device), gamma=0.1, lam=1.0, bootstrap=cut)
    assert found.dtype == torch.float32
    # 1 + 0.025 - 0.5; in bfloat16 it would be 0.5234.
    assert found.item() == pytest.approx(0.525, abs=1e-7)


# --- a reward where it would be lost

LOST = ([[1.0, 2.0], [0.0, 3.0]], [[True, True], [True, False]])
TEXT = (
    "rewards must be 0 on uncounted tokens, got 3 at index [1, 1], which would be lost; move it to a counted "
    "token or count that one"
)
CALLS = {
    "gae": lambda rewards, mask: gae(rewards, torch.zeros_like(rewards), mask, gamma=1.0, lam=1.0),
    "discounted_returns": lambda rewards, mask: discounted_returns(rewards, mask, gamma=1.0),
}
EACH_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@EACH_CALL
def test_a_lost_reward_is_an_error_where_looking_is_free(call, device):
    arguments = tensor(LOST[0], device), bools(LOST[1], device)
    if device == "cpu":
        with pytest.raises(ValueError) as raised:
            call(*arguments)
        assert str(raised.value) == TEXT
    else:
        assert call(*arguments).isnan().tolist() == [[False, False], [True, True]]


@EACH_CALL
def test_a_lost_reward_makes_the_answer_nan_in_a_compiled_graph(call, device):
    arguments = tensor(LOST[0], device), bools(LOST[1], device)
    result = torch.compile(call, fullgraph=True, backend="aot_eager")(*arguments)
    assert result.isnan().tolist() == [[False, False], [True, True]]
    assert result[0].tolist() == [3, 2]


@EACH_CALL
def test_the_index_of_a_lost_reward_in_one_answer(call):
    with pytest.raises(ValueError, match=r"got -0.25 at index \[0\], which"):
        call(torch.tensor([-0.25, 1.0]), torch.tensor([False, True]))


@EACH_CALL
def test_the_first_of_several_lost_rewards_is_named(call):
    with pytest.raises(ValueError, match=r"got 2 at index \[1\], which"):
        call(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, False]))


# --- discounted returns


def test_returns_by_hand(device):
    # 4; a hole; 2 + 4/2 = 4; 1 + 4/2 = 3.
    rewards, mask = tensor([1.0, 2.0, 0.0, 4.0], device), bools([True, True, False, True], device)
    assert discounted_returns(rewards, mask, gamma=0.5).tolist() == [3, 4, 0, 4]
    assert discounted_returns(rewards, mask, gamma=0).tolist() == [1, 2, 0, 4]
    assert discounted_returns(rewards, mask, gamma=1).tolist() == [7, 6, 0, 4]


# --- without a critic


def test_a_group_by_hand(device):
    # Mean 2, squares 1 + 0 + 1, divided by 2: standard deviation 1.
    found = group_relative(tensor([[1.0, 2.0, 3.0], [30.0, 10.0, 20.0]], device), eps=1.0)
    assert found[0].tolist() == [-0.5, 0, 0.5]
    assert found[1].tolist() == pytest.approx([10 / 11, -10 / 11, 0], rel=1e-15)
    # 1, -1/2, -3/2 and so on: each against the mean of the other two.
    found = leave_one_out(tensor([[1.0, 2.0, 3.0], [30.0, 10.0, 20.0]], device))
    assert found.tolist() == [[-1.5, 0, 1.5], [15, -15, 0]]


def test_a_group_of_two_by_hand(device):
    # Mean 1, squares 1 + 1, divided by 1: standard deviation sqrt 2.
    found = group_relative(tensor([2.0, 0.0], device), eps=1e-12).tolist()
    assert found == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)], rel=1e-11)
    assert leave_one_out(tensor([2.0, 0.0], device)).tolist() == [2, -2]


def test_equal_scores_teach_nothing(device):
    scores = tensor([0.1] * 3, device, torch.float32)
    assert group_relative(scores, eps=1e-6).abs().max() < 0.05
    assert group_relative(tensor([0.5] * 4, device), eps=1e-6).tolist() == [0] * 4
    assert leave_one_out(tensor([0.5] * 4, device)).tolist() == [0] * 4


def test_small_differences_of_large_scores_survive(device):
    # In float32, around 1000: the mean comes off before anything is squared.
    scores = tensor([1000.25, 999.75], device, torch.float32)
    assert leave_one_out(scores).tolist() == [0.5, -0.5]
    assert group_relative(scores, eps=1e-12).tolist() == pytest.approx(
        [math.sqrt(0.5), -math.sqrt(0.5)], rel=1e-6
    )


# --- whitening


def test_whitening_by_hand(device):
    x, mask = tensor([[1.0, 99.0], [2.0, 3.0]], device), bools([[True, False], [True, True]], device)
    # Mean 2, squares 1 + 0 + 1: over 2 the deviation is 1, over 3 it is sqrt(2/3).
    assert whiten(x, mask, ddof=1, eps=1.0).tolist() == [[-0.5, 0], [0, 0.5]]
    found = whiten(x, mask, ddof=0, eps=1e-12).flatten().tolist()
    assert found == pytest.approx([-math.sqrt(1.5), 0, 0, math.sqrt(1.5)], rel=1e-11)


@pytest.mark.parametrize("ddof", [0, 1])
def test_whitening_one_element_gives_zero(ddof, device):
    x, mask = tensor([7.0, 99.0], device), bools([True, False], device)
    assert whiten(x, mask, ddof=ddof, eps=1e-8).tolist() == [0, 0]


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("under", [7.0, math.nan, math.inf])
def test_whitening_nothing_gives_zero(ddof, under, device):
    x, mask = tensor([under, 99.0], device), bools([False, False], device)
    assert whiten(x, mask, ddof=ddof, eps=1e-8).tolist() == [0, 0]
    assert whiten(x[:0], mask[:0], ddof=ddof, eps=1e-8).tolist() == []


def test_whitening_two_elements_tells_the_divisors_apart(device):
    x, mask = tensor([3.0, 5.0], device), bools([True, True], device)
    assert whiten(x, mask, ddof=0, eps=1e-12).tolist() == pytest.approx([-1, 1], rel=1e-11)
    root = math.sqrt(0.5)
    assert whiten(x, mask, ddof=1, eps=1e-12).tolist() == pytest.approx([-root, root], rel=1e-11)


def test_whitening_keeps_a_small_spread_around_a_large_mean(device):
    # In one pass in float32, the mean of the squares less the square of the mean would be 0 or worse.
    x = tensor([4096.0, 4096.5, 4097.0], device, torch.float32)
    found = whiten(x, torch.ones_like(x).bool(), ddof=1, eps=1e-12).tolist()
    assert found == pytest.approx([-1, 0, 1], abs=1e-6)
