r"""A linear recurrence that runs from the last place back, solved in blocks instead of step by step.

Seen from in front of it, a block of places is a single place with a term and a gate of its own. So the
recurrence is solved for the blocks first, which are fewer, and then inside all blocks at once.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted

BLOCK = 8


def backward_recurrence(terms: Tensor, gates: Tensor, joined: Tensor | None = None) -> Tensor:
    r"""Solve $a_t = x_t + g_t\, a_{t+1}$ along the last dimension; behind the last place there is nothing.

    The work grows with the number of places, the number of operations with its logarithm. Gates are multiplied
    and products added, as in a loop over the places: no large sums are subtracted, and nothing is divided by a
    product of gates, which may be 0.

    Args:
        terms: $x$, shape [..., T].
        gates: $g$, same shape, from 0 to 1.
        joined: Bool, same shape. False: nothing comes over from the next place. A gate of 0 would let NaN and
            infinity through, because 0 times either is NaN.

    Returns:
        $a$, same shape.
    """
    if joined is not None and checks.may_look(terms):
        # Between finite numbers a gate of 0 is enough, and a third of the work.
        solved = backward_recurrence(terms, counted(gates, joined))
        if solved.sum().isfinite():
            return solved
    places = terms.shape[-1]
    # The padding makes a copy, even where nothing is missing: it is solved in place.
    solved = F.pad(terms, (0, -places % BLOCK))
    x, g = _by_place(solved), _by_place(gates)
    j = [None] * BLOCK if joined is None else _by_place(joined)
    behind = torch.zeros_like(x[0])
    if places > BLOCK:
        term, gate = x[0], g[0]
        for k in range(1, BLOCK):
            term, gate = torch.addcmul(x[k], g[k], counted(term, j[k])), g[k] * gate
        whole = None if joined is None else _in_blocks(joined).all(-1)
        behind = F.pad(backward_recurrence(term, gate, whole)[..., 1:], (0, 1))
    for k in range(BLOCK):
        behind = x[k].addcmul_(g[k], counted(behind, j[k]))
    return solved[..., :places]


def _by_place(x: Tensor) -> tuple[Tensor, ...]:
    """Take the places of all blocks apart, the last one first."""
    return _in_blocks(x).unbind(-1)[::-1]


def _in_blocks(x: Tensor) -> Tensor:
    """Cut the last dimension into blocks, the last of them filled up with 0."""
    missing = -x.shape[-1] % BLOCK
    x = F.pad(x, (0, missing)) if missing else x
    return x.view(*x.shape[:-1], x.shape[-1] // BLOCK, BLOCK)
