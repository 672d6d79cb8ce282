"""The reward per token: a score for the whole answer at its last token, and the KL leash at every token."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.kl import kl_penalty


def shaped_rewards(
    scores: Tensor, logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor, *, beta: float
) -> Tensor:
    r"""Spread the leash over the tokens of each answer and add the answer's score at its last counted token.

    $$r_t = -\beta \log \frac{\pi_\theta(a_t \mid s_t)}{\pi_\text{ref}(a_t \mid s_t)}
    + \begin{cases} \text{score} & t \text{ is the last counted token} \\ 0 & \text{otherwise} \end{cases}$$

    Args:
        scores: The reward model's score of each answer, shape [...], in units of reward.
        logprobs: Log-probabilities of the sampled tokens under the policy, shape [..., T], in nats.
        ref_logprobs: The same under the frozen reference policy, shape [..., T], in nats.
        mask: Bool, shape [..., T]. True: the token counts, that is, it is part of the answer.
        beta: Strength of the leash, at least 0, in units of reward per nat.

    Returns:
        The rewards, shape [..., T], in units of reward, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or `beta` is not a plain number.
        ValueError: The shapes do not fit, `beta` is negative or not finite, or an answer has no counted
            token, so that its score would be lost. The last is found on the CPU in eager mode only; elsewhere
            that answer's rewards are NaN.

    Gradient:
        None: rewards are data.

    Source:
        Ziegler et al., "Fine-Tuning Language Models from Human Preferences", 2019, equation 2, with the
        logarithm split over the tokens; Shao et al., "DeepSeekMath", 2024, equation 2.

    Examples:
        >>> import torch
        >>> from ppo_core import shaped_rewards
        >>> logprobs = torch.tensor([[0.5, 0.9, 1.0]]).log()
        >>> ref_logprobs = torch.tensor([[0.5, 0.3, 1.0]]).log()
        >>> mask = torch.tensor([[True, True, False]])
        >>> shaped_rewards(torch.tensor([1.0]), logprobs, ref_logprobs, mask, beta=0.2).tolist()
        [[0.0000, 0.7803, 0.0000]]
    """
    checks.floating("scores", scores)
    penalty = kl_penalty(logprobs, ref_logprobs, beta=beta).detach()
    checks.token_mask(mask, "logprobs", logprobs)
    checks.per_answer("scores", scores, "logprobs", logprobs, each="score")
    answered = mask.any(-1, keepdim=True)
    if checks.may_look(mask) and not answered.all():
        first = (~answered.squeeze(-1)).nonzero()[0].tolist()
        raise ValueError(
            f"mask has no counted token in the answer at index {first}, so its score would be lost; "
            "leave the answer out"
        )
    # Counted tokens from here to the end of the answer, this one included: 1 at the last.
    remaining = mask.long().flip(-1).cumsum(-1).flip(-1)
    last = mask & (remaining == 1)
    rewards = torch.where(last, scores.detach().unsqueeze(-1), 0.0) - penalty
    return torch.where(answered, torch.where(mask, rewards, 0.0), torch.nan)
