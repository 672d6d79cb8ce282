"""Advantages with a critic, and returns. Expected values are worked out by hand or have their source."""

import pytest
import torch

import ppo_core
from ppo_core import discounted_returns, gae, shaped_rewards

from .packed import at_the_ends, packed, packed_ids, padded


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


def optional(device, bootstrap=None, terminated=None, sequence_ids=None, **numbers):
    """The keyword arguments as tensors; those that are not given are left out."""
    given = {"bootstrap": (bootstrap, torch.float64), "terminated": (terminated, torch.bool)}
    given["sequence_ids"] = (sequence_ids, torch.int64)
    tensors = {
        name: torch.tensor(x, dtype=dtype, device=device)
        for name, (x, dtype) in given.items()
        if x is not None
    }
    return {**tensors, **numbers}


# --- gae


def advantages(rewards, values, device, mask=None, **arguments):
    rewards = tensor(rewards, device)
    mask = torch.ones_like(rewards).bool() if mask is None else bools(mask, device)
    return gae(rewards, tensor(values, device), mask, **optional(device, **arguments)).tolist()


def test_gae_by_hand(device):
    # gamma 1/2, lambda 1/2. Deltas 0 + 2/2 - 4 = -3, 8 + 6/2 - 2 = 9, 16 - 6 = 10.
    # Advantages 10, 9 + 10/4 = 11.5, -3 + 11.5/4 = -0.125.
    found = advantages([0.0, 8.0, 16.0], [4.0, 2.0, 6.0], device, gamma=0.5, lam=0.5)
    assert found == [-0.125, 11.5, 10.0]


def test_gae_of_an_answer_that_was_cut_off_by_hand(device):
    # The last delta is 16 + 20/2 - 6 = 20: then 20, 9 + 20/4 = 14, -3 + 14/4 = 0.5.
    found = advantages([0.0, 8.0, 16.0], [4.0, 2.0, 6.0], device, gamma=0.5, lam=0.5, bootstrap=20.0)
    assert found == [0.5, 14.0, 20.0]


def test_a_hole_is_no_time_step(device):
    # The same three tokens with holes before, between and behind.
    mask = [False, True, False, False, True, True, False]
    rewards, values = [0.0, 0.0, 0.0, 0.0, 8.0, 16.0, 0.0], [9.0, 4.0, 9.0, 9.0, 2.0, 6.0, 9.0]
    found = advantages(rewards, values, device, mask, gamma=0.5, lam=0.5)
    assert found == [0, -0.125, 0, 0, 11.5, 10.0, 0]
    found = advantages(rewards, values, device, mask, gamma=0.5, lam=0.5, bootstrap=20.0)
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
    found = advantages(rewards, values, device, mask, gamma=1.0, lam=1.0, bootstrap=[3.0, 0.0])
    assert found == [[3.5, 0], [1, 1]]


def test_an_answer_without_a_token_has_no_advantages(device):
    arguments = [[0.0, 0.0]], [[9.0, 9.0]], device, [[False, False]]
    assert advantages(*arguments, gamma=1.0, lam=1.0) == [[0, 0]]
    # The value after it comes after nothing.
    assert advantages(*arguments, gamma=1.0, lam=1.0, bootstrap=[float("nan")]) == [[0, 0]]


def test_half_a_bootstrap_is_wide_too(device):
    rewards, values = tensor([1.0], device, torch.bfloat16), tensor([0.5], device, torch.bfloat16)
    cut = tensor(0.25, device, torch.bfloat16)
    found = gae(rewards, values, bools([True], device), gamma=0.1, lam=1.0, bootstrap=cut)
    assert found.dtype == torch.float32
    # 1 + 0.025 - 0.5; in bfloat16 it would be 0.5234.
    assert found.item() == pytest.approx(0.525, abs=1e-7)


# --- how an answer ends


def test_only_an_answer_that_was_cut_off_has_a_value_after_it(device):
    # gamma 1/2, lambda 1. One token with reward 1 and value 0: 1 + 8/2, or 1.
    arguments = [[1.0], [1.0]], [[0.0], [0.0]], device
    found = advantages(*arguments, gamma=0.5, lam=1.0, bootstrap=[8.0, 8.0], terminated=[False, True])
    assert found == [[5], [1]]


@pytest.mark.parametrize("unused", [float("nan"), float("inf"), -100.0])
def test_the_value_after_a_finished_answer_is_not_used(unused, device):
    arguments = [[1.0, 2.0], [1.0, 2.0]], [[3.0, 4.0], [3.0, 4.0]], device
    finished = advantages(*arguments, gamma=0.5, lam=0.5)
    ends = {"bootstrap": [unused, unused], "terminated": [True, True]}
    assert advantages(*arguments, gamma=0.5, lam=0.5, **ends) == finished


def test_without_terminated_every_answer_with_a_bootstrap_was_cut_off(device):
    arguments = [[1.0], [1.0]], [[0.0], [0.0]], device
    nowhere = advantages(*arguments, gamma=0.5, lam=1.0, bootstrap=[8.0, 2.0], terminated=[False, False])
    assert advantages(*arguments, gamma=0.5, lam=1.0, bootstrap=[8.0, 2.0]) == nowhere == [[5], [2]]


# --- packed rows


def test_nothing_crosses_the_border_of_a_sequence(device):
    # gamma 1/2, lambda 1/2, three sequences: the one by hand, one token, and the one by hand cut off.
    found = advantages(
        [0.0, 8.0, 16.0, 1.0, 0.0, 8.0, 16.0],
        [4.0, 2.0, 6.0, 3.0, 4.0, 2.0, 6.0],
        device,
        gamma=0.5,
        lam=0.5,
        bootstrap=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 20.0],
        sequence_ids=[0, 0, 0, 1, 2, 2, 2],
    )
    assert found == [-0.125, 11.5, 10.0, 1 - 3, 0.5, 14.0, 20.0]


def test_the_value_after_a_sequence_is_read_at_its_last_counted_token_alone(device):
    nan = float("nan")
    found = advantages(
        [1.0, 0.0, 0.0, 2.0, 0.0],
        [0.0, nan, nan, 0.0, nan],
        device,
        [True, False, False, True, False],
        gamma=0.5,
        lam=1.0,
        bootstrap=[8.0, nan, nan, 4.0, nan],
        sequence_ids=[0, 0, 1, 2, 2],  # the middle one has no counted token
    )
    assert found == [5, 0, 0, 4, 0]


def test_sequences_are_runs_of_equal_numbers(device):
    # The third token begins a new sequence, though the first has its number.
    found = advantages([1.0, 1.0, 1.0], [0.0] * 3, device, gamma=1.0, lam=1.0, sequence_ids=[7, 3, 7])
    assert found == [1, 1, 1]
    assert advantages([1.0, 1.0, 1.0], [0.0] * 3, device, gamma=1.0, lam=1.0, sequence_ids=[7, 7, 7]) == [
        3,
        2,
        1,
    ]


@pytest.mark.parametrize("ends", [(), ("bootstrap",), ("bootstrap", "terminated")], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_packed_equals_padded(seed, ends, device):
    batch = padded(("rewards", "values"), seed, device)
    values, mask = batch["values"], batch["mask"]
    # What is not counted may be NaN; it is no reward.
    rewards = torch.where(mask, batch["rewards"], torch.nan)
    numbers = {"bootstrap": values[:, 0] * 3, "terminated": bools([True, False, False, True, False], device)}
    after = {name: numbers[name] for name in ends}
    after_packed = {name: packed(at_the_ends(x, mask)) for name, x in after.items()}
    after_packed["sequence_ids"] = packed_ids(device)

    found = gae(packed(rewards), packed(values), packed(mask), gamma=0.9, lam=0.7, **after_packed)
    expected = gae(rewards, values, mask, gamma=0.9, lam=0.7, **after)
    assert torch.equal(found, packed(expected).nan_to_num())

    found = discounted_returns(packed(rewards), packed(mask), gamma=0.9, **after_packed)
    assert torch.equal(found, packed(discounted_returns(rewards, mask, gamma=0.9, **after)).nan_to_num())


# --- numbers that others published


@pytest.mark.parametrize(
    ("lam", "first", "second"),
    [
        (1.0, [-1.45118, -4.4557, 2.5396, 0.5249, -0.49], [3.0, 2.0, 1.0, 0.0, -4.9]),
        (0.7, [-0.676979, -5.248167, 2.4846, 0.6704, -0.49], [2.2899, 1.73, 1.0, 0.0, -4.9]),
        (0.4, [0.56731, -6.042, 2.3431, 0.815, -0.49], [1.725, 1.46, 1.0, 0.0, -4.9]),
    ],
)
def test_rlax(lam, first, second, device):
    # rlax/_src/multistep_test.py, TruncatedGeneralizedAdvantageEstimationTest; its tolerance is 1e-3, since its
    # numbers are cut off after the third or fourth place. The value after the last step is -1.
    found = advantages(
        [0.0, 0.0, 1.0, 0.0, -0.5], [1.0, 4.0, -3.0, -2.0, -1.0], device, gamma=0.99, lam=lam, bootstrap=-1.0
    )
    assert found == pytest.approx(first, abs=1e-3)
    # The second row has the discount 0 at its fourth step: an episode that ended by itself, then another.
    found = advantages(
        [0.0, 0.0, 0.0, 0.0, 1.0],
        [-3.0, -2.0, -1.0, 0.0, 5.0],
        device,
        gamma=0.9,
        lam=lam,
        bootstrap=[0.0, 0.0, 0.0, 5.0, -1.0],
        terminated=[False, False, False, True, False],
        sequence_ids=[0, 0, 0, 0, 1],
    )
    assert found == pytest.approx(second, abs=1e-3)


TIANSHOU_REWARDS = [101.0, 102.0, 103.0, 200.0, 104.0, 105.0, 106.0, 201.0, 107.0, 108.0, 109.0, 202.0]
TIANSHOU_NEXT = [2.0, 3.0, 4.0, -1.0, 5.0, 6.0, 7.0, -2.0, 8.0, 9.0, 10.0, -3.0]
THIRD_EPISODE = [474.2876, 390.1027, 299.476, 202]


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ([True] * 3, [454.8344, 376.1143, 291.298, 200, 464.561, 383.1085, 295.387, 201, *THIRD_EPISODE]),
        # The first two episodes were cut off: 200 - 0.99 and 201 - 0.99 * 2 at their last steps.
        (
            [False, False, True],
            [454.0109, 375.2386, 290.3669, 199.01, 462.9138, 381.3571, 293.5248, 199.02, *THIRD_EPISODE],
        ),
    ],
)
def test_tianshou(ended, expected, device):
    # tianshou, test/base/test_returns.py: three episodes in a row, given by the value after each step. The
    # value before a step is the one after the step before it; that before the first is the last one.
    values = [TIANSHOU_NEXT[-1], *TIANSHOU_NEXT[:-1]]
    found = advantages(
        TIANSHOU_REWARDS,
        values,
        device,
        gamma=0.99,
        lam=0.95,
        bootstrap=TIANSHOU_NEXT,
        terminated=[end for end in ended for _ in range(4)],
        sequence_ids=[0] * 4 + [1] * 4 + [2] * 4,
    )
    assert [a + v for a, v in zip(found, values, strict=True)] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("rewards", "sequence_ids", "expected"),
    [
        ([0.0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 1, 1, 2, 2, 3, 3], [0, 1.23, 2.3, 3, 4.5, 5, 6.7, 7]),
        ([7.0, 6, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2, 3], [7.6, 6, 1.2, 2, 3.4, 4, 5]),
        ([7.0, 6, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2, 2], [7.6, 6, 1.2, 2, 3.45, 4.5, 5]),
    ],
)
def test_tianshou_without_a_critic(rewards, sequence_ids, expected, device):
    # The other cases of the same file: gamma 0.1, lambda 1, all values 0.
    found = returns(rewards, device, gamma=0.1, sequence_ids=sequence_ids)
    assert found == pytest.approx(expected, rel=1e-14)


def test_torchtune(device):
    # tests/torchtune/rlhf/test_rewards.py, test_estimate_returns: 0.9^3 0.95^2, 0.9^2 0.95, 0.9, 1.
    values = [0.0, 0.0, 0.0, 1.0]
    found = advantages([0.0, 0.0, 0.0, 1.0], values, device, gamma=0.9, lam=0.95)
    returns = [a + v for a, v in zip(found, values, strict=True)]
    assert returns == pytest.approx([0.6579225, 0.7695, 0.9, 1.0], rel=1e-14)


def test_slime(device):
    # The inputs of slime's tests/test_discounted_returns.py: KL at a coefficient of 0.1, scores 2 and -1, gamma
    # 0.99. Rewards -0.01, -0.03, 1.96 and -0.04, -0.02, -1.01; then 1.96, -0.03 + 0.99 * 1.96 = 1.9104, -0.01 +
    # 0.99 * 1.9104 = 1.881296, and -1.01, -0.02 - 0.9999 = -1.0199, -0.04 - 1.009701 = -1.049701.
    kl = tensor([[0.2, 0.1, 0.3, 0.4, 0.5], [0.4, 0.2, 0.1, 0.0, 0.0]], device)
    mask = bools([[0, 1, 1, 1, 0], [1, 1, 1, 0, 0]], device)
    rewards = shaped_rewards(tensor([2.0, -1.0], device), kl, torch.zeros_like(kl), mask, beta=0.1)
    first, second = discounted_returns(rewards, mask, gamma=0.99).tolist()
    assert first == pytest.approx([0, 1.881296, 1.9104, 1.96, 0], rel=1e-12)
    assert second == pytest.approx([-1.049701, -1.0199, -1.01, 0, 0], rel=1e-12)


def test_verl_with_holes(device):
    # The inputs of verl's tests/trainer/ppo/test_core_algos_on_cpu.py. Deltas 0.1 + 4.5 - 4 = 0.6, 0.1 + 5.4 -
    # 5 = 0.5, 0.1 + 6.3 - 6 = 0.4, 0.1 + 8.1 - 7 = 1.2, 1 - 9 = -8; each plus 0.45 of the advantage behind.
    mask = [False, False, True, True, True, False, False, True, True, False, False]
    rewards = [0.0, 0.0, 0.1, 0.1, 0.1, 0.0, 0.0, 0.1, 1.0, 0.0, 0.0]
    values = [50.0, 50.0, 4.0, 5.0, 6.0, 50.0, 50.0, 7.0, 9.0, 50.0, 50.0]
    found = advantages(rewards, values, device, mask, gamma=0.9, lam=0.5)
    assert found == pytest.approx([0, 0, 0.6873, 0.194, -0.68, 0, 0, -2.4, -8, 0, 0], rel=1e-12)


# --- what is refused

ROW = torch.zeros(2, 3)
ALL = torch.ones(2, 3, dtype=torch.bool)
EACH = pytest.mark.parametrize(
    "call",
    [
        lambda **more: gae(ROW, ROW, ALL, gamma=1.0, lam=1.0, **more),
        lambda **more: discounted_returns(ROW, ALL, gamma=1.0, **more),
    ],
    ids=["gae", "discounted_returns"],
)


@EACH
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"terminated": torch.ones(2).bool()},
            ValueError,
            "terminated needs bootstrap: without it every answer is finished already; give the value after each "
            "answer, or leave terminated out",
        ),
        (
            {"bootstrap": torch.zeros(2), "terminated": torch.ones(2)},
            TypeError,
            "terminated must be a bool tensor (True: the answer ended by itself), got torch.float32; write "
            "terminated.bool()",
        ),
        (
            {"bootstrap": torch.zeros(2), "terminated": [True, True]},
            TypeError,
            "terminated must be a torch.Tensor, got list; write torch.tensor(terminated)",
        ),
        (
            {"bootstrap": torch.zeros(2), "terminated": torch.ones(2, 1).bool()},
            ValueError,
            "bootstrap and terminated must have the same shape, got [2] and [2, 1]; nothing is broadcast: expand "
            "or index one of them first",
        ),
        (
            {"bootstrap": torch.zeros(2).long()},
            TypeError,
            "bootstrap must be a floating-point tensor, got torch.int64; write bootstrap.float()",
        ),
        (
            {"bootstrap": torch.zeros(3)},
            ValueError,
            "bootstrap must have the shape of rewards without its last dimension, the tokens, got [3] and [2, "
            "3]; give one value for each answer",
        ),
        (
            {"bootstrap": torch.zeros(2), "sequence_ids": ROW.long()},
            ValueError,
            "rewards and bootstrap must have the same shape, got [2, 3] and [2]; nothing is broadcast: expand or "
            "index one of them first",
        ),
        (
            {"sequence_ids": ROW},
            TypeError,
            "sequence_ids must be an int64 tensor, got torch.float32; write sequence_ids.long()",
        ),
        (
            {"sequence_ids": ROW[0].long()},
            ValueError,
            "rewards and sequence_ids must have the same shape, got [2, 3] and [3]; nothing is broadcast: expand "
            "or index one of them first",
        ),
    ],
)
def test_what_does_not_fit(call, arguments, error, message):
    with pytest.raises(error) as raised:
        call(**arguments)
    assert str(raised.value) == message


@pytest.mark.parametrize("wrong", [{"gamma": 1.5, "lam": 1.0}, {"lam": -0.1, "gamma": 1.0}])
def test_a_discount_is_a_fraction(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ValueError) as raised:
        gae(ROW, ROW, ALL, **wrong)
    assert str(raised.value) == f"{name} must lie between 0 and 1, got {value}"


# --- a reward where it would be lost

LOST = ([[1.0, 2.0], [0.0, 3.0]], [[True, True], [True, False]])
TEXT = (
    "rewards must be 0 on uncounted tokens, got 3 at index [1, 1], which would be lost; move it to a counted "
    "token or count that one"
)
CALLS = {
    "gae": lambda rewards, mask, **more: gae(
        rewards, torch.zeros_like(rewards), mask, gamma=1.0, lam=1.0, **more
    ),
    "discounted_returns": lambda rewards, mask, **more: discounted_returns(rewards, mask, gamma=1.0, **more),
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
def test_where_nobody_looks_a_lost_reward_makes_its_row_nan_whatever_the_shape(call, monkeypatch, device):
    monkeypatch.setattr(ppo_core.checks, "may_look", lambda x: False)
    rewards, mask = tensor(LOST[0], device).unsqueeze(1), bools(LOST[1], device).unsqueeze(1)
    assert call(rewards, mask).isnan().tolist() == [[[False, False]], [[True, True]]]


@EACH_CALL
def test_a_reward_behind_a_packed_answer_makes_its_row_nan(call, device):
    # The padding is a sequence of its own; alone it has no counted token on which the NaN would be seen.
    arguments = tensor([[1.0, 2.0, 3.0]], device), bools([[True, True, False]], device)
    ids = torch.tensor([[0, 0, 1]], device=device)
    result = torch.compile(call, fullgraph=True, backend="aot_eager")(*arguments, sequence_ids=ids)
    assert result.isnan().all()
    if device == "cpu":
        with pytest.raises(ValueError, match=r"got 3 at index \[0, 2\], which would be lost"):
            call(*arguments, sequence_ids=ids)


@EACH_CALL
def test_the_index_of_a_lost_reward_in_one_answer(call):
    with pytest.raises(ValueError, match=r"got -0.25 at index \[0\], which"):
        call(torch.tensor([-0.25, 1.0]), torch.tensor([False, True]))


@EACH_CALL
def test_the_first_of_several_lost_rewards_is_named(call):
    with pytest.raises(ValueError, match=r"got 2 at index \[1\], which"):
        call(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, False]))


# --- discounted returns


def returns(rewards, device, mask=None, **arguments):
    rewards = tensor(rewards, device)
    mask = torch.ones_like(rewards).bool() if mask is None else bools(mask, device)
    return discounted_returns(rewards, mask, **optional(device, **arguments)).tolist()


def test_returns_by_hand(device):
    # 4; a hole; 2 + 4/2 = 4; 1 + 4/2 = 3.
    rewards, mask = [1.0, 2.0, 0.0, 4.0], [True, True, False, True]
    assert returns(rewards, device, mask, gamma=0.5) == [3, 4, 0, 4]
    assert returns(rewards, device, mask, gamma=0) == [1, 2, 0, 4]
    assert returns(rewards, device, mask, gamma=1) == [7, 6, 0, 4]


def test_returns_of_an_answer_that_was_cut_off_by_hand(device):
    # With 16 to come: 4 + 16/2 = 12; 2 + 12/2 = 8; 1 + 8/2 = 5.
    rewards, mask = [1.0, 2.0, 0.0, 4.0], [True, True, False, True]
    assert returns(rewards, device, mask, gamma=0.5, bootstrap=16.0) == [5, 8, 0, 12]
    assert returns(rewards, device, mask, gamma=0.5, bootstrap=16.0, terminated=True) == [3, 4, 0, 4]


def test_returns_of_packed_answers_by_hand(device):
    # 1 + 2/2 = 2 and 2; 4 + 8/2 = 8 with 8 to come.
    found = returns(
        [1.0, 2.0, 4.0],
        device,
        gamma=0.5,
        bootstrap=[9.0, 9.0, 8.0],
        terminated=[False, True, False],
        sequence_ids=[0, 0, 1],
    )
    assert found == [2, 2, 8]


def test_returns_are_the_advantages_of_a_critic_that_knows_nothing(device):
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(4, 6, dtype=torch.float64, generator=generator).to(device)
    mask = torch.ones_like(rewards).bool()
    expected = gae(rewards, torch.zeros_like(rewards), mask, gamma=0.9, lam=1.0)
    assert torch.equal(discounted_returns(rewards, mask, gamma=0.9), expected)
