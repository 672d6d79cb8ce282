r"""What follows from each token: advantages with a critic, and returns without one.

Both run over the counted tokens of each sequence, from its last one back. What comes after the last is either
nothing, because the answer is finished, or the critic's value, because it was cut off. Advantages and returns
are data: no function here sends a gradient anywhere.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.packing import last_of_sequence
from ppo_core.recurrence import backward_recurrence


def gae(
    rewards: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    gamma: float,
    lam: float,
    bootstrap: Tensor | None = None,
    terminated: Tensor | None = None,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Estimate the advantage of each token by generalized advantage estimation.

    $$A_t = \sum_{l \ge 0} (\gamma \lambda)^l\, \delta_{t + l},
    \qquad \delta_t = r_t + \gamma V(s_{t+1}) - V(s_t)$$

    The sum runs over the counted tokens of the sequence alone: one that does not count is no time step,
    wherever it stands. With $\lambda = 1$ the critic's values inside the sum cancel, and $A_t$ is the
    discounted return less $V(s_t)$. With $\lambda < 1$ the errors of the critic stay in the advantage. The
    returns that the critic is trained on are the advantages plus the values.

    An answer that stopped by itself is worth 0 after its end. One that was cut off, because it reached the
    longest length, would have gone on: there the critic's value of what comes next stands for the rest.

    | `bootstrap` | `terminated` | $V$ after the last counted token |
    |---|---|---|
    | none | none | 0: every answer is finished |
    | given | none | `bootstrap`: every answer was cut off |
    | given | given | 0 where `terminated`, else `bootstrap` |

    Args:
        rewards: Reward for each token, shape [..., T], in units of reward; 0 on uncounted tokens.
        values: The critic's value of the state before each token, $V(s_t)$, same shape, in units of reward.
        mask: Bool, same shape. True: the token counts.
        gamma: Discount of one time step, from 0 to 1.
        lam: $\lambda$, from 0 to 1: how little the critic is trusted.
        bootstrap: The critic's value of the state after the last counted token, shape [...], one for each
            answer, in units of reward. With `sequence_ids` it has the shape of the tokens and is read at the
            last counted token of each sequence, nowhere else.
        terminated: Bool, the shape of `bootstrap`. True: the answer ended by itself, and what `bootstrap` holds
            there is not used.
        sequence_ids: Int64, the shape of the tokens, for packed rows: a sequence is a run of equal numbers.
            Without it each row is one answer.

    Returns:
        The advantages, shape [..., T], in units of reward, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` or `terminated` is not bool, `sequence_ids` is not
            int64, `gamma` or `lam` is not a plain number.
        ValueError: The shapes do not fit, `gamma` or `lam` is out of range, `terminated` is given without
            `bootstrap`, or there is a reward on an uncounted token, where it would be lost. The last is found
            on the CPU in eager mode only; elsewhere the advantages of that row are NaN.

    Gradient:
        None: advantages are data.

    Source:
        Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016,
        equation 16, as a sum that ends with the answer; Pardo et al., "Time Limits in Reinforcement Learning",
        2018, for the value after an answer that was cut off.

    Examples:
        >>> import torch
        >>> from ppo_core import gae
        >>> rewards, values = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.5, 0.6, 0.7])
        >>> mask = torch.ones(3, dtype=torch.bool)
        >>> gae(rewards, values, mask, gamma=1.0, lam=0.95).tolist()
        [0.4658, 0.3850, 0.3000]
        >>> gae(rewards, values, mask, gamma=1.0, lam=1.0).tolist()
        [0.5000, 0.4000, 0.3000]
        >>> gae(rewards, values, mask, gamma=1.0, lam=1.0, bootstrap=torch.tensor(0.4)).tolist()
        [0.9000, 0.8000, 0.7000]
    """
    rewards, values = (x.detach() for x in checks.floats({"rewards": rewards, "values": values}))
    checks.token_mask(mask, "rewards", rewards)
    checks.tokens_last("rewards", rewards)
    checks.sequences(sequence_ids, "rewards", rewards)
    checks.fraction("gamma", gamma)
    checks.fraction("lam", lam)
    end = _value_at_the_end(bootstrap, terminated, rewards, mask, sequence_ids)
    kept = _rewards_are_counted(rewards, mask)
    # Whether the next place belongs to the same sequence, and whether a counted token of it stands there.
    joined = None if sequence_ids is None else F.pad(sequence_ids[..., 1:] == sequence_ids[..., :-1], (0, 1))
    next_counts = F.pad(mask[..., 1:], (0, 1))
    if joined is not None:
        next_counts = next_counts & joined
    # A place in front of a counted token takes over gamma V + gamma lambda A from it, whether it counts or is the
    # end of a gap; the other places of a gap hand on what they were given. So no token has to look for the value
    # behind a gap, and without gaps each term is delta.
    next_values = counted(F.pad(values[..., 1:], (0, 1)), next_counts)
    terms = torch.add(counted(rewards - values, mask), next_values, alpha=gamma)
    if end is not None:
        terms = terms + gamma * end
    # gamma lambda or 1. A bool becomes a float several times as fast by way of a whole number.
    gates = (~next_counts).to(torch.int8).to(terms.dtype).clamp(min=gamma * lam)
    advantages = counted(backward_recurrence(terms, gates, joined), mask)
    return advantages if kept is None else torch.where(kept, advantages, torch.nan)


def discounted_returns(
    rewards: Tensor,
    mask: Tensor,
    *,
    gamma: float,
    bootstrap: Tensor | None = None,
    terminated: Tensor | None = None,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Add up the rewards from each token to the end of its answer, later ones discounted.

    $$G_t = \sum_{l=0}^{n-1} \gamma^l\, r_{t + l} + \gamma^n\, V_\text{end}$$

    Here $n$ is the number of counted tokens from $t$ on: one that does not count is no time step. What comes
    after the answer, $V_\text{end}$, is 0 for an answer that is finished and `bootstrap` for one that was cut
    off, as in `gae`.

    Args:
        rewards: Reward for each token, shape [..., T], in units of reward; 0 on uncounted tokens.
        mask: Bool, same shape. True: the token counts.
        gamma: Discount of one time step, from 0 to 1.
        bootstrap: The critic's value of the state after the last counted token, shape [...], one for each
            answer, in units of reward. With `sequence_ids` it has the shape of the tokens and is read at the
            last counted token of each sequence, nowhere else. Without it every answer is finished.
        terminated: Bool, the shape of `bootstrap`. True: the answer ended by itself, and what `bootstrap` holds
            there is not used.
        sequence_ids: Int64, the shape of the tokens, for packed rows: a sequence is a run of equal numbers.
            Without it each row is one answer.

    Returns:
        The returns, shape [..., T], in units of reward, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` or `terminated` is not bool, `sequence_ids` is not
            int64 or `gamma` is not a plain number.
        ValueError: The shapes do not fit, `gamma` is out of range, `terminated` is given without `bootstrap`,
            or there is a reward on an uncounted token, where it would be lost. The last is found on the CPU in
            eager mode only; elsewhere the returns of that row are NaN.

    Gradient:
        None: returns are data.

    Source:
        Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition, 2018, equation 3.8.

    Examples:
        >>> import torch
        >>> from ppo_core import discounted_returns
        >>> rewards, mask = torch.tensor([1.0, 0.0, 4.0]), torch.tensor([True, False, True])
        >>> discounted_returns(rewards, mask, gamma=0.5)
        tensor([3., 0., 4.])
        >>> discounted_returns(rewards, mask, gamma=0.5, bootstrap=torch.tensor(8.0))
        tensor([5., 0., 8.])
    """
    checks.floating("rewards", rewards)
    # Without a critic and with lambda = 1 an advantage is a return.
    return gae(
        rewards,
        torch.zeros_like(rewards),
        mask,
        gamma=gamma,
        lam=1.0,
        bootstrap=bootstrap,
        terminated=terminated,
        sequence_ids=sequence_ids,
    )


def _value_at_the_end(
    bootstrap: Tensor | None,
    terminated: Tensor | None,
    rewards: Tensor,
    mask: Tensor,
    sequence_ids: Tensor | None,
) -> Tensor | None:
    """Put the value after each sequence at a place behind which none of its tokens counts; elsewhere stands 0.

    None where every answer is finished.
    """
    if bootstrap is None:
        if terminated is not None:
            raise ValueError(
                "terminated needs bootstrap: without it every answer is finished already; give the value after "
                "each answer, or leave terminated out"
            )
        return None
    checks.floating("bootstrap", bootstrap)
    checks.per_sequence("bootstrap", bootstrap, "rewards", rewards, sequence_ids, each="value")
    after = checks.wide(bootstrap.detach())
    if terminated is not None:
        checks.flags("terminated", terminated, true="the answer ended by itself")
        checks.same_shape({"bootstrap": bootstrap, "terminated": terminated})
        after = torch.where(terminated, 0.0, after)
    if sequence_ids is None:
        return F.pad(after.unsqueeze(-1), (rewards.shape[-1] - 1, 0))
    return counted(after, last_of_sequence(mask, sequence_ids))


def _rewards_are_counted(rewards: Tensor, mask: Tensor) -> Tensor | None:
    """Say for each row that no reward stands where it would be lost; raise where looking is free.

    NaN and infinity on an uncounted token are no rewards: whatever is not counted may hold them. None says the
    same of all rows.
    """
    # Most often all is 0 there, which one sum shows.
    if checks.may_look(mask) and not counted(rewards, ~mask).abs().sum():
        return None
    lost = ~mask & rewards.isfinite() & (rewards != 0)
    if checks.may_look(mask) and lost.any():
        first = lost.nonzero()[0].tolist()
        raise ValueError(
            f"rewards must be 0 on uncounted tokens, got {rewards[tuple(first)].item():.6g} at index {first}, "
            "which would be lost; move it to a counted token or count that one"
        )
    # The whole row, not its sequence: a reward behind the last answer belongs to no counted token of its own.
    return ~lost.any(-1, keepdim=True)
