"""One scale for a whole batch: whitening, and REINFORCE++, which whitens returns."""

from torch import Tensor
from torch.distributed import ProcessGroup

from ppo_core import checks
from ppo_core.distributed import over_ranks
from ppo_core.masking import counted, masked_sum
from ppo_core.returns import discounted_returns


def whiten(x: Tensor, mask: Tensor, *, ddof: int, eps: float, group: ProcessGroup | None = None) -> Tensor:
    r"""Shift and scale the counted elements to mean 0 and standard deviation 1.

    $$\frac{x_i - \mu}{\sigma + \text{eps}}, \qquad
    \mu = \frac{1}{n} \sum_{i \,:\, m_i} x_i, \qquad
    \sigma^2 = \frac{1}{n - \text{ddof}} \sum_{i \,:\, m_i} (x_i - \mu)^2$$

    The mean is taken first and the squares after it: in one pass, as the mean of the squares less the square
    of the mean, a mean that is large beside the spread would cost all digits.

    Few elements have a rule of their own, the same for both `ddof`: where nothing counts the result is 0
    everywhere, and a single counted element becomes 0, because it is its own mean. Elements that are all equal
    become 0 for the same reason.

    With a process group the sums run over the elements of all its ranks, which exchange four numbers, and each
    rank gets its own elements back: the same as whitening them all in one process. All ranks of the group call
    it, one without elements too. Pieces of one sequence may lie on different ranks.

    Args:
        x: Any floating-point tensor, shape [...]: the advantages of a whole batch, as a rule.
        mask: Bool, the shape of `x`. True: the element counts.
        ddof: 0 to divide by the number of counted elements, 1 to divide by one less.
        eps: What keeps the divisor above 0, itself above 0, in the unit of `x`.
        group: The ranks that share the batch. None, unlike elsewhere, is not the default group: this process
            whitens what it has.

    Returns:
        The result, same shape, in standard deviations, float32 or wider; 0 on uncounted elements.

    Raises:
        TypeError: `x` is not floating point, `mask` is not bool, `ddof` or `eps` is not a plain number, or
            `group` is not a process group.
        ValueError: The shapes differ, `ddof` is neither 0 nor 1 or `eps` is not above 0.

    Gradient:
        None: advantages are data.

    Source:
        Definition; Huang et al., "The 37 Implementation Details of Proximal Policy Optimization", 2022,
        detail 7; Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance: Analysis and
        Recommendations", 1983, for the mean that is corrected once.

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
    checks.token_mask(mask, "x", x)
    checks.process_group(group)
    x = x.detach()
    count = _over_all(mask.sum(), group)
    # Where nothing counts the mean is NaN, and no element is there to show it.
    difference = x - _over_all(masked_sum(x, mask), group) / count
    # A mean that is large beside the spread is rounded by a good part of the spread. The mean of the
    # differences is what that lost.
    difference = difference - _over_all(masked_sum(difference, mask), group) / count
    # A single element has the difference 0: whatever divides it, and 0 must not.
    variance = _over_all(masked_sum(difference**2, mask), group) / (count - ddof).clamp(min=1)
    return counted(difference / (variance.sqrt() + eps), mask)


def reinforce_plus_plus(
    rewards: Tensor,
    mask: Tensor,
    *,
    gamma: float,
    ddof: int,
    eps: float,
    sequence_ids: Tensor | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    r"""Whiten the discounted returns of a whole batch, as REINFORCE++ does.

    $$A_t = \frac{G_t - \mu}{\sigma + \text{eps}}, \qquad G_t = \sum_{l \ge 0} \gamma^l\, r_{t + l}$$

    Mean $\mu$ and standard deviation $\sigma$ run over all counted tokens of the batch, as in `whiten`; the
    sum is that of `discounted_returns`. The paper has $\gamma = 1$ and rewards with the leash in them, as
    `shaped_rewards` makes them.

    Args:
        rewards: Reward for each token, shape [..., T], in units of reward; 0 on uncounted tokens.
        mask: Bool, same shape. True: the token counts.
        gamma: Discount of one time step, from 0 to 1.
        ddof: 0 to divide by the number of counted tokens, 1 to divide by one less.
        eps: What keeps the divisor above 0, itself above 0, in units of reward.
        sequence_ids: Int64, same shape, for packed rows: a sequence is a run of equal numbers. Without it each
            row is one answer.
        group: The ranks that share the batch, as in `whiten`; each answer lies on one rank as a whole. None is
            not the default group: this process whitens what it has.

    Returns:
        The advantages, shape [..., T], in standard deviations, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: `rewards` is not floating point, `mask` is not bool, `sequence_ids` is not int64, `gamma`,
            `ddof` or `eps` is not a plain number, or `group` is not a process group.
        ValueError: The shapes differ, `gamma` is out of range, `ddof` is neither 0 nor 1, `eps` is not above 0,
            or there is a reward on an uncounted token, where it would be lost. The last is found on the CPU in
            eager mode only; elsewhere the returns of that row are NaN, and with them the mean and every
            counted token.

    Gradient:
        None: advantages are data.

    Source:
        Hu et al., "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage
        Normalization", 2025; the first version has "A Simple and Efficient Approach for Aligning Large
        Language Models" in its title.

    Examples:
        >>> import torch
        >>> from ppo_core import reinforce_plus_plus
        >>> rewards = torch.tensor([[0.0, 1.0], [3.0, 0.0]])
        >>> mask = torch.tensor([[True, True], [True, False]])
        >>> reinforce_plus_plus(rewards, mask, gamma=1.0, ddof=0, eps=1e-8)
        tensor([[-0.7071, -0.7071],
                [ 1.4142,  0.0000]])
    """
    returns = discounted_returns(rewards, mask, gamma=gamma, sequence_ids=sequence_ids)
    return whiten(returns, mask, ddof=ddof, eps=eps, group=group)


def _over_all(x: Tensor, group: ProcessGroup | None) -> Tensor:
    """Add up over the ranks of the group, where there is one."""
    return x if group is None else over_ranks(x, group)
