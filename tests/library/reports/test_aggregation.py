"""Public bug reports about the reduction of losses: each with a minimal input and the right answer by hand.

The name of a test is the project and the number of its report.
"""

import pytest
import torch

from ppo_core import aggregate, batch_count, masked_mean, masked_sum

MODES = ["token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant"]
NAN, INF = float("nan"), float("inf")


def tensor(x, device):
    return torch.tensor(x, dtype=torch.float64, device=device)


def every(x):
    return torch.ones_like(x, dtype=torch.bool)


def accumulated(pieces, mode, denominator):
    """Reduce every piece with the denominator of the whole, and add up."""
    return sum(aggregate(*piece, mode=mode, denominator=denominator) for piece in pieces)


def pieces_of(rows, device):
    """One micro-batch for each list of losses, all counted."""
    return [(tensor(row, device), every(tensor(row, device))) for row in rows]


# --- the mean of the means is not the mean ---


def test_verl_593_a_token_mean_is_no_mean_of_means(device):
    # Micro-batches of 1 and 3 tokens: (3 + 7 + 7 + 7) / 4 = 6. The mean of the means 3 and 7 is 5.
    pieces = pieces_of([[3.0], [7.0, 7.0, 7.0]], device)
    count = sum(batch_count(mask, mode="token_mean") for _, mask in pieces)
    assert accumulated(pieces, "token_mean", count).item() == 6


def test_openrlhf_1249_tokens_weigh_the_same_in_every_micro_batch(device):
    # 1 to 7: the sum is 28, the mean 4. In micro-batches of 2 and 5 the means are 1.5 and 5, their mean 3.25.
    pieces = pieces_of([[1.0, 2.0], [3.0, 4.0, 5.0, 6.0, 7.0]], device)
    assert accumulated(pieces, "token_mean", 7).item() == 4


def test_open_instruct_1137_accumulation_leaves_a_token_mean_a_token_mean(device):
    # The same seven tokens one by one: a mean over samples would weigh each micro-batch alike.
    pieces = pieces_of([[float(k)] for k in range(1, 8)], device)
    assert accumulated(pieces, "token_mean", 7).item() == pytest.approx(4, rel=1e-15)


def test_prime_rl_102_per_token_is_not_per_sample(device):
    # Samples of 1 and 3 tokens with the losses 4 and 0: per token 4/4, per sample (4 + 0) / 2. Both have names.
    losses, mask = tensor([[4.0, 9.0, 9.0], [0.0, 0.0, 0.0]], device), [[True, False, False], [True] * 3]
    mask = torch.tensor(mask, device=device)
    assert aggregate(losses, mask, mode="token_mean").item() == 1
    assert aggregate(losses, mask, mode="sequence_mean_token_mean").item() == 2


def test_nemo_3791_every_term_is_divided_by_the_count_of_the_whole(device):
    # Micro-batches of 1 and 3 tokens, losses 4 and 0, 0, 0: 4/4 = 1. Local means add up to 4, and average to 2.
    pieces = pieces_of([[4.0], [0.0, 0.0, 0.0]], device)
    count = sum(batch_count(mask, mode="token_mean") for _, mask in pieces)
    assert accumulated(pieces, "token_mean", count).item() == 1


def test_verl_4778_a_metric_adds_up_as_the_loss_does(device):
    # Values that are divided by the count of the whole are added over the steps of an accumulation; their
    # mean would divide once more, by the number of steps. And no gradient hangs on a metric.
    pieces = pieces_of([[4.0], [0.0, 0.0, 0.0]], device)
    shares = [aggregate(*piece, mode="token_mean", denominator=4) for piece in pieces]
    assert [share.item() for share in shares] == [1, 0]
    assert sum(shares).item() == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_trl_5619_the_gradient_does_not_depend_on_the_steps_of_accumulation(mode, steps, device):
    # Four sequences of 1, 3, 2 and 4 tokens. By hand: what a token weighs, over the count of the whole.
    lengths = [1, 3, 2, 4]
    mask = torch.tensor([[t < length for t in range(4)] for length in lengths], device=device)
    losses = torch.arange(16, dtype=torch.float64, device=device).reshape(4, 4).requires_grad_()
    whole = {"token_mean": 10, "constant": 16}.get(mode, 4)
    pieces = zip(losses.chunk(steps), mask.chunk(steps), strict=True)
    (gradient,) = torch.autograd.grad(accumulated(pieces, mode, whole), losses)
    for row, length in enumerate(lengths):
        weight = 1 / length if mode == "sequence_mean_token_mean" else 1
        expected = [weight / whole if t < length else 0 for t in range(4)]
        assert gradient[row].tolist() == pytest.approx(expected, rel=1e-15)


def test_ms_swift_10117_nothing_is_divided_by_the_steps_once_more(device):
    # Four steps of one token, losses 1, 2, 3 and 6: 12/4 = 3. Divided by the steps again it would be 3/4.
    pieces = pieces_of([[1.0], [2.0], [3.0], [6.0]], device)
    assert accumulated(pieces, "token_mean", 4).item() == 3
    whole = tensor([1.0, 2.0, 3.0, 6.0], device)
    assert aggregate(whole, every(whole), mode="token_mean").item() == 3


def test_trl_6369_what_is_left_out_of_the_sum_is_left_out_of_the_count(device):
    # An answer that was cut off is masked. It adds nothing to the sum, and must not add to the denominator:
    # (2 + 4) / 2 = 3, not 6/4.
    losses = tensor([[2.0, 4.0], [8.0, 8.0]], device)
    complete = torch.tensor([True, False], device=device)
    mask = complete[:, None].expand(2, 2)
    count = batch_count(mask, mode="token_mean")
    assert count.item() == 2
    assert aggregate(losses, mask, mode="token_mean", denominator=count).item() == 3


# --- the modes are what their names say ---


def test_verl_931_a_token_sum_is_not_divided_by_the_length(device):
    losses = tensor([[1.0, 2.0, 3.0]], device)
    assert aggregate(losses, every(losses), mode="sequence_mean_token_sum").item() == 6
    assert aggregate(losses, every(losses), mode="sequence_mean_token_mean").item() == 2


def test_verl_5366_the_constant_has_the_mean_over_sequences_in_it(device):
    # Sums 6 and 10, two sequences, a width of 3: (6 + 10) / 2 / 3 = 8/3.
    losses = tensor([[1.0, 2.0, 3.0], [10.0, 0.0, 0.0]], device)
    mask = torch.tensor([[True, True, True], [True, False, False]], device=device)
    result = aggregate(losses, mask, mode="constant", denominator=2 * 3)
    assert result.item() == pytest.approx(8 / 3, rel=1e-15)


def test_verl_3741_the_constant_does_not_follow_the_padding(device):
    # Padded to a width of 5, the same loss: the constant is what the caller said.
    losses = tensor([[1.0, 2.0, 3.0, 0.0, 0.0], [10.0, 0.0, 0.0, 0.0, 0.0]], device)
    mask = torch.tensor([[True, True, True, False, False], [True] + [False] * 4], device=device)
    result = aggregate(losses, mask, mode="constant", denominator=2 * 3)
    assert result.item() == pytest.approx(8 / 3, rel=1e-15)


def test_trl_6654_a_sum_per_sequence_is_taken_over_its_own_tokens(device):
    # Lengths 2 and 1, padded to 3. Sums 3 + 3 and 1: (6 + 1) / 2. A length times a mean over the width would
    # give (2 * 6/3 + 1 * 1/3) / 2 = 13/6, a weight of the length squared.
    losses = tensor([[3.0, 3.0, 0.0], [1.0, 0.0, 0.0]], device)
    mask = torch.tensor([[True, True, False], [True, False, False]], device=device)
    assert aggregate(losses, mask, mode="sequence_mean_token_sum").item() == 3.5


def test_skyrl_1305_what_is_not_counted_is_not_averaged(device):
    x = tensor([1.0, 1.0, 9.0, 9.0], device)
    mask = torch.tensor([True, True, False, False], device=device)
    assert masked_mean(x, mask).item() == 1
    assert aggregate(x, mask, mode="token_mean").item() == 1


def test_trl_469_padding_is_in_no_mean(device):
    # Losses 1 and 3, and five tokens of padding whose losses are whatever the model says of them.
    losses = tensor([[1.0, 3.0, 7.0, -2.0, 50.0, 0.5, 8.0]], device)
    mask = torch.tensor([[True, True] + [False] * 5], device=device)
    for mode in MODES[:2]:
        assert aggregate(losses, mask, mode=mode).item() == 2


# --- shapes ---


def test_trl_3823_and_6042_one_loss_per_sequence_is_not_spread_over_a_mask(device):
    # Sequences of 1 and 3 tokens with the losses 1 and 0. Shape [2, 1] against [2, 3] would broadcast, and
    # weigh each sequence by its length.
    per_sequence = tensor([[1.0], [0.0]], device)
    mask = torch.tensor([[True, False, False], [True, True, True]], device=device)
    for mode in MODES:
        with pytest.raises(ValueError, match=r"^losses and mask must have the same shape, got \[2, 1\] and"):
            aggregate(per_sequence, mask, mode=mode, denominator=1)
    # Spread on purpose, each mode says which weight is meant: (1 + 0) / 2, and 1/4.
    losses = per_sequence.expand(2, 3)
    assert aggregate(losses, mask, mode="sequence_mean_token_mean").item() == 0.5
    assert aggregate(losses, mask, mode="token_mean").item() == 0.25


def test_verl_2506_advantages_are_no_mask(device):
    # Tensors passed by place, one too early: a mask of floats is refused, and so is everything by place.
    losses = tensor([[1.0, 2.0]], device)
    with pytest.raises(TypeError, match="^mask must be a bool tensor"):
        aggregate(losses, tensor([[0.5, -0.5]], device), mode="token_mean")
    with pytest.raises(TypeError, match="positional argument"):
        aggregate(losses, every(losses), "token_mean")


# --- NaN, infinity, empty masks ---


def test_verl_2377_nan_outside_the_mask(device):
    x = tensor([1.0, 2.0, NAN, 4.0], device)
    mask = torch.tensor([True, False, False, True], device=device)
    assert masked_mean(x, mask).item() == 2.5
    assert masked_sum(x, mask).item() == 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("under", [NAN, INF, -INF])
def test_verl_6349_nan_outside_the_mask_in_every_mode(mode, under, device):
    # Sequences of 2 and 1 tokens: losses 1 and 3, and 8.
    losses = tensor([[1.0, 3.0, under], [8.0, under, under]], device).requires_grad_()
    mask = torch.tensor([[True, True, False], [True, False, False]], device=device)
    result = aggregate(losses, mask, mode=mode, denominator=6 if mode == "constant" else None)
    expected = {"token_mean": 12 / 3, "sequence_mean_token_mean": (2 + 8) / 2, "constant": 12 / 6}
    assert result.item() == expected.get(mode, (4 + 8) / 2)
    (gradient,) = torch.autograd.grad(result, losses)
    assert gradient.isfinite().all()
    assert (gradient[~mask] == 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_verl_782_and_openrlhf_583_nothing_counted_gives_zero_and_no_gradient(mode, device):
    # A quotient that is replaced where the count is 0 is right forward, and NaN backward: 0 times infinity.
    losses = tensor([[1.0, NAN], [INF, 2.0]], device).requires_grad_()
    nothing = torch.zeros_like(losses, dtype=torch.bool)
    result = aggregate(losses, nothing, mode=mode, denominator=6 if mode == "constant" else None)
    assert result.item() == 0
    (gradient,) = torch.autograd.grad(result, losses)
    assert gradient.tolist() == [[0, 0], [0, 0]]
    mean = masked_mean(losses, nothing)
    assert mean.item() == 0
    assert torch.autograd.grad(mean, losses)[0].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("mode", MODES)
def test_verl_498_and_skyrl_1635_a_micro_batch_without_a_counted_token_adds_nothing(mode, device):
    # The second of two micro-batches is empty: the whole is what the first gives alone.
    losses = tensor([[1.0, 3.0], [5.0, NAN]], device).requires_grad_()
    mask = torch.tensor([[True, True], [False, False]], device=device)
    if mode == "constant":
        count = 4
    else:
        count = sum(batch_count(part, mode=mode) for part in mask.chunk(2))
        assert count.item() == (2 if mode == "token_mean" else 1)
    total = accumulated(zip(losses.chunk(2), mask.chunk(2), strict=True), mode, count)
    expected = {"token_mean": 4 / 2, "sequence_mean_token_mean": 2, "sequence_mean_token_sum": 4}
    assert total.item() == expected.get(mode, 4 / 4)
    (gradient,) = torch.autograd.grad(total, losses)
    assert gradient[1].tolist() == [0, 0]
    assert gradient[0].isfinite().all()


@pytest.mark.parametrize("mode", MODES)
def test_verl_6349_and_nemo_4120_a_nan_on_a_counted_token_is_not_hidden(mode, device):
    losses = tensor([[1.0, NAN]], device)
    result = aggregate(losses, every(losses), mode=mode, denominator=6 if mode == "constant" else None)
    assert result.isnan()
