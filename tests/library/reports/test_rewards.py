"""Public reports of faults in rewards per token, each with its smallest input and the right answer.

The name of a test is the project and the number of its issue or pull request.
"""

import pytest
import torch

from ppo_core import discounted_returns, gae, shaped_rewards


def tensor(x, device):
    return torch.tensor(x, dtype=torch.float64, device=device)


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


def test_trl_1893_3750_5338_reward_on_the_first_pad_token(device):
    # Two tokens, the end-of-sequence token and two pads: the score belongs to the third token. One place later
    # it lies on padding, where the loss mask takes it away again; here that is an error.
    logprobs, mask = tensor([[-1.0] * 5], device), bools([[1, 1, 1, 0, 0]], device)

    rewards = shaped_rewards(tensor([1.0], device), logprobs, logprobs, mask, beta=0.1)

    assert rewards.tolist() == [[0, 0, 1, 0, 0]]
    if device == "cpu":
        on_the_pad = torch.tensor([3])
        with pytest.raises(ValueError, match="slot points at no counted token"):
            shaped_rewards(tensor([1.0], device), logprobs, logprobs, mask, beta=0.1, slot=on_the_pad)
        with pytest.raises(ValueError, match="rewards must be 0 on uncounted tokens"):
            gae(rewards.roll(1, -1), logprobs, mask, gamma=1.0, lam=0.95)


def test_verl_6361_nan_under_the_mask_in_the_reward(device):
    # NaN times 0 is NaN. Log-ratio 1 at a leash of 0.5; the padding has no log-probabilities.
    nan = float("nan")
    new, ref = tensor([[-1.0, nan, nan]], device), tensor([[-2.0, nan, -1.0]], device)

    found = shaped_rewards(tensor([3.0], device), new, ref, bools([[1, 0, 0]], device), beta=0.5)

    assert found.tolist() == [[2.5, 0, 0]]


def test_slime_1370_miles_1383_leash_on_tool_tokens(device):
    # Log-ratio 1 everywhere, no score, gamma 0.9; the two tokens in the middle came from a tool. They are no
    # time steps and cost nothing: -1 - 0.9 = -1.9. With their leash it was -1 - 0.9 - 0.81 - 0.729 = -3.439;
    # slime counts them as time without a cost, -1 - 0.729 = -1.729.
    new, ref, mask = tensor([[1.0] * 4], device), tensor([[0.0] * 4], device), bools([[1, 0, 0, 1]], device)

    rewards = shaped_rewards(tensor([0.0], device), new, ref, mask, beta=1.0)

    assert rewards.tolist() == [[-1, 0, 0, -1]]
    assert discounted_returns(rewards, mask, gamma=0.9).tolist() == [[-1.9, 0, 0, -1]]


def test_miles_1827_answer_that_ends_with_an_observation(device):
    # The last two tokens are an observation. The score was paid on the last of them, and with gamma 0 nothing
    # came back from there.
    logprobs, mask = tensor([[-1.0] * 4], device), bools([[1, 1, 0, 0]], device)

    rewards = shaped_rewards(tensor([5.0], device), logprobs, logprobs, mask, beta=0.1)

    assert rewards.tolist() == [[0, 5, 0, 0]]
    assert discounted_returns(rewards, mask, gamma=0.0).tolist() == [[0, 5, 0, 0]]
    assert discounted_returns(rewards, mask, gamma=1.0).tolist() == [[5, 5, 0, 0]]


def test_trl_2562_2581_leash_per_token_and_per_sequence(device):
    # KL 0.1 and 0.2 at a coefficient of 1: summed over the sequence it is 0.3 either way, which is why the
    # option did nothing. Per token, the second one answers for its own 0.2 alone.
    new, ref, mask = tensor([[-1.0, -1.0]], device), tensor([[-1.1, -1.2]], device), bools([[1, 1]], device)

    rewards = shaped_rewards(tensor([0.0], device), new, ref, mask, beta=1.0)

    assert rewards.sum().item() == pytest.approx(-0.3, rel=1e-12)
    returns = discounted_returns(rewards, mask, gamma=1.0).flatten().tolist()
    assert returns == pytest.approx([-0.3, -0.2], rel=1e-12)
