"""The reward per token. Expected values are worked out by hand."""

import math
import re

import pytest
import torch

from ppo_core import gae, shaped_rewards

from .packed import at_the_ends, packed, packed_ids, padded


def shaped(scores, new, ref, mask, device, beta=0.5, **places):
    tensors = [torch.tensor(x, dtype=torch.float64, device=device) for x in (scores, new, ref)]
    places = {name: torch.tensor(x, device=device) for name, x in places.items()}
    return shaped_rewards(*tensors, torch.tensor(mask, device=device), beta=beta, **places).tolist()


def test_by_hand(device):
    # Log-ratios 1, -2, 0 and 4, 0, 6; the score goes to the last counted token, a hole gets nothing.
    new, ref = [[-1.0, -4.0, -2.0], [-1.0, -9.0, -2.0]], [[-2.0, -2.0, -2.0], [-5.0, -9.0, -8.0]]
    mask = [[True, True, False], [True, False, True]]
    assert shaped([10.0, 20.0], new, ref, mask, device) == [[-0.5, 11.0, 0.0], [-2.0, 0.0, 17.0]]


def test_one_token_without_a_batch(device):
    assert shaped(1.0, [-1.0], [-3.0], [True], device) == [0.0]


def test_one_token_at_the_first_place(device):
    assert shaped(1.0, [-1.0, -1.0], [-3.0, -1.0], [True, False], device) == [0.0, 0.0]
    assert shaped(1.5, [-1.0, -1.0], [-3.0, -1.0], [True, False], device) == [0.5, 0.0]


def test_without_a_leash_only_the_score_is_left(device):
    assert shaped([2.0], [[-1.0, -5.0]], [[-3.0, -1.0]], [[True, True]], device, beta=0) == [[0.0, 2.0]]


def test_no_answers_no_rewards(device):
    empty = torch.zeros(0, 3, device=device)
    assert shaped_rewards(torch.zeros(0, device=device), empty, empty, empty.bool(), beta=0.1).shape == (0, 3)


def test_rewards_add_up_to_the_score_minus_the_leash(device):
    torch.manual_seed(0)
    new, ref = torch.randn(2, 5, 7, dtype=torch.float64, device=device).unbind(0)
    mask = torch.rand(5, 7, device=device) < 0.5
    mask[:, 3] = True
    scores = torch.arange(5, dtype=torch.float64, device=device)
    total = shaped_rewards(scores, new, ref, mask, beta=0.3).sum(-1).tolist()
    # Wherever the score is paid.
    slot = torch.full((5,), 3, device=device)
    elsewhere = shaped_rewards(scores, new, ref, mask, beta=0.3, slot=slot).sum(-1).tolist()
    for row in range(5):
        tokens = [t for t in range(7) if mask[row, t]]
        leash = math.fsum(0.3 * (new[row, t].item() - ref[row, t].item()) for t in tokens)
        assert total[row] == pytest.approx(row - leash, rel=1e-12, abs=1e-12)
        assert elsewhere[row] == pytest.approx(row - leash, rel=1e-12, abs=1e-12)


def test_torchtune(device):
    # tests/torchtune/rlhf/test_rewards.py, test_get_rewards_ppo: leashes 0.05, 0.1, 0.15, the score at the end.
    new = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.6, 0.7, 0.8]]
    ref = [[0.2, 0.3, 0.4], [0.6, 0.7, 0.8], [0.9, 1.0, 1.1]]
    found = shaped([1.0, 2.0, 3.0], new, ref, [[True] * 3] * 3, device)
    expected = [[0.05, 0.05, 1.05], [0.1, 0.1, 2.1], [0.15, 0.15, 3.15]]
    assert sum(found, []) == pytest.approx(sum(expected, []), rel=1e-12)


# --- where the score is paid


def test_the_slot_by_hand(device):
    # The first case, with both scores at the first token.
    new, ref = [[-1.0, -4.0, -2.0], [-1.0, -9.0, -2.0]], [[-2.0, -2.0, -2.0], [-5.0, -9.0, -8.0]]
    mask = [[True, True, False], [True, False, True]]
    found = shaped([10.0, 20.0], new, ref, mask, device, slot=[0, 0])
    assert found == [[9.5, 1.0, 0.0], [18.0, 0.0, -3.0]]
    found = shaped([10.0, 20.0], new, ref, mask, device, slot=[1, 2])
    assert found == shaped([10.0, 20.0], new, ref, mask, device)


def test_the_slot_without_a_batch(device):
    assert shaped(1.0, [-1.0, -1.0], [-1.0, -1.0], [True, True], device, slot=0) == [1.0, 0.0]


def test_the_score_at_the_last_token_or_one_place_later(device):
    # No leash, values 0.5, 0.6, 0.7 and 0.8 on the padding, gamma 1, lambda 0.95, score 1.
    # At the last token: 1 - 0.7 = 0.3; 0.1 + 0.95 * 0.3 = 0.385; 0.1 + 0.95 * 0.385 = 0.46575.
    # One place later, for which the mask is one longer: 1 - 0.8 = 0.2; 0.1 + 0.95 * 0.2 = 0.29;
    # 0.1 + 0.95 * 0.29 = 0.3755; 0.1 + 0.95 * 0.3755 = 0.456725.
    logprobs = torch.full((1, 4), -1.0, dtype=torch.float64, device=device)
    values = torch.tensor([[0.5, 0.6, 0.7, 0.8]], dtype=torch.float64, device=device)
    score = torch.ones(1, dtype=torch.float64, device=device)

    def advantages(mask, **place):
        mask = torch.tensor([mask], device=device)
        rewards = shaped_rewards(score, logprobs, logprobs, mask, beta=0.1, **place)
        return gae(rewards, values, mask, gamma=1.0, lam=0.95).flatten().tolist()

    at_the_end = advantages([True, True, True, False])
    assert at_the_end == pytest.approx([0.46575, 0.385, 0.3, 0], rel=1e-12)
    later = advantages([True, True, True, True])
    assert later == pytest.approx([0.456725, 0.3755, 0.29, 0.2], rel=1e-12)
    # The slot says the same in the open.
    two, three = (torch.tensor([place], device=device) for place in (2, 3))
    assert advantages([True, True, True, False], slot=two) == at_the_end
    assert advantages([True, True, True, True], slot=three) == later


LOST_SLOTS = pytest.mark.parametrize(
    ("slot", "got"),
    [([1, 1, 0], 1), ([1, 3, 0], 3), ([1, -1, 0], -1), ([1, 2**40, 0], 2**40)],
    ids=["uncounted", "past the end", "negative", "far"],
)
# Two tokens in the first and third answer, the first and the last in the second.
HOLES = [[True, True, False], [True, False, True], [True, True, False]]


@LOST_SLOTS
def test_a_slot_that_is_no_counted_token_is_an_error_where_looking_is_free(slot, got):
    with pytest.raises(ValueError) as raised:
        shaped([1.0] * 3, [[-1.0] * 3] * 3, [[-1.0] * 3] * 3, HOLES, "cpu", slot=slot)
    assert str(raised.value) == (
        f"slot points at no counted token in the answer at index [1], got {got}, so its score would be lost; "
        "point at a counted token or count that one"
    )


@LOST_SLOTS
def test_a_slot_that_is_no_counted_token_is_nan_in_a_compiled_graph(slot, got, device):
    scores, logprobs = torch.ones(3, device=device), -torch.ones(3, 3, device=device)
    mask, slot = torch.tensor(HOLES, device=device), torch.tensor(slot, device=device)
    compiled = torch.compile(shaped_rewards, fullgraph=True, backend="aot_eager")
    result = compiled(scores, logprobs, logprobs, mask, beta=0.1, slot=slot)
    assert result.isnan().tolist() == [[False] * 3, [True] * 3, [False] * 3]
    assert result[[0, 2]].tolist() == [[0, 1, 0], [1, 0, 0]]


# --- packed rows


def test_packed_answers_by_hand(device):
    # Log-ratios 1, -2, 3, 4 at a leash of 1/2; the third token is a hole, the last two are padding.
    nan = math.nan
    found = shaped(
        [nan, 10.0, nan, 20.0, nan, nan],
        [1.0, -2.0, 3.0, 4.0, nan, nan],
        [0.0] * 6,
        [True, True, False, True, False, False],
        device,
        sequence_ids=[0, 0, 0, 1, 2, 2],
    )
    assert found == [-0.5, 11.0, 0.0, 18.0, 0.0, 0.0]


def test_a_row_of_padding_is_no_fault(device):
    found = shaped(
        [[1.0, 2.0]], [[-1.0, -1.0]], [[-1.0, -1.0]], [[False, False]], device, sequence_ids=[[0, 0]]
    )
    assert found == [[0, 0]]


@pytest.mark.parametrize("seed", range(3))
def test_packed_equals_padded(seed, device):
    batch = padded(("logprobs", "ref_logprobs", "scores"), seed, device)
    mask, scores = batch["mask"], batch["scores"][:, 0]
    new, ref = batch["logprobs"], batch["ref_logprobs"]
    # Padded, an answer without a token is an error, so it is left out: it gets no rewards.
    answered = mask.any(-1)
    assert not answered.all()
    expected = torch.zeros_like(new)
    rows = [x[answered] for x in (scores, new, ref, mask)]
    expected[answered] = shaped_rewards(*rows, beta=0.3)

    rows = [packed(x) for x in (at_the_ends(scores, mask), new, ref, mask)]
    found = shaped_rewards(*rows, beta=0.3, sequence_ids=packed_ids(device))

    assert torch.equal(found, packed(expected).nan_to_num())


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"slot": torch.zeros(2).long(), "sequence_ids": torch.zeros(2, 3).long(), "scores": torch.ones(2, 3)},
            ValueError,
            "slot cannot be given with sequence_ids: a packed row has many answers, each with its score at its "
            "last counted token; leave slot out",
        ),
        ({"slot": torch.zeros(2)}, TypeError, "slot must be an int64 tensor, got torch.float32; write slot.long()"),
        ({"slot": 0}, TypeError, "slot must be a torch.Tensor, got int; write torch.tensor(slot)"),
        (
            {"slot": torch.zeros(3).long()},
            ValueError,
            "slot must have the shape of logprobs without its last dimension, the tokens, got [3] and [2, 3]; "
            "give one index for each answer",
        ),
        (
            {"scores": torch.ones(3)},
            ValueError,
            "scores must have the shape of logprobs without its last dimension, the tokens, got [3] and [2, 3]; "
            "give one score for each answer",
        ),
        (
            {"sequence_ids": torch.zeros(2, 3).long()},
            ValueError,
            "logprobs and scores must have the same shape, got [2, 3] and [2]; nothing is broadcast: expand or "
            "index one of them first",
        ),
        (
            {"sequence_ids": torch.zeros(2, 3), "scores": torch.ones(2, 3)},
            TypeError,
            "sequence_ids must be an int64 tensor, got torch.float32; write sequence_ids.long()",
        ),
        ({"beta": -0.1}, ValueError, "beta must be finite and at least 0, got -0.1"),
    ],
)  # fmt: skip
def test_what_does_not_fit(arguments, error, message):
    arguments = {"scores": torch.ones(2), "beta": 0.1, **arguments}
    logprobs, mask = torch.zeros(2, 3), torch.ones(2, 3).bool()
    with pytest.raises(error) as raised:
        shaped_rewards(logprobs=logprobs, ref_logprobs=logprobs, mask=mask, **arguments)
    assert str(raised.value) == message


EMPTY_ANSWER = (
    torch.ones(3),
    -torch.ones(3, 2),
    -torch.ones(3, 2),
    torch.tensor([[True, True], [False, False], [True, False]]),
)


def test_an_answer_without_a_token_is_an_error_where_looking_is_free():
    with pytest.raises(ValueError) as raised:
        shaped_rewards(*EMPTY_ANSWER, beta=0.1)
    assert str(raised.value) == (
        "mask has no counted token in the answer at index [1], so its score would be lost; "
        "leave the answer out"
    )


@pytest.mark.parametrize(("shape", "index"), [((), "[]"), ((2, 3), "[1, 2]")])
def test_the_error_names_the_answer(shape, index):
    mask = torch.ones(*shape, 4, dtype=torch.bool)
    mask[(-1,) * len(shape)] = False
    arguments = torch.ones(shape), torch.ones(*shape, 4), torch.ones(*shape, 4), mask
    with pytest.raises(ValueError, match=re.escape(f"in the answer at index {index}, so")):
        shaped_rewards(*arguments, beta=0.1)
    slot = torch.full(shape, 2)
    with pytest.raises(ValueError, match=re.escape(f"in the answer at index {index}, got 2, so")):
        shaped_rewards(*arguments, beta=0.1, slot=slot)


def test_the_first_of_several_answers_is_named():
    logprobs, mask = (
        torch.zeros(4, 2),
        torch.tensor([[True, True], [False, False], [True, True], [False, False]]),
    )
    with pytest.raises(ValueError, match=r"in the answer at index \[1\], so"):
        shaped_rewards(torch.ones(4), logprobs, logprobs, mask, beta=0.1)
    with pytest.raises(ValueError, match=r"in the answer at index \[1\], got 3, so"):
        shaped_rewards(torch.ones(4), logprobs, logprobs, mask, beta=0.1, slot=torch.tensor([0, 3, 1, 5]))


def test_an_answer_without_a_token_is_nan_in_a_compiled_graph(device):
    arguments = [x.to(device) for x in EMPTY_ANSWER]
    result = torch.compile(shaped_rewards, fullgraph=True, backend="aot_eager")(*arguments, beta=0.1)
    assert result.isnan().tolist() == [[False, False], [True, True], [False, False]]
    assert result[[0, 2]].tolist() == [[0, 1], [1, 0]]


def test_an_answer_without_a_token_is_nan_where_looking_would_wait(device):
    arguments = [x.to(device) for x in EMPTY_ANSWER]
    if device == "cpu":
        with pytest.raises(ValueError, match="no counted token"):
            shaped_rewards(*arguments, beta=0.1)
    else:
        result = shaped_rewards(*arguments, beta=0.1)
        assert result.isnan().tolist() == [[False, False], [True, True], [False, False]]
