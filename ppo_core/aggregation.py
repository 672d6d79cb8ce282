"""One number from many tokens: the reduction, with its denominator in the open.

Which tokens weigh how much is a choice that changes the training, so it has a name. What the sum is divided
by decides whether micro-batches add up, so it can be given.
"""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted, number_counted
from ppo_core.packing import at_each_token, counted_sequences, sequence_totals

MODES = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")


def aggregate(
    losses: Tensor,
    mask: Tensor,
    *,
    mode: str,
    denominator: float | Tensor | None = None,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Reduce losses per token to one number.

    With $\ell_{it}$ the counted losses of sequence $i$, $n_i$ their number, and $D$ the denominator (tokens
    are counted tokens, sequences those that have one):

    | mode | value | $D$ when it is not given |
    |---|---|---|
    | `"token_mean"` | $\frac{1}{D} \sum_i \sum_t \ell_{it}$ | tokens |
    | `"sequence_mean_token_mean"` | $\frac{1}{D} \sum_i \frac{1}{n_i} \sum_t \ell_{it}$ | sequences |
    | `"sequence_mean_token_sum"` | $\frac{1}{D} \sum_i \sum_t \ell_{it}$ | sequences |
    | `"constant"` | $\frac{1}{D} \sum_i \sum_t \ell_{it}$ | must be given |

    A batch in pieces of whole sequences: give every piece the $D$ of the whole batch, which is the sum of the
    `batch_count` of the pieces, and their results add up to the result of the whole, in value and in
    gradient. A mean of the pieces' means does not.

    Args:
        losses: Losses per token, shape [..., T]: the last dimension holds the tokens of a sequence, or of
            several.
        mask: Bool, same shape. True: the token counts.
        mode: One of the four names above.
        denominator: $D$, finite and above 0, in tokens or sequences as the mode has it: a plain number, or a
            tensor of shape [].
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence.

    Returns:
        The loss, shape [], float32 or wider; 0 when nothing counts.

    Raises:
        TypeError: `losses` is not floating point, `mask` is not bool, `sequence_ids` is not int64 or
            `denominator` is not a number.
        ValueError: The shapes differ, `losses` has no dimension, `mode` is unknown, `denominator` is out of
            range or missing with `"constant"`. What a tensor as `denominator` holds is looked at on the CPU
            in eager mode only; elsewhere one that is out of range makes the loss NaN.

    Gradient:
        Into `losses` alone: the weight of the token in the sum over $D$; 0 on uncounted tokens whatever they
        hold.

    Source:
        `token_mean`: Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", 2025,
        section 3.3. `sequence_mean_token_mean`: Shao et al., "DeepSeekMath", 2024, equation 3. `constant`:
        Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective", 2025, section 3.2.

    Examples:
        >>> import torch
        >>> from ppo_core import aggregate, batch_count
        >>> losses = torch.tensor([[1.0, 2.0, 3.0], [10.0, 0.0, 0.0]])
        >>> mask = torch.tensor([[True, True, True], [True, False, False]])
        >>> aggregate(losses, mask, mode="token_mean")
        tensor(4.)
        >>> aggregate(losses, mask, mode="sequence_mean_token_mean")
        tensor(6.)

        The two sequences as two micro-batches, each with the four tokens of the whole as denominator:

        >>> whole = batch_count(mask, mode="token_mean")
        >>> sum(aggregate(losses[i], mask[i], mode="token_mean", denominator=whole) for i in range(2))
        tensor(4.)

        The two sequences in one packed row:

        >>> packed, ids = torch.tensor([1.0, 2.0, 3.0, 10.0]), torch.tensor([0, 0, 0, 1])
        >>> every = torch.ones(4, dtype=torch.bool)
        >>> aggregate(packed, every, mode="sequence_mean_token_mean", sequence_ids=ids)
        tensor(6.)
    """
    (losses,) = checks.floats({"losses": losses})
    checks.token_mask(mask, "losses", losses)
    check_reduction("losses", mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids)
    weighted = counted(losses, mask)
    if mode == "sequence_mean_token_mean":
        # Each token is divided by the length of its sequence, rather than the sum of each sequence: on a GPU
        # the sums of packed sequences would be added in another order every time.
        weighted = weighted / sequence_lengths(mask, sequence_ids)
    # Flat, so that the order of the sum does not depend on how the tensor lies in memory.
    return weighted.flatten().sum() / divisor(mask, losses.dtype, mode, denominator, sequence_ids)


def check_reduction(
    name: str, mask: Tensor, *, mode: str, denominator: float | Tensor | None, sequence_ids: Tensor | None
) -> None:
    """Check how tokens, which the caller knows as `name`, are to be reduced to one number."""
    checks.tokens_last(name, mask)
    checks.one_of("mode", mode, MODES)
    checks.sequences(sequence_ids, name, mask)
    if denominator is not None:
        checks.denominator(denominator)
    elif mode == "constant":
        raise ValueError(
            'mode "constant" needs a denominator, for example denominator=batch_size * max_tokens'
        )


def token_weights(
    mask: Tensor,
    dtype: torch.dtype,
    *,
    mode: str,
    denominator: float | Tensor | None,
    sequence_ids: Tensor | None,
) -> Tensor:
    """Return what `aggregate` multiplies the loss of each token by: its gradient."""
    weights = mask.to(dtype)
    if mode == "sequence_mean_token_mean":
        weights = weights / sequence_lengths(mask, sequence_ids)
    return weights / divisor(mask, dtype, mode, denominator, sequence_ids)


def sequence_lengths(mask: Tensor, sequence_ids: Tensor | None) -> Tensor:
    """Return at each token the number of counted tokens of its sequence, 1 where there is none."""
    return at_each_token(sequence_totals(mask.long(), sequence_ids), sequence_ids, mask).clamp(min=1)


def batch_count(mask: Tensor, *, mode: str, sequence_ids: Tensor | None = None) -> Tensor:
    r"""Count what `aggregate` divides by when no denominator is given.

    $$D = \sum_i n_i \quad \text{or} \quad D = \#\{i : n_i > 0\}$$

    The first with `"token_mean"`, the second with the two means over sequences; $n_i$ is the number of
    counted tokens of sequence $i$. The counts of the pieces of a batch add up to the count of the whole, as
    long as no sequence is split. A piece in which nothing counts has the count 0, and so has a batch of such
    pieces: there `clamp(min=1)` makes the loss 0.

    Args:
        mask: Bool, shape [..., T]. True: the token counts.
        mode: One of the modes of `aggregate`, without `"constant"`.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence.

    Returns:
        The number of tokens or of sequences, int64, shape [].

    Raises:
        TypeError: `mask` is not bool or `sequence_ids` is not int64.
        ValueError: The shapes differ, `mask` has no dimension, or `mode` is unknown or `"constant"`.

    Gradient:
        None: a count is data.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from ppo_core import batch_count
        >>> mask = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
        >>> batch_count(mask, mode="token_mean")
        tensor(4)
        >>> batch_count(mask, mode="sequence_mean_token_mean")
        tensor(2)
    """
    checks.bool_mask(mask)
    checks.tokens_last("mask", mask)
    checks.one_of("mode", mode, MODES)
    if mode == "constant":
        raise ValueError('mode "constant" counts nothing: its denominator is your choice')
    checks.sequences(sequence_ids, "mask", mask)
    return _count(mask, mode, sequence_ids).long()


def _count(mask: Tensor, mode: str, sequence_ids: Tensor | None) -> Tensor:
    return number_counted(mask) if mode == "token_mean" else counted_sequences(mask, sequence_ids)


def divisor(
    mask: Tensor,
    dtype: torch.dtype,
    mode: str,
    denominator: float | Tensor | None,
    sequence_ids: Tensor | None,
) -> float | Tensor:
    """Return what to divide by: NaN for a tensor that is out of range and could not be looked at."""
    if denominator is None:
        # An empty mask divides 0 by 1: a guard on the quotient alone would leave a NaN in the backward pass.
        return _count(mask, mode, sequence_ids).clamp(min=1)
    if not isinstance(denominator, Tensor):
        return denominator
    # In the type of the losses: a tensor of float64 must not make them float64.
    given = denominator.detach().to(dtype)
    return torch.where((given > 0) & (given < torch.inf), given, torch.nan)
