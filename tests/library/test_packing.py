"""Packed rows: which tokens belong together. Expected values are counted by hand."""

import random

import pytest
import torch

import reference
from ppo_core import packing, sequence_ids_from_lengths

IDS = torch.tensor([[5, 5, 3, 3, 3, 9], [0, 0, 0, 0, 1, 1]])
MASK = torch.tensor([[1, 0, 1, 1, 0, 0], [1, 1, 0, 1, 0, 1]]).bool()


@pytest.mark.parametrize(
    ("lengths", "tokens", "expected"),
    [
        ([0, 2, 5], 6, [0, 0, 1, 1, 1, 2]),
        ([0, 2, 5], 5, [0, 0, 1, 1, 1]),
        ([0], 3, [0, 0, 0]),
        ([0, 3], 3, [0, 0, 0]),
        ([0, 1, 1, 3], 4, [0, 2, 2, 3]),  # the second sequence is empty
        ([0, 0], 0, []),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_numbers_from_lengths(lengths, tokens, expected, dtype, device):
    found = sequence_ids_from_lengths(torch.tensor(lengths, dtype=dtype, device=device), tokens=tokens)

    assert found.dtype == torch.int64
    assert found.tolist() == expected


def test_numbers_agree_with_their_twin(device):
    rng = random.Random(0)
    for _ in range(20):
        ends = sorted(rng.randrange(9) for _ in range(rng.randrange(4)))
        tokens = rng.randrange(max(ends, default=0), 12)
        found = sequence_ids_from_lengths(torch.tensor([0, *ends], device=device), tokens=tokens)
        assert found.tolist() == reference.sequence_ids_from_lengths([0, *ends], tokens=tokens)


def test_numbers_compile_and_wait_for_nothing(device):
    def number(lengths):
        return sequence_ids_from_lengths(lengths, tokens=6)

    compiled = torch.compile(number, fullgraph=True, backend="aot_eager")
    assert compiled(torch.tensor([0, 2, 5], device=device)).tolist() == [0, 0, 1, 1, 1, 2]
    assert number(torch.tensor([0, 2, 5], device="meta")).shape == (6,)


@pytest.mark.parametrize(
    ("lengths", "tokens", "error", "message"),
    [
        (torch.tensor([1, 2]), 3, ValueError, "must begin with 0, never fall and end at 3 tokens or before, got [1, 2]"),
        (torch.tensor([0, 4]), 3, ValueError, "must begin with 0, never fall and end at 3 tokens or before, got [0, 4]"),
        (torch.tensor([0, 2, 1]), 3, ValueError, "must begin with 0, never fall and end at 3 tokens or before, got [0, 2, 1]"),
        (torch.tensor([[0, 2]]), 3, ValueError, "must have the shape [N + 1] for N sequences, got [1, 2]"),
        (torch.tensor([], dtype=torch.int64), 3, ValueError, "must have the shape [N + 1] for N sequences, got [0]"),
        (torch.tensor([0.0, 2.0]), 3, TypeError, "must be an int64 or int32 tensor, got torch.float32; write cumulative_lengths.long()"),
        ([0, 2], 3, TypeError, "must be a torch.Tensor, got list; write torch.tensor(cumulative_lengths)"),
    ],
)  # fmt: skip
def test_bad_lengths(lengths, tokens, error, message):
    with pytest.raises(error) as raised:
        sequence_ids_from_lengths(lengths, tokens=tokens)

    assert str(raised.value) == f"cumulative_lengths {message}"


def test_a_bad_number_of_tokens():
    with pytest.raises(ValueError, match=r"^tokens must be a whole number of at least 0, got -1$"):
        sequence_ids_from_lengths(torch.tensor([0, 2]), tokens=-1)


def test_sequences_are_numbered_in_their_order_in_the_row():
    assert packing.places_of_sequences(IDS).tolist() == [[0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 1, 1]]
    # Equal numbers apart from each other are two sequences.
    assert packing.places_of_sequences(torch.tensor([1, 2, 1])).tolist() == [0, 1, 2]
    assert packing.places_of_sequences(torch.zeros(2, 0, dtype=torch.int64)).shape == (2, 0)


def test_totals_stand_at_the_place_of_their_sequence():
    totals = packing.sequence_totals(MASK.long(), IDS)

    assert totals.tolist() == [[1, 2, 0, 0, 0, 0], [3, 1, 0, 0, 0, 0]]
    assert packing.at_each_token(totals, IDS, MASK).tolist() == [[1, 1, 2, 2, 2, 0], [3, 3, 3, 3, 1, 1]]


def test_without_numbers_a_row_is_one_sequence():
    totals = packing.sequence_totals(MASK.long(), None)

    assert totals.tolist() == [[3], [4]]
    assert packing.at_each_token(totals, None, MASK).tolist() == [[3] * 6, [4] * 6]


def test_the_last_counted_token_of_each_sequence():
    assert packing.last_of_sequence(MASK, IDS).long().tolist() == [[1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 1]]
    assert packing.last_of_sequence(MASK, None).long().tolist() == [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]]


def test_gradients_pass_through_the_totals():
    x = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 0, 1]])
    spread = packing.at_each_token(packing.sequence_totals(x, ids), ids, x)
    (slope,) = torch.autograd.grad((spread * torch.tensor([[1.0, 10.0, 100.0]])).sum(), x)

    assert spread.tolist() == [[3, 3, 3]]
    # Each of the first two stands in the totals at both of their places.
    assert slope.tolist() == [[11, 11, 100]]
