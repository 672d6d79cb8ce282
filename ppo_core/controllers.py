"""The strength of the leash, moved so that the policy stays at a chosen distance from the reference."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.packing import counted_sequences

UNITS = ("token", "sequence")
# How far the KL divergence is seen to miss the target, as a fraction of it: no outlier moves the leash faster.
MAX_ERROR = 0.2


def adapt_beta(
    kl: Tensor,
    mask: Tensor,
    *,
    beta: float,
    target: float,
    horizon: float,
    unit: str,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Strengthen the leash when the policy is farther from the reference than wanted, loosen it when nearer.

    $$\beta' = \beta \left(1 + \operatorname{clip}\Bigl(\frac{\overline{\mathrm{KL}}}{\text{target}} - 1,\;
    -0.2,\; 0.2\Bigr)\, \frac{n}{\text{horizon}}\right)$$

    with n the number of sequences that have a counted token. The unit says what $\overline{\mathrm{KL}}$
    is, and so what the target means: `"token"` is the mean over the counted tokens, `"sequence"` the mean
    over the n sequences of the sum over their tokens. For answers of 50 tokens a target of 6 per sequence
    is 0.12 per token.

    Call it once for each batch of samples, with all of them; where several processes hold a part each,
    gather `kl` and `mask` first, or each will go on with a leash of its own.

    Args:
        kl: Estimate of the KL divergence per token, that of k1 or k3 as a rule, shape [..., T], in nats.
        mask: Bool, same shape. True: the token counts.
        beta: Strength of the leash so far, above 0: from 0 it could never grow.
        target: The KL divergence that is wanted, above 0, in nats per `unit`.
        horizon: A number of sequences, not of batches, above 0: the time in which $\beta$ changes by about
            a fifth at most. 10000 is usual.
        unit: `"token"` or `"sequence"`.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row
            is one sequence.

    Returns:
        The strength for the next batch, shape [], in units of reward per nat, float32 or wider; `beta`
        where nothing counts. Functions that take a plain number get it by `.item()`, which waits for the
        device.

    Raises:
        TypeError: `kl` is not floating point, `mask` is not bool, `sequence_ids` is not int64, or a
            hyper-parameter is not a plain number.
        ValueError: The shapes differ, `kl` has no dimension, `beta`, `target` or `horizon` is not above 0
            and finite, `unit` is unknown, or one batch has so many sequences that it could turn $\beta$
            negative: five times the horizon. The last is found on the CPU in eager mode only; elsewhere the
            result is NaN.

    Gradient:
        None: the strength is data.

    Source:
        Ziegler et al., "Fine-Tuning Language Models from Human Preferences", 2019, section 2.2, where
        $K_\beta$ stands for n / horizon; their code has n, horizon, and the mean of sums over sequences.

    Examples:
        >>> import torch
        >>> from ppo_core import adapt_beta
        >>> kl = torch.tensor([[5.0, 7.0], [12.0, 0.0]])
        >>> mask = torch.tensor([[True, True], [True, False]])
        >>> adapt_beta(kl, mask, beta=0.1, target=6, horizon=10, unit="sequence")
        tensor(0.1040)
        >>> adapt_beta(kl, mask, beta=0.1, target=8, horizon=10, unit="token").item()
        0.1
    """
    (kl,) = checks.floats({"kl": kl})
    checks.token_mask(mask, "kl", kl)
    checks.tokens_last("kl", kl)
    checks.sequences(sequence_ids, "kl", kl)
    for name, value in (("beta", beta), ("target", target), ("horizon", horizon)):
        checks.positive(name, value)
    checks.one_of("unit", unit, UNITS)
    sequences = counted_sequences(mask, sequence_ids)
    stays_positive = MAX_ERROR * sequences < horizon
    if checks.may_look(mask) and not stays_positive:
        raise ValueError(
            f"horizon must be above a fifth of the number of sequences, got {horizon} and {sequences.item()} "
            "sequences; it counts sequences, not batches, and one batch could turn beta negative; 10000 is usual"
        )
    count = sequences if unit == "sequence" else mask.sum()
    mean = counted(kl.detach(), mask).sum() / count.clamp(min=1)
    error = (mean / target - 1).clamp(-MAX_ERROR, MAX_ERROR)
    return torch.where(stays_positive, beta * (1 + error * sequences / horizon), torch.nan)
