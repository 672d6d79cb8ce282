"""Public bug reports about batches on many ranks: each with a minimal input and the right answer by hand.

The name of a test is the project and the number of its report.
"""

import pytest
import torch

from ppo_core import aggregate, global_sum, undo_mean_over_ranks, whiten

from ..ranks import on_ranks


@pytest.mark.parametrize("shares", [[9], [4, 5], [3, 3, 3], [4, 5, 0], [0, 1, 0, 8]], ids=str)
def test_slime_2235_and_miles_3229_a_split_sequence_moves_neither_mean_nor_deviation(shares, device):
    # One sequence of nine tokens, 1 to 9, in pieces as context parallelism makes them. Mean 5, sum of squares
    # 2 (16 + 9 + 4 + 1) = 60, over 8 it is 7.5: the first becomes -4 / sqrt 7.5 = -1.460593. Whitened alone, the
    # piece 1 to 4 would have the mean 2.5. The piece without a token must take part, or the others wait for it.
    x = torch.arange(1.0, 10.0, dtype=torch.float64, device=device)
    mask = torch.ones(9, dtype=torch.bool, device=device)

    def call(rank, group):
        return whiten(x.split(shares)[rank], mask.split(shares)[rank], ddof=1, eps=1e-12, group=group)

    found = torch.cat(on_ranks(len(shares), call)).tolist()
    assert found[0] == pytest.approx(-1.460593, abs=1e-6)
    assert found == pytest.approx([(n - 5) / 7.5**0.5 for n in range(1, 10)], abs=1e-11)


@pytest.mark.parametrize("shares", [[3], [1, 2], [1, 1, 1]], ids=str)
def test_trlx_the_divisor_does_not_depend_on_the_number_of_processes(shares, device):
    # trlx divides by the count less one in one process, and by the count in several. 1, 2, 3: over 2 the
    # deviation is 1, over 3 it is sqrt(2/3), and 1 / sqrt(2/3) = 1.224745.
    x, mask = torch.tensor([1.0, 2.0, 3.0], device=device), torch.ones(3, dtype=torch.bool, device=device)
    for ddof, expected in ((1, 1.0), (0, 1.224745)):

        def call(rank, group, ddof=ddof):
            return whiten(x.split(shares)[rank], mask.split(shares)[rank], ddof=ddof, eps=1e-9, group=group)

        found = torch.cat(on_ranks(len(shares), call)).tolist()
        assert found == pytest.approx([-expected, 0, expected], abs=1e-6)


def test_verl_5366_a_constant_divisor_needs_the_number_of_ranks(device):
    # Two ranks with a sequence each, losses 1, 2, 3 and 10, width 3: (6 + 10) / (2 * 3) = 8/3. Every counted
    # token weighs 1/6, after the average over two ranks too.
    losses = torch.tensor([[1.0, 2.0, 3.0], [10.0, 0.0, 0.0]], dtype=torch.float64, device=device)
    mask = losses > 0

    def call(rank, group):
        leaf = losses[rank : rank + 1].clone().requires_grad_()
        loss = aggregate(leaf, mask[rank : rank + 1], mode="constant", denominator=2 * 3)
        (gradient,) = torch.autograd.grad(undo_mean_over_ranks(loss, group), leaf)
        return global_sum(loss, group).item(), (gradient / 2).tolist()

    first, second = on_ranks(2, call)
    assert first[0] == second[0] == pytest.approx(8 / 3, rel=1e-15)
    assert first[1] == [pytest.approx([1 / 6] * 3, rel=1e-15)]
    assert second[1] == [pytest.approx([1 / 6, 0, 0], rel=1e-15)]
