"""What the critic is trained on: half the squared error of its values, plain and clipped."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted


def value_loss(values: Tensor, returns: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Take half the squared difference between each value and its return.

    $$\ell_t = \tfrac{1}{2} \bigl(V(s_t) - R_t\bigr)^2$$

    The half makes the slope the difference itself. Some trainers leave it out: there a coefficient of 0.5 is
    one of 1 here.

    Args:
        values: The critic's value of the state before each token, shape [...], in units of reward.
        returns: What it should have said, same shape, in units of reward: advantages plus old values.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, in squared units of reward, float32 or wider; 0 on uncounted tokens.
        Reduce it with `aggregate`.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        Into `values` alone: $V(s_t) - R_t$; 0 on uncounted tokens whatever they hold.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, $L^\text{VF}$ of equation 9, halved.

    Examples:
        >>> import torch
        >>> from ppo_core import value_loss
        >>> value_loss(torch.tensor([0.5, 2.0]), torch.tensor([1.0, -1.0]))
        tensor([0.1250, 4.5000])
    """
    values, returns = checks.floats({"values": values, "returns": returns})
    if mask is not None:
        checks.token_mask(mask, "values", values)
    return (counted(values, mask) - counted(returns.detach(), mask)) ** 2 / 2


def clipped_value_loss(
    values: Tensor, old_values: Tensor, returns: Tensor, *, epsilon: float, mask: Tensor | None = None
) -> Tensor:
    r"""Take half the larger of the squared errors of the value and of the value kept near the old one.

    $$\ell_t = \tfrac{1}{2} \max\Bigl(\bigl(V - R\bigr)^2,
    \bigl(\operatorname{clip}(V, V_\text{old} - \epsilon, V_\text{old} + \epsilon) - R\bigr)^2\Bigr)$$

    A value that has moved toward its return by more than $\epsilon$ is pulled no further; one that has moved
    away is pulled back in full.

    Args:
        values: The critic's value of the state before each token, shape [...], in units of reward.
        old_values: The same when the tokens were sampled, same shape, in units of reward.
        returns: What it should have said, same shape, in units of reward: advantages plus old values.
        epsilon: How far a value may move, above 0, in units of reward: not the width of the clip band of
            ratios, which has no unit.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, in squared units of reward, float32 or wider; 0 on uncounted tokens.
        Reduce it with `aggregate`.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or `epsilon` is not a plain number.
        ValueError: The shapes differ or `epsilon` is not above 0.

    Gradient:
        Into `values` alone: $V - R$ where the plain error is the larger or both are equal, 0 where the
        clipped one is; 0 on uncounted tokens whatever they hold.

    Source:
        Huang et al., "The 37 Implementation Details of Proximal Policy Optimization", 2022, detail 9, halved.

    Examples:
        >>> import torch
        >>> from ppo_core import clipped_value_loss
        >>> values = torch.tensor([0.9, -0.9], requires_grad=True)
        >>> loss = clipped_value_loss(values, torch.zeros(2), torch.ones(2), epsilon=0.2)
        >>> loss.tolist()
        [0.3200, 1.8050]
        >>> loss.sum().backward()
        >>> values.grad.tolist()
        [0.0000, -1.9000]
    """
    values, old_values, returns = checks.floats(
        {"values": values, "old_values": old_values, "returns": returns}
    )
    checks.positive("epsilon", epsilon)
    if mask is not None:
        checks.token_mask(mask, "values", values)
    values = counted(values, mask)
    old_values, returns = counted(old_values.detach(), mask), counted(returns.detach(), mask)
    near = values.clamp(old_values - epsilon, old_values + epsilon)
    plain, clipped = (values - returns) ** 2, (near - returns) ** 2
    # Not torch.maximum: where both are equal it halves the slope of the plain error.
    return torch.where(plain >= clipped, plain, clipped) / 2
