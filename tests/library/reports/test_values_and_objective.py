"""Public bug reports about the critic's loss and the whole objective, with the right answers by hand."""

import math

import pytest
import torch

from ppo_core import aggregate, batch_count, clipped_value_loss, ppo_objective, value_loss

NAN, INF = math.nan, math.inf
WEIGHTS = {"epsilon": 0.2, "value_coef": 0.5, "entropy_coef": 0.25, "beta": 0.125, "mode": "token_mean"}


def tensor(x, device):
    return torch.tensor(x, dtype=torch.float64, device=device)


def test_verl_2016_the_half_is_there_when_it_is_asked_for(device):
    # Value 0, return 2: half of 4 is 2. Without the half, 4.
    values, returns = tensor([0.0], device), tensor([2.0], device)
    assert value_loss(values, returns, factor=0.5).item() == 2
    assert value_loss(values, returns, factor=1).item() == 4
    # The clipped form too: kept within 1 of the old value 0, the value 3 is 1, and 2 off the return 3.
    values, old, returns = tensor([3.0], device), tensor([0.0], device), tensor([3.0], device)
    assert clipped_value_loss(values, old, returns, epsilon=1, factor=0.5).item() == 2
    assert clipped_value_loss(values, old, returns, epsilon=1, factor=1).item() == 4


@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_verl_6957_the_critics_loss_does_not_grow_with_the_micro_batches(pieces, device):
    # Lengths 1, 3, 2 and 2; every error is 1, so that half the square is 1/2 however it is split. The sum of
    # local means would be pieces / 2.
    values = torch.ones(4, 3, dtype=torch.float64, device=device, requires_grad=True)
    mask = torch.tensor([[t < length for t in range(3)] for length in (1, 3, 2, 2)], device=device)
    returns = torch.where(mask, 0.0, tensor(NAN, device))
    count = sum(batch_count(part, mode="token_mean") for part in mask.chunk(pieces))
    total = sum(
        aggregate(value_loss(v, r, factor=0.5, mask=m), m, mode="token_mean", denominator=count)
        for v, r, m in zip(values.chunk(pieces), returns.chunk(pieces), mask.chunk(pieces), strict=True)
    )
    assert total.item() == 0.5
    (gradient,) = torch.autograd.grad(total, values)
    # The error over the number of tokens.
    assert gradient.tolist() == torch.where(mask, 1 / 8, 0.0).tolist()


@pytest.mark.parametrize("under", [NAN, INF, -INF, 1e300])
def test_verl_498_nothing_under_the_mask_reaches_the_critic(under, device):
    # The critic's value and its target of a token of padding: any number at all.
    values = tensor([1.0, under], device).requires_grad_()
    old, returns = tensor([1.0, under], device), tensor([3.0, under], device)
    mask = torch.tensor([True, False], device=device)
    for losses in (
        value_loss(values, returns, factor=0.5, mask=mask),
        clipped_value_loss(values, old, returns, epsilon=0.5, factor=0.5, mask=mask),
    ):
        assert losses.tolist() == [2, 0]
        (gradient,) = torch.autograd.grad(losses.sum(), values)
        assert gradient.tolist() == [-2, 0]


def objective(device, mask, **change):
    """Two tokens: log-ratios 0 and 200, to the reference 0 and -200; an advantage, a value and an entropy."""
    rows = {
        "logprobs": [0.0, 200.0],
        "old_logprobs": [0.0, 0.0],
        "ref_logprobs": [0.0, 400.0],
        "advantages": [3.0, -1.0],
        "values": [1.0, NAN],
        "returns": [3.0, INF],
        "entropies": [2.0, NAN],
    }
    tensors = {name: tensor([row], device).float() for name, row in rows.items()}
    leaves = [tensors[name].requires_grad_() for name in ("logprobs", "values", "entropies")]
    terms = ppo_objective(**tensors, mask=torch.tensor([mask], device=device), **{**WEIGHTS, **change})
    return terms, torch.autograd.grad(terms.loss, leaves)


def test_nemo_4120_an_overflow_under_the_mask_reaches_no_term(device):
    terms, gradients = objective(device, [True, False])
    # -3; half of 4; 2; 0. And -3 + 1/2 * 2 - 1/4 * 2 + 0 = -5/2.
    assert [term.item() for term in terms] == [-2.5, -3, 2, 2, 0]
    # -A, 1/2 * (1 - 3), and -1/4; nothing for the token under the mask.
    assert [gradient.tolist() for gradient in gradients] == [[[-3, 0]], [[-1, 0]], [[-0.25, 0]]]


def test_verl_782_and_skyrl_1635_no_counted_token_makes_no_term_nan(device):
    terms, gradients = objective(device, [False, False])
    assert [term.item() for term in terms] == [0] * 5
    assert [gradient.tolist() for gradient in gradients] == [[[0, 0]]] * 3


def test_nemo_3791_every_term_of_the_objective_is_divided_by_the_same_count(device):
    # Micro-batches of 1 and 3 tokens. Losses of the critic 8, 0, 0, 0; entropies 4, 0, 0, 0: means 2 and 1. If
    # one term were divided by its own count, it would be 8 or 4.
    rows = [[4.0], [0.0, 0.0, 0.0]]
    totals = torch.zeros(5, dtype=torch.float64, device=device)
    for row in rows:
        x, zero = tensor([row], device), torch.zeros(1, len(row), dtype=torch.float64, device=device)
        every = torch.ones_like(zero, dtype=torch.bool)
        totals += torch.stack(
            ppo_objective(zero, zero, zero, zero, x, zero, x, every, **WEIGHTS, denominator=4)
        )
    # 1/2 * 2 - 1/4 * 1 = 3/4.
    assert totals.tolist() == [0.75, 0, 2, 1, 0]


def test_slime_2247_the_dual_clip_reaches_the_loss(device):
    # Ratios 2, 2 and 1/2, A = 2, -2 and 2, epsilon 1/4, c = 3/2: -5/4 * 2, 3/2 * 2 and -1/2 * 2. Without the
    # dual clip the second is 2 * 2.
    logprobs = tensor([[2.0, 2.0, 0.5]], device).log()
    zero, A = torch.zeros_like(logprobs), tensor([[2.0, -2.0, 2.0]], device)
    every = torch.ones_like(zero, dtype=torch.bool)
    call = {**WEIGHTS, "epsilon": 0.25, "mode": "constant", "denominator": 1}
    with_it = ppo_objective(logprobs, zero, logprobs, A, zero, zero, zero, every, **call, dual_clip=1.5)
    without = ppo_objective(logprobs, zero, logprobs, A, zero, zero, zero, every, **call)
    assert with_it.policy.item() == pytest.approx(-2.5 + 3 - 1, rel=1e-15)
    assert without.policy.item() == pytest.approx(-2.5 + 4 - 1, rel=1e-15)
