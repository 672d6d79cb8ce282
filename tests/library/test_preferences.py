import math

import pytest
import torch

from ppo_core import dpo_loss, implicit_reward, preference_probability, reward_model_loss


def tensors(device, *lists, dtype=torch.float64):
    return [torch.tensor(x, dtype=dtype, device=device, requires_grad=True) for x in lists]


def test_preferences_by_hand(device):
    # e^(log 3) = 3: three to one.
    better, worse = tensors(device, [math.log(3), 5.0, -1.0], [0.0, 5.0, math.log(3) - 1])
    assert preference_probability(better, worse).tolist() == pytest.approx([0.75, 0.5, 0.25], rel=1e-14)
    loss = reward_model_loss(better, worse)
    assert loss.tolist() == pytest.approx([math.log(4 / 3), math.log(2), math.log(4)], rel=1e-14)
    loss.sum().backward()
    # Minus the probability of the opposite preference.
    assert better.grad.tolist() == pytest.approx([-0.25, -0.5, -0.75], rel=1e-14)
    assert worse.grad.tolist() == pytest.approx([0.25, 0.5, 0.75], rel=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_scores_that_are_far_apart(dtype, device):
    better, worse = tensors(device, [1000.0, -1000.0], [-1000.0, 1000.0], dtype=dtype)
    assert preference_probability(better, worse).tolist() == [1, 0]
    loss = reward_model_loss(better, worse)
    loss.sum().backward()
    assert loss.tolist() == [0, 2000]
    assert better.grad.tolist() == [0, -1]


def test_the_implicit_reward_by_hand(device):
    new, ref = tensors(device, [-1.0, -8.0], [-5.0, -8.0])
    reward = implicit_reward(new, ref, beta=0.25)
    reward.sum().backward()
    assert (reward.tolist(), new.grad.tolist()) == ([1, 0], [0.25, 0.25])


def test_dpo_by_hand(device):
    # Log-ratios 2 log 3 and 0, beta 1/2: the implicit rewards differ by log 3.
    arguments = tensors(device, [-1.0], [-4.0], [-1 - 2 * math.log(3)], [-4.0])
    loss = dpo_loss(*arguments, beta=0.5)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(4 / 3), rel=1e-14)
    assert arguments[0].grad.item() == pytest.approx(-0.125, rel=1e-14)
    assert arguments[1].grad.item() == pytest.approx(0.125, rel=1e-14)


def test_dpo_of_the_reference_itself(device):
    arguments = tensors(device, [-3.0], [-7.0], [-3.0], [-7.0])
    assert dpo_loss(*arguments, beta=0.1).item() == pytest.approx(math.log(2), rel=1e-15)


def test_a_rejected_answer_that_became_likelier_costs(device):
    # Log-ratios 0 and 2 log 3: the roles exchanged.
    arguments = tensors(device, [-4.0], [-1.0], [-4.0], [-1 - 2 * math.log(3)])
    assert dpo_loss(*arguments, beta=0.5).item() == pytest.approx(math.log(4), rel=1e-14)
