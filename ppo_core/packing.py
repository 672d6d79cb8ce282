r"""Rows that hold several sequences: which tokens belong together.

Packed rows save the padding. `sequence_ids` numbers the tokens of a row, and a sequence is a run of equal
numbers. Every function that looks along time or per sequence takes them; without them each row is one
sequence.
"""

import torch
from torch import Tensor

from ppo_core import checks


def sequence_ids_from_lengths(cumulative_lengths: Tensor, *, tokens: int) -> Tensor:
    r"""Number the tokens of a packed row from the places where its sequences begin and end.

    $$\text{id}_t = \#\{k \ge 1 : c_k \le t\}$$

    Tokens after the last sequence, the padding of the row, get a number of their own.

    Args:
        cumulative_lengths: $c$, int64 or int32, shape [N + 1] for N sequences: 0, then the end of each
            sequence, in tokens; never falling.
        tokens: Length of the row, at least the last of them.

    Returns:
        The number of each token's sequence, from 0, int64, shape [tokens].

    Raises:
        TypeError: `cumulative_lengths` is not int64 or int32, or `tokens` is not a plain number.
        ValueError: `cumulative_lengths` has not the shape [N + 1], does not begin with 0, falls, or ends after
            the row. What it holds is looked at on the CPU in eager mode only; elsewhere a wrong one gives
            wrong numbers.

    Gradient:
        None: numbers of sequences are data.

    Source:
        Definition; Dao et al., "FlashAttention", 2022, whose interface has the lengths in this form.

    Examples:
        >>> import torch
        >>> from ppo_core import sequence_ids_from_lengths
        >>> sequence_ids_from_lengths(torch.tensor([0, 2, 5]), tokens=6)
        tensor([0, 0, 1, 1, 1, 2])
    """
    checks.lengths("cumulative_lengths", cumulative_lengths)
    checks.whole("tokens", tokens, least=0)
    if checks.may_look(cumulative_lengths):
        _lengths_fit(cumulative_lengths, int(tokens))
    places = torch.arange(int(tokens), device=cumulative_lengths.device)
    return torch.searchsorted(cumulative_lengths[1:].long().contiguous(), places, right=True)


def places_of_sequences(sequence_ids: Tensor) -> Tensor:
    """Number the sequences of each row from 0 in the order in which they stand, given at each token."""
    begins = sequence_ids[..., 1:] != sequence_ids[..., :-1]
    first = torch.zeros_like(sequence_ids[..., :1])
    return torch.cat([first, begins.long().cumsum(-1)], -1)


def sequence_totals(x: Tensor, sequence_ids: Tensor | None) -> Tensor:
    """Sum `x` over each sequence, shape [..., T]: the total of the k-th sequence of a row stands at place k.

    Without `sequence_ids` a row has one sequence and the shape is [..., 1].
    """
    if sequence_ids is None:
        return x.sum(-1, keepdim=True)
    return torch.zeros_like(x).scatter_add(-1, places_of_sequences(sequence_ids), x)


def counted_sequences(mask: Tensor, sequence_ids: Tensor | None) -> Tensor:
    """Count the sequences that have a counted token."""
    return (sequence_totals(mask.long(), sequence_ids) > 0).sum()


def at_each_token(totals: Tensor, sequence_ids: Tensor | None, like: Tensor) -> Tensor:
    """Give each token what `sequence_totals` found for its sequence, in the shape of `like`."""
    if sequence_ids is None:
        return totals.expand_as(like)
    return totals.gather(-1, places_of_sequences(sequence_ids))


def last_of_sequence(mask: Tensor, sequence_ids: Tensor | None) -> Tensor:
    """Mark the last counted token of each sequence."""
    # Counted tokens from here to the end of the row, and to the end of the sequence.
    remaining = mask.long().flip(-1).cumsum(-1).flip(-1)
    if sequence_ids is not None:
        totals = sequence_totals(mask.long(), sequence_ids)
        # What the later sequences of the row hold is the row's rest after this sequence.
        after = totals.flip(-1).cumsum(-1).flip(-1) - totals
        remaining = remaining - at_each_token(after, sequence_ids, mask)
    return mask & (remaining == 1)


def _lengths_fit(cumulative_lengths: Tensor, tokens: int) -> None:
    lengths = cumulative_lengths.tolist()
    if lengths[0] != 0 or sorted(lengths) != lengths or lengths[-1] > tokens:
        raise ValueError(
            f"cumulative_lengths must begin with 0, never fall and end at {tokens} tokens or before, got "
            f"{lengths}"
        )
