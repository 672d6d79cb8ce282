"""The PPO policy loss per token, from log-probabilities."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.ratios import log_ratio
from ppo_core.surrogates import clipped_surrogate

# Any log-ratio above this is past every ceiling (1 + epsilon < 2), and its exponential still fits in float32.
FAR_PAST_THE_CEILING = 80.0


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    *,
    epsilon: float,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Turn the clipped surrogate into a loss per token, to be minimised.

    $$\ell_t = -\min\bigl(\rho_t A_t,\ \operatorname{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon)\, A_t\bigr),
    \qquad \rho_t = \exp(\log \pi_\theta(a_t \mid s_t) - \log \pi_{\theta_\text{old}}(a_t \mid s_t))$$

    Right also where the exponential overflows: a token past the ceiling with $A_t \ge 0$ has the loss
    $-(1 + \epsilon) A_t$ and the gradient 0. With $A_t < 0$ the loss grows with the ratio without limit, and
    becomes infinite when the ratio does.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        advantages: How much better than expected each token was, same shape, in units of reward.
        epsilon: Half-width of the band, strictly between 0 and 1.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, float32 or wider; 0 on uncounted tokens. Reduce it with `aggregate`.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or `epsilon` is not a plain number.
        ValueError: The shapes differ or `epsilon` is out of range.

    Gradient:
        Into `logprobs` alone: $-\rho_t A_t$ where the clip is not active, 0 where it is, 0 on uncounted
        tokens whatever they hold.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, equation 7, negated.

    Examples:
        >>> import torch
        >>> from ppo_core import policy_loss
        >>> logprobs = torch.tensor([1.6, 1.6]).log().requires_grad_()
        >>> loss = policy_loss(logprobs, torch.zeros(2), torch.tensor([2.0, -3.0]), epsilon=0.2)
        >>> loss.tolist()
        [-2.400, 4.800]
        >>> loss.sum().backward()
        >>> logprobs.grad.tolist()
        [0.000, 4.800]
    """
    logprobs, old_logprobs, advantages = checks.floats(
        {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages}
    )
    if mask is not None:
        checks.token_mask(mask, "logprobs", logprobs)
    log_rho = counted(log_ratio(logprobs, old_logprobs), mask)
    advantages = counted(advantages, mask)
    # A clipped token sends the gradient 0 back through the exponential, which multiplies it by the ratio: 0
    # times infinity would be NaN. Past the ceiling the exact log-ratio no longer matters, so it is kept where
    # exp is finite.
    log_rho = torch.where(advantages >= 0, log_rho.clamp(max=FAR_PAST_THE_CEILING), log_rho)
    return -clipped_surrogate(torch.exp(log_rho), advantages, epsilon=epsilon)
