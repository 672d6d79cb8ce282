r"""How much better than expected each token was: advantages with a critic, without one, and their scale.

`gae` asks a critic, `group_relative` and `leave_one_out` compare the answers to one prompt with each other.
Advantages are data: no function here sends a gradient anywhere.
"""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted, masked_mean, masked_sum


def gae(
    rewards: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    gamma: float,
    lam: float,
    bootstrap: Tensor | None = None,
) -> Tensor:
    r"""Estimate the advantage of each token by generalized advantage estimation.

    $$A_t = \sum_{l \ge 0} (\gamma \lambda)^l\, \delta_{t + l},
    \qquad \delta_t = r_t + \gamma V(s_{t+1}) - V(s_t)$$

    The sum runs over the counted tokens alone: one that does not count is no time step, wherever it stands.
    With $\lambda = 1$ the critic's values inside the sum cancel, and $A_t$ is the discounted return less
    $V(s_t)$. With $\lambda < 1$ the errors of the critic stay in the advantage. The returns that the critic
    is trained on are the advantages plus the values.

    Args:
        rewards: Reward for each token, shape [..., T], in units of reward; 0 on uncounted tokens.
        values: The critic's value of the state before each token, $V(s_t)$, same shape, in units of reward.
        mask: Bool, same shape. True: the token counts.
        gamma: Discount of one time step, from 0 to 1.
        lam: $\lambda$, from 0 to 1: how little the critic is trusted.
        bootstrap: The critic's value of the state after the last counted token, shape [...], for answers that
            were cut off. Without it every answer is finished, and that value is 0.

    Returns:
        The advantages, shape [..., T], in units of reward, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, `gamma` or `lam` is not a plain number.
        ValueError: The shapes do not fit, `gamma` or `lam` is out of range, or there is a reward on an
            uncounted token, where it would be lost. The last is found on the CPU in eager mode only;
            elsewhere the advantages of that answer are NaN.

    Gradient:
        None: advantages are data.

    Source:
        Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016,
        equation 16, as a sum that ends with the answer.

    Examples:
        >>> import torch
        >>> from ppo_core import gae
        >>> rewards, values = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.5, 0.6, 0.7])
        >>> mask = torch.ones(3, dtype=torch.bool)
        >>> gae(rewards, values, mask, gamma=1.0, lam=0.95).tolist()
        [0.4658, 0.3850, 0.3000]
        >>> gae(rewards, values, mask, gamma=1.0, lam=1.0).tolist()
        [0.5000, 0.4000, 0.3000]
    """
    rewards, values = (x.detach() for x in checks.floats({"rewards": rewards, "values": values}))
    checks.token_mask(mask, "rewards", rewards)
    checks.tokens_last("rewards", rewards)
    checks.fraction("gamma", gamma)
    checks.fraction("lam", lam)
    next_value = rewards.new_zeros(rewards.shape[:-1])
    if bootstrap is not None:
        checks.floating("bootstrap", bootstrap)
        checks.per_answer("bootstrap", bootstrap, "rewards", rewards, each="value")
        next_value = checks.wide(bootstrap.detach())
    kept = _rewards_are_counted(rewards, mask)
    rewards, values = counted(rewards, mask), counted(values, mask)
    advantage = torch.zeros_like(next_value)
    advantages = torch.zeros_like(rewards)
    for t in range(rewards.shape[-1] - 1, -1, -1):
        delta = rewards[..., t] + gamma * next_value - values[..., t]
        # An uncounted token leaves both as they are for the token before it.
        advantage = torch.where(mask[..., t], delta + gamma * lam * advantage, advantage)
        next_value = torch.where(mask[..., t], values[..., t], next_value)
        advantages[..., t] = advantage
    return torch.where(kept, counted(advantages, mask), torch.nan)


def discounted_returns(rewards: Tensor, mask: Tensor, *, gamma: float) -> Tensor:
    r"""Add up the rewards from each token to the end of its answer, later ones discounted.

    $$G_t = \sum_{l \ge 0} \gamma^l\, r_{t + l}$$

    The sum runs over the counted tokens alone: one that does not count is no time step.

    Args:
        rewards: Reward for each token, shape [..., T], in units of reward; 0 on uncounted tokens.
        mask: Bool, same shape. True: the token counts.
        gamma: Discount of one time step, from 0 to 1.

    Returns:
        The returns, shape [..., T], in units of reward, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: `rewards` is not floating point, `mask` is not bool or `gamma` is not a plain number.
        ValueError: The shapes differ, `gamma` is out of range, or there is a reward on an uncounted token,
            where it would be lost. The last is found on the CPU in eager mode only; elsewhere the returns of
            that answer are NaN.

    Gradient:
        None: returns are data.

    Source:
        Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition, 2018, equation 3.8.

    Examples:
        >>> import torch
        >>> from ppo_core import discounted_returns
        >>> mask = torch.tensor([True, False, True])
        >>> discounted_returns(torch.tensor([1.0, 0.0, 4.0]), mask, gamma=0.5)
        tensor([3., 0., 4.])
    """
    checks.floating("rewards", rewards)
    # Without a critic and with lambda = 1 an advantage is a return.
    return gae(rewards, torch.zeros_like(rewards), mask, gamma=gamma, lam=1.0)


def group_relative(scores: Tensor, *, eps: float) -> Tensor:
    r"""Compare each score with the mean of its group, in standard deviations of the group.

    $$A_i = \frac{r_i - \operatorname{mean}(r)}{\operatorname{std}(r) + \text{eps}},
    \qquad \operatorname{std}(r)^2 = \frac{1}{G - 1} \sum_{j=1}^{G} (r_j - \operatorname{mean}(r))^2$$

    A group whose scores are all equal has advantages of 0: it teaches nothing.

    Args:
        scores: Scores of the answers, shape [..., G]: the last dimension holds the G answers to one prompt.
        eps: What keeps the divisor above 0, itself above 0, in units of reward.

    Returns:
        One advantage for each answer, same shape, in standard deviations, float32 or wider.

    Raises:
        TypeError: `scores` is not floating point or `eps` is not a plain number.
        ValueError: A group has fewer than two answers or `eps` is not above 0.

    Gradient:
        None: advantages are data.

    Source:
        Shao et al., "DeepSeekMath", 2024, section 4.1.2 (GRPO).

    Examples:
        >>> import torch
        >>> from ppo_core import group_relative
        >>> group_relative(torch.tensor([1.0, 0.0, 0.0, 1.0]), eps=1e-6)
        tensor([ 0.8660, -0.8660, -0.8660,  0.8660])
    """
    (scores,) = checks.floats({"scores": scores})
    checks.group("scores", scores)
    checks.positive("eps", eps)
    difference = scores.detach() - scores.detach().mean(-1, keepdim=True)
    variance = (difference**2).sum(-1, keepdim=True) / (scores.shape[-1] - 1)
    return difference / (variance.sqrt() + eps)


def leave_one_out(scores: Tensor) -> Tensor:
    r"""Compare each score with the mean of the others in its group.

    $$A_i = r_i - \frac{1}{G - 1} \sum_{j \ne i} r_j$$

    The mean of the others does not depend on answer $i$, so as a baseline it leaves the expected gradient as
    it is.

    Args:
        scores: Scores of the answers, shape [..., G]: the last dimension holds the G answers to one prompt.

    Returns:
        One advantage for each answer, same shape, in units of reward, float32 or wider.

    Raises:
        TypeError: `scores` is not floating point.
        ValueError: A group has fewer than two answers.

    Gradient:
        None: advantages are data.

    Source:
        Kool, van Hoof and Welling, "Buy 4 REINFORCE Samples, Get a Baseline for Free!", 2019; Ahmadian et
        al., "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from Human Feedback in
        LLMs", 2024 (RLOO).

    Examples:
        >>> import torch
        >>> from ppo_core import leave_one_out
        >>> leave_one_out(torch.tensor([1.0, 0.0, 2.0]))
        tensor([ 0.0000, -1.5000,  1.5000])
    """
    (scores,) = checks.floats({"scores": scores})
    checks.group("scores", scores)
    size = scores.shape[-1]
    # The same as above, with the mean of all G: it keeps small differences of large scores.
    return (scores.detach() - scores.detach().mean(-1, keepdim=True)) * (size / (size - 1))


def whiten(x: Tensor, mask: Tensor, *, ddof: int, eps: float) -> Tensor:
    r"""Shift and scale the counted elements to mean 0 and standard deviation 1.

    $$\frac{x_i - \mu}{\sigma + \text{eps}}, \qquad
    \mu = \frac{1}{n} \sum_{i \,:\, m_i} x_i, \qquad
    \sigma^2 = \frac{1}{n - \text{ddof}} \sum_{i \,:\, m_i} (x_i - \mu)^2$$

    The mean is taken first and the squares after it: in one pass, as the mean of the squares less the square
    of the mean, a mean that is large beside the spread would cost all digits. A single counted element
    becomes 0, and where nothing counts nothing happens: the result is 0 everywhere.

    Args:
        x: Any floating-point tensor, shape [...]: the advantages of a whole batch, as a rule.
        mask: Bool, the shape of `x`. True: the element counts.
        ddof: 0 to divide by the number of counted elements, 1 to divide by one less.
        eps: What keeps the divisor above 0, itself above 0, in the unit of `x`.

    Returns:
        The result, same shape, in standard deviations, float32 or wider; 0 on uncounted elements.

    Raises:
        TypeError: `x` is not floating point, `mask` is not bool, `ddof` or `eps` is not a plain number.
        ValueError: The shapes differ, `ddof` is neither 0 nor 1 or `eps` is not above 0.

    Gradient:
        None: advantages are data.

    Source:
        Definition; Huang et al., "The 37 Implementation Details of Proximal Policy Optimization", 2022,
        detail 7.

    Examples:
        >>> import torch
        >>> from ppo_core import whiten
        >>> mask = torch.tensor([True, False, True, True])
        >>> whiten(torch.tensor([1.0, 99.0, 2.0, 3.0]), mask, ddof=1, eps=1e-8)
        tensor([-1.,  0.,  0.,  1.])
    """
    (x,) = checks.floats({"x": x})
    checks.freedom(ddof)
    checks.positive("eps", eps)
    x = x.detach()
    difference = counted(x - masked_mean(x, mask), mask)
    # A single element has the difference 0: whatever divides it, and 0 must not.
    variance = masked_sum(difference**2, mask) / (mask.sum() - ddof).clamp(min=1)
    return difference / (variance.sqrt() + eps)


def _rewards_are_counted(rewards: Tensor, mask: Tensor) -> Tensor:
    """Say for each answer that no reward stands where it would be lost; raise where looking is free.

    NaN and infinity on an uncounted token are no rewards: whatever is not counted may hold them.
    """
    lost = ~mask & rewards.isfinite() & (rewards != 0)
    if checks.may_look(lost) and lost.any():
        first = lost.nonzero()[0].tolist()
        raise ValueError(
            f"rewards must be 0 on uncounted tokens, got {rewards[tuple(first)].item():.6g} at index {first}, "
            "which would be lost; move it to a counted token or count that one"
        )
    return ~lost.any(-1, keepdim=True)
