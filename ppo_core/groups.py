"""How much better than its group each answer was: advantages without a critic.

The answers to one prompt are compared with each other. What the three functions have in common is the
difference to the mean of the group; they differ in what they divide it by. Advantages are data: no function
here sends a gradient anywhere.
"""

from torch import Tensor

from ppo_core import checks


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
    checks.positive("eps", eps)
    difference = group_centred(scores)
    variance = (difference**2).sum(-1, keepdim=True) / (scores.shape[-1] - 1)
    return difference / (variance.sqrt() + eps)


def group_centred(scores: Tensor) -> Tensor:
    r"""Compare each score with the mean of its group.

    $$A_i = r_i - \frac{1}{G} \sum_{j=1}^{G} r_j$$

    The deviation of the group does not divide it, so a prompt whose answers are nearly all right or nearly all
    wrong gets no extra weight. Because the score is part of the mean that is taken off it, the expected
    gradient is $(G - 1) / G$ of the policy gradient; `leave_one_out` gives all of it.

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
        Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective", 2025, section 3.2 (Dr. GRPO).

    Examples:
        >>> import torch
        >>> from ppo_core import group_centred
        >>> group_centred(torch.tensor([1.0, 0.0, 0.0, 1.0]))
        tensor([ 0.5000, -0.5000, -0.5000,  0.5000])
    """
    (scores,) = checks.floats({"scores": scores})
    checks.group("scores", scores)
    difference = scores.detach() - scores.detach().mean(-1, keepdim=True)
    # The mean of large scores is rounded; the mean of the differences is what that lost. With it equal scores
    # give 0, not a rounding error that a small eps would blow up.
    return difference - difference.mean(-1, keepdim=True)


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
    # The difference to the mean of all G is (G - 1) / G of that to the mean of the others.
    difference = group_centred(scores)
    return difference * (scores.shape[-1] / (scores.shape[-1] - 1))
