"""The policy loss with one ratio per sequence instead of one per token (GSPO)."""

from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.policy import clipped_loss
from ppo_core.ratios import sequence_log_ratio


def sequence_policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    epsilon: float,
    epsilon_high: float | None = None,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Turn the clipped surrogate of each sequence's ratio into a loss per token, to be minimised.

    $$\ell_t = -\min\bigl(s A_t,\ \operatorname{clip}(s, 1 - \epsilon, 1 + \epsilon_\text{high})\, A_t\bigr),
    \qquad s = \exp\Bigl(\frac{1}{n} \sum_{t \,:\, m_t} \log \rho_t\Bigr)$$

    A sequence is clipped as a whole. With one advantage for all tokens of a sequence, as in a group of
    answers, `aggregate` with the mode `"sequence_mean_token_mean"` makes GSPO of it. The geometric mean moves
    less than the ratio of a token, so the band is much narrower: the paper has 0.0003 below 1 and 0.0004
    above.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [..., T], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        advantages: How much better than expected each token was, same shape, in units of reward.
        mask: Bool, same shape. True: the token counts.
        epsilon: Width of the band below 1, strictly between 0 and 1.
        epsilon_high: Width of the band above 1, finite and above 0; it may pass 1. Without it the band is as
            wide above as below.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence.

    Returns:
        The loss per token, same shape, float32 or wider; 0 on uncounted tokens. Right also where the
        exponential overflows, as in `policy_loss`.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, `sequence_ids` is not int64 or a width
            is not a plain number.
        ValueError: The shapes differ, there is no dimension for the tokens or a width is out of range.

    Gradient:
        Into `logprobs` alone: each loss has the slope $-s A_t / n$ in every counted token of its sequence
        where the clip is not active, 0 where it is. Summed over a sequence, each of its tokens gets $-s$ times
        the mean of the unclipped advantages: where advantages differ within a sequence, a token is not
        credited with its own. 0 on uncounted tokens whatever they hold.

    Source:
        Zheng et al., "Group Sequence Policy Optimization", 2025, equations 5 and 7, negated, without the
        means.

    Examples:
        >>> import torch
        >>> from ppo_core import aggregate, sequence_policy_loss
        >>> logprobs = torch.tensor([[4.0, 1.0], [1.0, 9.0]]).log().requires_grad_()
        >>> advantages = torch.tensor([[-1.0, -1.0], [2.0, 2.0]])
        >>> mask = torch.tensor([[True, True], [True, False]])
        >>> losses = sequence_policy_loss(logprobs, torch.zeros(2, 2), advantages, mask, epsilon=0.2)
        >>> losses[mask].tolist()
        [2.000, 2.000, -2.000]
        >>> aggregate(losses, mask, mode="sequence_mean_token_mean").backward()
        >>> logprobs.grad.tolist()
        [[0.500, 0.500], [-1.000, 0.000]]
    """
    logprobs, old_logprobs, advantages = checks.floats(
        {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages}
    )
    log_s = sequence_log_ratio(logprobs, old_logprobs, mask, sequence_ids)
    return clipped_loss(log_s, counted(advantages, mask), epsilon=epsilon, epsilon_high=epsilon_high)
