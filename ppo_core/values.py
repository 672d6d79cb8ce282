"""What the critic is trained on: the squared error of its values, plain and clipped.

Half of it or the whole: projects differ, and the same coefficient then means twice the weight. So the factor
has no default.
"""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted


def value_loss(values: Tensor, returns: Tensor, *, factor: float, mask: Tensor | None = None) -> Tensor:
    r"""Take the squared difference between each value and its return, or half of it.

    $$\ell_t = f \, \bigl(V(s_t) - R_t\bigr)^2, \qquad f = \tfrac{1}{2} \text{ or } 1$$

    With the half the slope is the difference itself. The paper has no half: a coefficient of 1 with the half
    is one of 0.5 without it.

    Args:
        values: The critic's value of the state before each token, shape [...], in units of reward.
        returns: What it should have said, same shape, in units of reward: advantages plus old values.
        factor: $f$, 0.5 or 1.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, in squared units of reward, float32 or wider; 0 on uncounted tokens.
        Reduce it with `aggregate`.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or `factor` is not a plain number.
        ValueError: The shapes differ or `factor` is neither 0.5 nor 1.

    Gradient:
        Into `values` alone: $2 f (V(s_t) - R_t)$; 0 on uncounted tokens whatever they hold.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, $L^\text{VF}$ of equation 9, where the
        factor is 1.

    Examples:
        >>> import torch
        >>> from ppo_core import value_loss
        >>> values, returns = torch.tensor([0.5, 2.0]), torch.tensor([1.0, -1.0])
        >>> value_loss(values, returns, factor=0.5)
        tensor([0.1250, 4.5000])
        >>> value_loss(values, returns, factor=1)
        tensor([0.2500, 9.0000])
    """
    values, returns = checks.floats({"values": values, "returns": returns})
    checks.square_factor(factor)
    if mask is not None:
        checks.token_mask(mask, "values", values)
    return factor * counted(values - returns.detach(), mask) ** 2


def clipped_value_loss(
    values: Tensor,
    old_values: Tensor,
    returns: Tensor,
    *,
    epsilon: float,
    factor: float,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Take the larger of the squared errors of the value and of the value kept near the old one, or half of it.

    $$\ell_t = f \max\Bigl(\bigl(V - R\bigr)^2,
    \bigl(\operatorname{clip}(V, V_\text{old} - \epsilon, V_\text{old} + \epsilon) - R\bigr)^2\Bigr),
    \qquad f = \tfrac{1}{2} \text{ or } 1$$

    A value that has moved toward its return by more than $\epsilon$ is pulled no further; one that has moved
    away is pulled back in full.

    Args:
        values: The critic's value of the state before each token, shape [...], in units of reward.
        old_values: The same when the tokens were sampled, same shape, in units of reward.
        returns: What it should have said, same shape, in units of reward: advantages plus old values.
        epsilon: How far a value may move, above 0, in units of reward: not the width of the clip band of
            ratios, which has no unit.
        factor: $f$, 0.5 or 1: the half or the whole, as in `value_loss`.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, in squared units of reward, float32 or wider; 0 on uncounted tokens.
        Reduce it with `aggregate`.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, or `epsilon` or `factor` is not a plain
            number.
        ValueError: The shapes differ, `epsilon` is not above 0, or `factor` is neither 0.5 nor 1.

    Gradient:
        Into `values` alone: $2 f (V - R)$ where the plain error is the larger or both are equal, 0 where the
        clipped one is; 0 on uncounted tokens whatever they hold.

    Source:
        Huang et al., "The 37 Implementation Details of Proximal Policy Optimization", 2022, detail 9, where
        the factor is 1; the half is in the code that goes with it.

    Examples:
        >>> import torch
        >>> from ppo_core import clipped_value_loss
        >>> values = torch.tensor([0.9, -0.9], requires_grad=True)
        >>> loss = clipped_value_loss(values, torch.zeros(2), torch.ones(2), epsilon=0.2, factor=0.5)
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
    checks.square_factor(factor)
    if mask is not None:
        checks.token_mask(mask, "values", values)
    values = counted(values, mask)
    old_values, returns = counted(old_values.detach(), mask), counted(returns.detach(), mask)
    near = values.clamp(old_values - epsilon, old_values + epsilon)
    plain, clipped = (values - returns) ** 2, (near - returns) ** 2
    # Not torch.maximum: where both are equal it halves the slope of the plain error.
    return factor * torch.where(plain >= clipped, plain, clipped)
