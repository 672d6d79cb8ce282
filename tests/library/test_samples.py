"""What the samples draw, where a tensor holds no floating-point numbers."""

import pytest
import torch

from .samples import Sample, draw, tensors_of

PACKED = Sample(
    "packed",
    ("scores", "slot", "logprobs", "sequence_ids", "terminated", "mask"),
    (),
    per_answer=("scores", "slot", "terminated"),
    ranges={"scores": (5, 6)},
)


def test_types_and_shapes():
    tensors = tensors_of(PACKED, (2, 3, 4), dtype=torch.float32)
    types = [torch.float32, torch.int64, torch.float32, torch.int64, torch.bool, torch.bool]
    assert [tensor.dtype for tensor in tensors.values()] == types
    assert [tensor.shape for tensor in tensors.values()] == [
        (2, 3),
        (2, 3),
        (2, 3, 4),
        (2, 3, 4),
        (2, 3),
        (2, 3, 4),
    ]
    assert PACKED.numbers == ("scores", "logprobs")
    assert ((tensors["scores"] > 5) & (tensors["scores"] < 6)).all()
    assert ((tensors["logprobs"] > -3) & (tensors["logprobs"] < 0)).all()


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0)], ids=str)
def test_shapes_without_tokens(shape):
    assert tensors_of(PACKED, shape)["sequence_ids"].shape == shape
    assert tensors_of(PACKED, shape)["slot"].shape == shape[:-1]


@pytest.mark.parametrize("seed", range(5))
def test_a_slot_is_a_counted_token(seed):
    data = draw(PACKED, (4, 6), seed)
    assert all(row[slot] for row, slot in zip(data["mask"], data["slot"], strict=True))


def test_sequence_ids_number_the_sequences_of_a_row():
    rows = [row for seed in range(5) for row in draw(PACKED, (4, 6), seed)["sequence_ids"]]
    assert all(row[0] == 0 for row in rows)
    assert {after - before for row in rows for before, after in zip(row, row[1:], strict=False)} == {0, 1}
    assert len({tuple(row) for row in rows}) > 5
