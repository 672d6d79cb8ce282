import pytest
import torch

from ppo_core import aggregate

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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pieces", [1, 2, 3, 6])
def test_micro_batches_add_up(mode, pieces, device):
    torch.manual_seed(pieces)
    losses = torch.randn(6, 5, dtype=torch.float64, device=device, requires_grad=True)
    mask = torch.rand(6, 5, device=device) < 0.5
    mask[0], mask[1] = False, True
    whole = 30 if mode == "constant" else None
    expected = aggregate(losses, mask, mode=mode, denominator=whole)
    sequences, tokens = int(mask.any(-1).sum()), int(mask.sum())
    assert sequences < 6
    denominator = {"token_mean": tokens, "constant": 30}.get(mode, sequences)
    total = sum(
        aggregate(part, counts, mode=mode, denominator=denominator)
        for part, counts in zip(losses.chunk(pieces), mask.chunk(pieces), strict=True)
    )
    torch.testing.assert_close(total, expected, rtol=1e-14, atol=1e-14)
    for one, other in zip(
        torch.autograd.grad(total, losses), torch.autograd.grad(expected, losses), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-14, atol=1e-14)


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
