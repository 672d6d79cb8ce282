"""The reward per token: a score for the whole answer at one token, and the KL leash at every token."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.kl import kl_penalty
from ppo_core.masking import counted
from ppo_core.packing import last_of_sequence


def shaped_rewards(
    scores: Tensor,
    logprobs: Tensor,
    ref_logprobs: Tensor,
    mask: Tensor,
    *,
    beta: float,
    slot: Tensor | None = None,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Spread the leash over the tokens of each answer and pay the answer's score at one of them.

    $$r_t = -\beta \log \frac{\pi_\theta(a_t \mid s_t)}{\pi_\text{ref}(a_t \mid s_t)}
    + \begin{cases} \text{score} & t \text{ is where the score is paid} \\ 0 & \text{otherwise} \end{cases}$$

    The score is paid at the last counted token, the one that ends the answer, or at the place that `slot`
    names. Some trainers pay it one place later, on the first token of the padding: for that, count this token
    in the mask too. `gae` then sees one more time step, with a value of its own.

    Args:
        scores: The reward model's score of each answer, shape [...], in units of reward. With `sequence_ids`
            it has the shape of the tokens and is read at the last counted token of each sequence, nowhere else.
        logprobs: Log-probabilities of the sampled tokens under the policy, shape [..., T], in nats.
        ref_logprobs: The same under the frozen reference policy, shape [..., T], in nats.
        mask: Bool, shape [..., T]. True: the token counts, that is, it is part of the answer.
        beta: Strength of the leash, at least 0, in units of reward per nat.
        slot: Int64, shape [...]: the index, from 0, of the counted token of each answer at which the score is
            paid. Without it that is the last counted one.
        sequence_ids: Int64, shape [..., T], for packed rows: a sequence is a run of equal numbers. Without it
            each row is one answer.

    Returns:
        The rewards, shape [..., T], in units of reward, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, `slot` or `sequence_ids` is not int64 or
            `beta` is not a plain number.
        ValueError: The shapes do not fit, `beta` is negative or not finite, `slot` is given with
            `sequence_ids`, or the score of an answer would be lost, because the answer has no counted token or
            `slot` points at none. The last is found on the CPU in eager mode only; elsewhere that answer's
            rewards are NaN. A packed sequence without a counted token is no fault: it may be padding.

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
        >>> slot = torch.tensor([0])
        >>> shaped_rewards(torch.tensor([1.0]), logprobs, ref_logprobs, mask, beta=0.2, slot=slot).tolist()
        [[1.0000, -0.2197, 0.0000]]
    """
    checks.floating("scores", scores)
    penalty = kl_penalty(logprobs, ref_logprobs, beta=beta).detach()
    checks.token_mask(mask, "logprobs", logprobs)
    checks.sequences(sequence_ids, "logprobs", logprobs)
    checks.per_sequence("scores", scores, "logprobs", logprobs, sequence_ids, each="score")
    paid = _where_paid(mask, slot, sequence_ids)
    scores = scores.detach().unsqueeze(-1) if sequence_ids is None else scores.detach()
    rewards = counted(torch.where(paid, scores, 0.0) - penalty, mask)
    if sequence_ids is not None:
        return rewards
    return torch.where(_scores_are_paid(paid, slot), rewards, torch.nan)


def _where_paid(mask: Tensor, slot: Tensor | None, sequence_ids: Tensor | None) -> Tensor:
    """Mark the token of each answer at which its score is paid; none where there is no such token."""
    if slot is None:
        return last_of_sequence(mask, sequence_ids)
    if sequence_ids is not None:
        raise ValueError(
            "slot cannot be given with sequence_ids: a packed row has many answers, each with its score at its "
            "last counted token; leave slot out"
        )
    checks.token_ids("slot", slot)
    checks.per_answer("slot", slot, "logprobs", mask, each="index")
    places = torch.arange(mask.shape[-1], device=mask.device)
    return mask & (places == slot.unsqueeze(-1))


def _scores_are_paid(paid: Tensor, slot: Tensor | None) -> Tensor:
    """Say for each answer that its score is paid; raise where looking is free."""
    lost = ~paid.any(-1)
    if checks.may_look(lost) and lost.any():
        first = lost.nonzero()[0].tolist()
        if slot is None:
            raise ValueError(
                f"mask has no counted token in the answer at index {first}, so its score would be lost; "
                "leave the answer out"
            )
        raise ValueError(
            f"slot points at no counted token in the answer at index {first}, got {slot[tuple(first)].item()}, "
            "so its score would be lost; point at a counted token or count that one"
        )
    return ~lost.unsqueeze(-1)
