"""Public reports of faults in advantages, returns and whitening, each with its smallest input and the right answer.

The name of a test is the project and the number of its issue or pull request.
"""

import math

import pytest
import torch

from ppo_core import (
    discounted_returns,
    gae,
    group_centred,
    group_relative,
    leave_one_out,
    reinforce_plus_plus,
    whiten,
)


def tensor(x, device):
    return torch.tensor(x, dtype=torch.float64, device=device)


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


# --- steps and masks


def test_roll_447_value_behind_the_answer(device):
    # 1 - 0 = 1; 0 + 0.95 * 1 = 0.95. With the 100 of the padding as next value: 1 + 100 - 0 less what the
    # padding's own delta takes back, 0.95 * 100, is 6.
    rewards, values = tensor([[0.0, 1.0, 0.0]], device), tensor([[0.0, 0.0, 100.0]], device)

    found = gae(rewards, values, bools([[1, 1, 0]], device), gamma=1.0, lam=0.95)

    assert found.tolist() == [[0.95, 1, 0]]


def test_verl_2337_observation_tokens_in_gae(device):
    # The token in the middle is an observation. 1 - 0.6 = 0.4; 0.6 - 0.5 + 0.95 * 0.4 = 0.48.
    rewards, values = tensor([[0.0, 0.0, 1.0]], device), tensor([[0.5, 9.0, 0.6]], device)

    found = gae(rewards, values, bools([[1, 0, 1]], device), gamma=1.0, lam=0.95)

    assert found.flatten().tolist() == pytest.approx([0.48, 0, 0.4], rel=1e-14)


def test_verl_gae_loses_a_reward_on_a_masked_step(device):
    # Seen in verl 0.9.1: all advantages 0, without a word.
    rewards, mask = tensor([[0.0, 0.0, 1.0]], device), bools([[1, 1, 0]], device)
    if device == "cpu":
        with pytest.raises(ValueError, match=r"got 1 at index \[0, 2\], which would be lost"):
            gae(rewards, torch.zeros_like(rewards), mask, gamma=1.0, lam=0.95)
    else:
        assert gae(rewards, torch.zeros_like(rewards), mask, gamma=1.0, lam=0.95).isnan().all()


def test_verl_1758_value_before_the_token(device):
    # Rewards 1, 2, 4 are still to come before the first token: 7, then 6, then 4. A critic that says so leaves
    # no advantage to any token, whatever lambda. Taken one place later, as 6, 4, 0, it does.
    rewards, mask = tensor([[1.0, 2.0, 4.0]], device), bools([[1, 1, 1]], device)
    for lam in (0.0, 0.5, 1.0):
        found = gae(rewards, tensor([[7.0, 6.0, 4.0]], device), mask, gamma=1.0, lam=lam)
        assert found.tolist() == [[0, 0, 0]]
        found = gae(rewards, tensor([[6.0, 4.0, 0.0]], device), mask, gamma=1.0, lam=lam)
        assert found[0, -1].item() == 4


def test_verl_7278_reward_before_an_observation_span(device):
    # Every action token earns the 1 at the end; those before the observation got 0.
    rewards, mask = tensor([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], device), bools([[1, 1, 0, 0, 1, 1]], device)

    assert discounted_returns(rewards, mask, gamma=1.0).tolist() == [[1, 1, 0, 0, 1, 1]]
    # The same, whitened beside an answer that earns nothing: mean 2/3 and deviation sqrt(2)/3 over six tokens.
    rewards = torch.cat([rewards, torch.zeros_like(rewards)])
    mask = torch.cat([mask, bools([[1, 1, 0, 0, 0, 0]], device)])
    found = reinforce_plus_plus(rewards, mask, gamma=1.0, ddof=0, eps=1e-14).tolist()
    good, bad = math.sqrt(0.5), -math.sqrt(2)
    assert found[0] == pytest.approx([good, good, 0, 0, good, good], rel=1e-12)
    assert found[1] == pytest.approx([bad, bad, 0, 0, 0, 0], rel=1e-12)


def test_verl_6376_discount_across_an_observation(device):
    # The observation is no time step: one discount, 0.5, between the two tokens of the model.
    rewards, mask = tensor([[0.0, 0.0, 1.0]], device), bools([[1, 0, 1]], device)

    assert discounted_returns(rewards, mask, gamma=0.5).tolist() == [[0.5, 0, 1]]


# --- groups


def test_openrlhf_1250_group_of_one(device):
    # The mean of one score is the score: every advantage was 0, and training did nothing.
    for call in (group_centred, leave_one_out, lambda scores: group_relative(scores, eps=1e-9)):
        with pytest.raises(ValueError, match=r"at least 2, the answers of a group, got \[3, 1\]"):
            call(tensor([[1.0], [0.0], [1.0]], device))


def test_nemo_3467_answer_that_does_not_count_in_its_group(device):
    # Of the scores 1, 1, 0, 0 the second does not count. It is left out: mean 1/3, variance (4 + 1 + 1) / 9 / 2
    # = 1/3. With it the first would get 0.5.
    scores = tensor([1.0, 0.0, 0.0], device)

    assert group_centred(scores).tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3], rel=1e-14)
    expected = [2 / math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3)]
    assert group_relative(scores, eps=1e-14).tolist() == pytest.approx(expected, rel=1e-13)
    assert leave_one_out(scores).tolist() == pytest.approx([1, -0.5, -0.5], rel=1e-14)


# --- whitening


def test_verl_1527_whitened_advantages_outside_the_mask(device):
    x, mask = tensor([1.0, 99.0, 2.0, 3.0], device), bools([1, 0, 1, 1], device)

    found = whiten(x, mask, ddof=1, eps=1e-8).tolist()

    assert found == pytest.approx([-1, 0, 0, 1], abs=1e-7)
    assert found[1] == 0


@pytest.mark.parametrize("ddof", [0, 1])
def test_roll_475_one_token_left(ddof, device):
    # Their variance of one element raised an error.
    x, mask = tensor([[0.5, 1.0], [2.0, 3.0]], device), bools([[0, 0], [1, 0]], device)

    assert whiten(x, mask, ddof=ddof, eps=1e-8).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("ddof", [0, 1])
def test_sb3_265_325_440_batch_of_one(ddof, device):
    # The standard deviation of one sample, with the divisor n - 1, is NaN.
    assert whiten(tensor([7.0], device), bools([1], device), ddof=ddof, eps=1e-8).tolist() == [0]


def test_stable_baselines_722_tianshou_1298_equal_advantages(device):
    # Standard deviation 0: without an eps it was 0 over 0.
    assert whiten(tensor([2.0] * 3, device), bools([1, 1, 1], device), ddof=1, eps=1e-8).tolist() == [0, 0, 0]


def test_slime_1369_mean_is_not_added_back(device):
    # Mean 4, deviation 2. Scaled alone it would be 1, 2, 3; with the mean added back 3, 4, 5.
    found = whiten(tensor([2.0, 4.0, 6.0], device), bools([1, 1, 1], device), ddof=1, eps=1e-12)
    assert found.tolist() == pytest.approx([-1, 0, 1], abs=1e-11)


def test_torchtune_whitening_that_is_not_centred(device):
    # Seen in torchtune 0.6.1: by default its whiten gives 1, 2, 3 back.
    found = whiten(tensor([1.0, 2.0, 3.0], device), bools([1, 1, 1], device), ddof=1, eps=1e-12)
    assert found.tolist() == pytest.approx([-1, 0, 1], abs=1e-11)
