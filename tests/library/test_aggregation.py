import math
import random

import pytest
import torch

import reference
from ppo_core import aggregate, batch_count, checks
from ppo_core.aggregation import token_weights

MODES = ["token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant"]
LOSSES = [[1.0, 2.0, 3.0], [10.0, 0.0, 0.0]]
MASK = [[True, True, True], [True, False, False]]


def tensors(device, losses=LOSSES, mask=MASK):
    losses = torch.tensor(losses, dtype=torch.float64, device=device, requires_grad=True)
    return losses, torch.tensor(mask, device=device)


@pytest.mark.parametrize(
    ("mode", "denominator", "value", "gradient"),
    [
        ("token_mean", None, 16 / 4, [[1 / 4, 1 / 4, 1 / 4], [1 / 4, 0, 0]]),
        ("token_mean", 8, 16 / 8, [[1 / 8, 1 / 8, 1 / 8], [1 / 8, 0, 0]]),
        ("sequence_mean_token_mean", None, (2 + 10) / 2, [[1 / 6, 1 / 6, 1 / 6], [1 / 2, 0, 0]]),
        ("sequence_mean_token_mean", 8, (2 + 10) / 8, [[1 / 24, 1 / 24, 1 / 24], [1 / 8, 0, 0]]),
        ("sequence_mean_token_sum", None, (6 + 10) / 2, [[1 / 2, 1 / 2, 1 / 2], [1 / 2, 0, 0]]),
        ("sequence_mean_token_sum", 8, (6 + 10) / 8, [[1 / 8, 1 / 8, 1 / 8], [1 / 8, 0, 0]]),
        ("constant", 6, 16 / 6, [[1 / 6, 1 / 6, 1 / 6], [1 / 6, 0, 0]]),
        ("constant", 0.5, 32, [[2, 2, 2], [2, 0, 0]]),
    ],
)
def test_by_hand(mode, denominator, value, gradient, device):
    losses, mask = tensors(device)
    result = aggregate(losses, mask, mode=mode, denominator=denominator)
    assert result.item() == pytest.approx(value, rel=1e-15)
    (found,) = torch.autograd.grad(result, losses)
    assert found.tolist() == [pytest.approx(row, rel=1e-15) for row in gradient]


@pytest.mark.parametrize("mode", MODES)
def test_a_sequence_without_a_token_does_not_count(mode, device):
    denominator = 6 if mode == "constant" else None
    expected = aggregate(*tensors(device), mode=mode, denominator=denominator)
    padded = tensors(device, [*LOSSES, [7.0, 7.0, 7.0]], [*MASK, [False, False, False]])
    assert aggregate(*padded, mode=mode, denominator=denominator).item() == expected.item()


@pytest.mark.parametrize("mode", MODES)
def test_padding_does_not_count(mode, device):
    denominator = 6 if mode == "constant" else None
    expected = aggregate(*tensors(device), mode=mode, denominator=denominator)
    wider = tensors(device, [[*row, 9.0] for row in LOSSES], [[*row, False] for row in MASK])
    assert aggregate(*wider, mode=mode, denominator=denominator).item() == expected.item()


def added_up(losses, mask, ids, pieces, mode, denominator):
    """Reduce micro-batches of rows, each with the denominator of the whole; return the sum and its gradient."""
    parts = zip(losses.chunk(pieces), mask.chunk(pieces), ids.chunk(pieces), strict=True)
    total = sum(
        aggregate(part, counts, mode=mode, denominator=denominator, sequence_ids=numbers)
        for part, counts, numbers in parts
    )
    return total, torch.autograd.grad(total, losses)[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("pieces", [1, 2, 4, 8])
def test_micro_batches_add_up(mode, packed, pieces, device):
    torch.manual_seed(pieces)
    losses = torch.randn(8, 6, dtype=torch.float64, device=device, requires_grad=True)
    mask = torch.rand(8, 6, device=device) < 0.5
    mask[0], mask[1] = False, True  # a row without a counted token, and one without a hole
    ids = torch.tensor([[0, 0, 0, 1, 2, 2]], device=device).expand(8, 6)
    if not packed:
        ids = torch.zeros_like(ids)  # a row is one sequence
    if mode == "constant":
        whole = 48
        expected = aggregate(losses, mask, mode=mode, denominator=whole, sequence_ids=ids)
    else:
        # No count of the whole batch is ever taken, only those of its pieces.
        counts = zip(mask.chunk(pieces), ids.chunk(pieces), strict=True)
        whole = sum(batch_count(m, mode=mode, sequence_ids=i) for m, i in counts)
        expected = aggregate(losses, mask, mode=mode, sequence_ids=ids)
    total, gradient = added_up(losses, mask, ids, pieces, mode, whole)
    torch.testing.assert_close(total, expected, rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, losses)[0], rtol=1e-14, atol=1e-14)


# --- packed rows ---

# The two sequences of LOSSES in one row, with padding: the third number is that of the padding.
PACKED = ([[1.0, 2.0, 3.0, 10.0, 7.0]], [[True, True, True, True, False]])
PACKED_IDS = [[4, 4, 4, 2, 0]]


@pytest.mark.parametrize(
    ("mode", "denominator", "value", "gradient"),
    [
        ("token_mean", None, 16 / 4, [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0]),
        ("sequence_mean_token_mean", None, (2 + 10) / 2, [1 / 6, 1 / 6, 1 / 6, 1 / 2, 0]),
        ("sequence_mean_token_mean", 8, (2 + 10) / 8, [1 / 24, 1 / 24, 1 / 24, 1 / 8, 0]),
        ("sequence_mean_token_sum", None, (6 + 10) / 2, [1 / 2, 1 / 2, 1 / 2, 1 / 2, 0]),
        ("constant", 6, 16 / 6, [1 / 6, 1 / 6, 1 / 6, 1 / 6, 0]),
    ],
)
def test_a_packed_row_by_hand(mode, denominator, value, gradient, device):
    losses, mask = tensors(device, *PACKED)
    ids = torch.tensor(PACKED_IDS, device=device)
    result = aggregate(losses, mask, mode=mode, denominator=denominator, sequence_ids=ids)
    assert result.item() == pytest.approx(value, rel=1e-15)
    (found,) = torch.autograd.grad(result, losses)
    assert found.tolist() == [pytest.approx(gradient, rel=1e-15)]


@pytest.mark.parametrize("mode", MODES)
def test_packed_rows_are_the_padded_form(mode, device):
    # Sequences of 3, 1, 2 and 4 tokens, two to a row of 6; the second of row 1 has no counted token.
    torch.manual_seed(0)
    lengths = [[3, 1], [2, 4]]
    losses = torch.randn(2, 6, dtype=torch.float64, device=device)
    mask = torch.tensor([[1, 0, 1, 0, 0, 0], [1, 1, 0, 1, 1, 1]], device=device).bool()
    ids = torch.tensor([[0, 0, 0, 1, 2, 2], [0, 0, 1, 1, 1, 1]], device=device)
    padded = torch.zeros(4, 4, dtype=torch.float64, device=device)
    padded_mask = torch.zeros(4, 4, dtype=torch.bool, device=device)
    sequence = 0
    for row, row_lengths in enumerate(lengths):
        start = 0
        for length in row_lengths:
            padded[sequence, :length] = losses[row, start : start + length]
            padded_mask[sequence, :length] = mask[row, start : start + length]
            sequence, start = sequence + 1, start + length
    denominator = 6 if mode == "constant" else None
    found = aggregate(losses, mask, mode=mode, denominator=denominator, sequence_ids=ids)
    expected = aggregate(padded, padded_mask, mode=mode, denominator=denominator)
    assert found.item() == pytest.approx(expected.item(), rel=1e-15)


# --- denominators ---


@pytest.mark.parametrize(
    "kind", [torch.int64, torch.int32, torch.uint8, torch.float16, torch.float32, torch.float64], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_tensor_divides_as_its_number_does(kind, dtype, device):
    losses, mask = tensors(device)
    losses = losses.detach().to(dtype)
    denominator = torch.tensor(8, dtype=kind, device=device)
    result = aggregate(losses, mask, mode="token_mean", denominator=denominator)
    # 16 / 8, in the type of the losses.
    assert (result.item(), result.dtype, result.shape) == (2, dtype, ())


def test_a_count_past_the_range_of_float16_divides_half_precision(device):
    losses = torch.ones(3, dtype=torch.float16, device=device)
    denominator = torch.tensor(300000, device=device)
    result = aggregate(losses, losses > 0, mode="constant", denominator=denominator)
    assert result.item() == pytest.approx(1e-5, rel=1e-7)


def test_no_gradient_reaches_a_denominator(device):
    losses, mask = tensors(device)
    denominator = torch.tensor(4.0, device=device, requires_grad=True)
    aggregate(losses, mask, mode="token_mean", denominator=denominator).backward()
    assert denominator.grad is None
    assert losses.grad is not None


@pytest.mark.parametrize("bad", [0, -4, 0.0, float("nan"), float("inf"), float("-inf")])
def test_a_denominator_that_cannot_be_looked_at_makes_the_loss_nan(bad, device):
    def reduce(losses, mask, denominator):
        return aggregate(losses, mask, mode="token_mean", denominator=denominator)

    compiled = torch.compile(reduce, fullgraph=True, backend="aot_eager")
    losses, mask = tensors(device)
    result = compiled(losses, mask, torch.tensor(bad, device=device))
    assert result.isnan()
    (gradient,) = torch.autograd.grad(result, losses)
    assert gradient[mask].isnan().all()
    assert (gradient[~mask] == 0).all()
    # The same graph with a good one: 16 / 8.
    good = torch.tensor(8 if isinstance(bad, int) else 8.0, device=device)
    assert compiled(losses, mask, good).item() == 2


def test_a_tensor_as_denominator_is_not_waited_for():
    # A tensor on the meta device has no data: a host sync would raise.
    losses, mask = (x.to("meta") for x in tensors("cpu"))
    denominator = torch.tensor(4, device="meta")
    assert aggregate(losses, mask, mode="token_mean", denominator=denominator).shape == ()


# --- the count ---


@pytest.mark.parametrize(
    ("mode", "count"),
    [("token_mean", 5), ("sequence_mean_token_mean", 2), ("sequence_mean_token_sum", 2)],
)
def test_the_count_by_hand(mode, count, device):
    mask = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]], device=device).bool()
    result = batch_count(mask, mode=mode)
    assert (result.item(), result.dtype, result.shape) == (count, torch.int64, ())
    # The same tokens in one row: 1 0 | 1 1 | 0 0 0 0 | 0 1 1 0. Four sequences, three of them with a token.
    ids = torch.tensor([0, 0, 5, 5, 0, 0, 0, 0, 1, 1, 1, 1], device=device)
    in_a_row = batch_count(mask.flatten(), mode=mode, sequence_ids=ids)
    assert in_a_row.item() == (5 if mode == "token_mean" else 3)


@pytest.mark.parametrize("mode", MODES[:3])
@pytest.mark.parametrize("shape", [(5,), (1, 1), (0, 3), (2, 0), (4, 6), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_the_count_agrees_with_its_twin(mode, shape, packed, device):
    rng = random.Random(str(shape))
    for _ in range(5):
        mask = torch.tensor([rng.random() < 0.4 for _ in range(torch.Size(shape).numel())]).bool()
        ids = torch.tensor([rng.randrange(2) for _ in mask], dtype=torch.int64)
        mask, ids = mask.reshape(shape), ids.reshape(shape) if packed else None
        expected = reference.batch_count(
            mask.tolist(), mode=mode, sequence_ids=None if ids is None else ids.tolist()
        )
        found = batch_count(mask.to(device), mode=mode, sequence_ids=None if ids is None else ids.to(device))
        assert found.item() == expected


@pytest.mark.parametrize("mode", MODES[:3])
def test_the_count_is_the_denominator_that_aggregate_takes(mode, device):
    losses, mask = tensors(device)
    count = batch_count(mask, mode=mode)
    given = aggregate(losses, mask, mode=mode, denominator=count)
    assert given.item() == aggregate(losses, mask, mode=mode).item()


def test_the_count_compiles_and_waits_for_nothing(device):
    mask, ids = torch.ones(2, 3, dtype=torch.bool), torch.tensor([[0, 0, 1], [0, 1, 1]])

    def count(mask, ids):
        return batch_count(mask, mode="sequence_mean_token_sum", sequence_ids=ids)

    compiled = torch.compile(count, fullgraph=True, backend="aot_eager")
    assert compiled(mask.to(device), ids.to(device)).item() == 4
    assert count(mask.to("meta"), ids.to("meta")).shape == ()


@pytest.mark.parametrize("mode", MODES[:3])
def test_where_nothing_counts_the_count_is_zero(mode, device):
    losses, mask = tensors(device, [[float("nan"), 1.0]], [[False, False]])
    count = batch_count(mask, mode=mode)
    assert count.item() == 0
    result = aggregate(losses, mask, mode=mode, denominator=count.clamp(min=1))
    assert result.item() == 0
    result.backward()
    assert losses.grad.tolist() == [[0, 0]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("denominator", [None, 3])
@pytest.mark.parametrize("under", [2.0, float("nan"), float("inf")])
def test_an_empty_mask_gives_zero_and_no_gradient(mode, denominator, under, device):
    losses, mask = tensors(device, [[under, 1.0]], [[False, False]])
    if mode == "constant":
        denominator = 3
    result = aggregate(losses, mask, mode=mode, denominator=denominator)
    assert result.item() == 0
    result.backward()
    assert losses.grad.tolist() == [[0, 0]]


def test_a_dimension_more_is_more_sequences(device):
    losses, mask = tensors(device, [LOSSES, LOSSES[::-1]], [MASK, MASK[::-1]])
    assert aggregate(losses, mask, mode="sequence_mean_token_mean").item() == pytest.approx(6, rel=1e-15)


@pytest.mark.parametrize("mode", MODES)
def test_one_token_is_its_own_mean(mode, device):
    losses, mask = tensors(device, [3.0], [True])
    assert aggregate(losses, mask, mode=mode, denominator=1 if mode == "constant" else None).item() == 3


@pytest.mark.parametrize("bad", [0.0, -2.0, math.inf, math.nan])
def test_a_bad_denominator_is_nan_where_nobody_may_look(bad, monkeypatch, device):
    monkeypatch.setattr(checks, "may_look", lambda x: False)
    losses, mask = torch.ones(1, 2, device=device), torch.ones(1, 2, dtype=torch.bool, device=device)

    found = aggregate(losses, mask, mode="token_mean", denominator=torch.tensor(bad, device=device))

    assert math.isnan(found.item())


@pytest.mark.parametrize(
    ("mode", "denominator", "weights"),
    [
        ("token_mean", None, [[1 / 4, 1 / 4, 1 / 4], [1 / 4, 0, 0]]),
        ("sequence_mean_token_mean", None, [[1 / 6, 1 / 6, 1 / 6], [1 / 2, 0, 0]]),
        ("sequence_mean_token_sum", torch.tensor(5), [[1 / 5, 1 / 5, 1 / 5], [1 / 5, 0, 0]]),
        ("constant", 8.0, [[1 / 8, 1 / 8, 1 / 8], [1 / 8, 0, 0]]),
    ],
)
def test_the_weights_of_the_tokens(mode, denominator, weights):
    mask = torch.tensor([[True, True, True], [True, False, False]])
    options = {"mode": mode, "denominator": denominator, "sequence_ids": None}
    assert token_weights(mask, torch.float64, **options).tolist() == weights
    # They are the gradient of what they stand for.
    losses, _ = tensors("cpu")
    aggregate(losses, mask, **options).backward()
    torch.testing.assert_close(losses.grad, torch.tensor(weights, dtype=torch.float64), rtol=1e-15, atol=0)
