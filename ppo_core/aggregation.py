"""One number from many tokens: the reduction, with its denominator in the open.

Which tokens weigh how much is a choice that changes the training, so it has a name. What the sum is divided
by decides whether micro-batches add up, so it can be given.
"""

from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted

MODES = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")


def aggregate(losses: Tensor, mask: Tensor, *, mode: str, denominator: float | None = None) -> Tensor:
    r"""Reduce losses per token to one number.

    With $\ell_{it}$ the counted losses of sequence $i$, $n_i$ their number, and $D$ the denominator (tokens
    are counted tokens, sequences those that have one):

    | mode | value | $D$ when it is not given |
    |---|---|---|
    | `"token_mean"` | $\frac{1}{D} \sum_i \sum_t \ell_{it}$ | tokens |
    | `"sequence_mean_token_mean"` | $\frac{1}{D} \sum_i \frac{1}{n_i} \sum_t \ell_{it}$ | sequences |
    | `"sequence_mean_token_sum"` | $\frac{1}{D} \sum_i \sum_t \ell_{it}$ | sequences |
    | `"constant"` | $\frac{1}{D} \sum_i \sum_t \ell_{it}$ | must be given |

    A batch in pieces: give every piece the $D$ of the whole batch, and the results add up to the result of
    the whole. A mean of the pieces' means does not.

    Args:
        losses: Losses per token, shape [..., T]: the last dimension holds the tokens of a sequence.
        mask: Bool, same shape. True: the token counts.
        mode: One of the four names above.
        denominator: $D$, finite and above 0, in tokens or sequences as the mode has it.

    Returns:
        The loss, shape [], float32 or wider; 0 when nothing counts.

    Raises:
        TypeError: `losses` is not floating point, `mask` is not bool or `denominator` is not a plain number.
        ValueError: The shapes differ, `losses` has no dimension, `mode` is unknown, `denominator` is out of
            range, or missing with `"constant"`.

    Gradient:
        Into `losses`: the weight of the token in the sum over $D$; 0 on uncounted tokens whatever they hold.

    Source:
        `token_mean`: Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", 2025,
        section 3.3. `sequence_mean_token_mean`: Shao et al., "DeepSeekMath", 2024, equation 3. `constant`:
        Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective", 2025, section 3.2.

    Examples:
        >>> import torch
        >>> from ppo_core import aggregate
        >>> losses = torch.tensor([[1.0, 2.0, 3.0], [10.0, 0.0, 0.0]])
        >>> mask = torch.tensor([[True, True, True], [True, False, False]])
        >>> aggregate(losses, mask, mode="token_mean")
        tensor(4.)
        >>> aggregate(losses, mask, mode="sequence_mean_token_mean")
        tensor(6.)

        The two sequences as two micro-batches, each with the four tokens of the whole as denominator:

        >>> sum(aggregate(losses[i], mask[i], mode="token_mean", denominator=4) for i in range(2))
        tensor(4.)
    """
    (losses,) = checks.floats({"losses": losses})
    checks.token_mask(mask, "losses", losses)
    checks.tokens_last("losses", losses)
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    if denominator is not None:
        checks.positive("denominator", denominator)
    elif mode == "constant":
        raise ValueError(
            'mode "constant" needs a denominator, for example denominator=batch_size * max_tokens'
        )
    sums = counted(losses, mask).sum(-1)
    lengths = mask.sum(-1)
    if mode == "sequence_mean_token_mean":
        # A sequence without a counted token adds 0 / 1.
        sums = sums / lengths.clamp(min=1)
    if denominator is not None:
        return sums.sum() / denominator
    count = lengths.sum() if mode == "token_mean" else (lengths > 0).sum()
    return sums.sum() / count.clamp(min=1)
