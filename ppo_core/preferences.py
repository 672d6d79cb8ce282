"""Learning from pairs: the Bradley-Terry model, the loss of a reward model, and DPO."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ppo_core import checks
from ppo_core.ratios import log_ratio


def preference_probability(chosen: Tensor, rejected: Tensor) -> Tensor:
    r"""Turn the scores of two answers into the probability that the first is preferred.

    $$P(\text{chosen} \succ \text{rejected}) = \sigma(r_\text{chosen} - r_\text{rejected}),
    \qquad \sigma(x) = \frac{1}{1 + e^{-x}}$$

    Only the difference counts: scores that are all higher by one number are the same model.

    Args:
        chosen: Score of the first answer of each pair, shape [...], in units of reward.
        rejected: Score of the second, same shape, in units of reward.

    Returns:
        The probabilities, same shape, float32 or wider.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes differ.

    Gradient:
        Into both: $p (1 - p)$ into `chosen`, the negative into `rejected`.

    Source:
        Bradley and Terry, "Rank Analysis of Incomplete Block Designs: I. The Method of Paired Comparisons",
        1952.

    Examples:
        >>> import torch
        >>> from ppo_core import preference_probability
        >>> preference_probability(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        tensor([0.5000, 0.8808])
    """
    chosen, rejected = checks.floats({"chosen": chosen, "rejected": rejected})
    return torch.sigmoid(chosen - rejected)


def reward_model_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    r"""Take the negative log-probability of the preference that was given.

    $$\ell = -\log \sigma(r_\text{chosen} - r_\text{rejected})$$

    Args:
        chosen: Score of the preferred answer of each pair, shape [...], in units of reward.
        rejected: Score of the other answer, same shape, in units of reward.

    Returns:
        The loss per pair, same shape, in nats, float32 or wider.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes differ.

    Gradient:
        Into both: $-\sigma(r_\text{rejected} - r_\text{chosen})$ into `chosen`, the negative into `rejected`.

    Source:
        Ouyang et al., "Training language models to follow instructions with human feedback", 2022, equation
        1, for one pair.

    Examples:
        >>> import torch
        >>> from ppo_core import reward_model_loss
        >>> reward_model_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        tensor([0.6931, 0.1269])
    """
    chosen, rejected = checks.floats({"chosen": chosen, "rejected": rejected})
    return -logsigmoid(chosen - rejected)


def implicit_reward(logprobs: Tensor, ref_logprobs: Tensor, *, beta: float) -> Tensor:
    r"""Read the reward that a policy stands for from how far it has moved from the reference.

    $$\hat r = \beta \log \frac{\pi_\theta(y \mid x)}{\pi_\text{ref}(y \mid x)}$$

    The policy that is best under a KL leash of strength $\beta$ has the true reward here, up to one constant
    per prompt, which no comparison of two answers sees.

    Args:
        logprobs: Log-probability of each whole answer under the policy, shape [...], in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        beta: Strength of the leash, above 0, in units of reward per nat.

    Returns:
        The implicit reward of each answer, same shape, in units of reward, float32 or wider.

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ or `beta` is not above 0.

    Gradient:
        Into `logprobs` alone: `beta`.

    Source:
        Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
        2023, equation 5 without its constant.

    Examples:
        >>> import torch
        >>> from ppo_core import implicit_reward
        >>> implicit_reward(torch.tensor([0.4]).log(), torch.tensor([0.2]).log(), beta=0.1)
        tensor([0.0693])
    """
    checks.positive("beta", beta)
    return beta * log_ratio(*checks.floats({"logprobs": logprobs, "ref_logprobs": ref_logprobs}))


def dpo_loss(
    chosen: Tensor, rejected: Tensor, ref_chosen: Tensor, ref_rejected: Tensor, *, beta: float
) -> Tensor:
    r"""Take the negative log-probability of the given preference, with implicit rewards as scores.

    $$\ell = -\log \sigma\Bigl(\beta \log \frac{\pi_\theta(y_c \mid x)}{\pi_\text{ref}(y_c \mid x)}
    - \beta \log \frac{\pi_\theta(y_r \mid x)}{\pi_\text{ref}(y_r \mid x)}\Bigr)$$

    with $y_c$ the chosen and $y_r$ the rejected answer. No reward model, no sampling, no critic, no clip.

    Args:
        chosen: Log-probability of the chosen answer under the policy, the sum over its tokens, shape [...],
            in nats.
        rejected: The same for the rejected answer, same shape, in nats.
        ref_chosen: Log-probability of the chosen answer under the frozen reference, same shape, in nats.
        ref_rejected: The same for the rejected answer, same shape, in nats.
        beta: Strength of the leash, above 0, in units of reward per nat.

    Returns:
        The loss per pair, same shape, in nats, float32 or wider; $\log 2$ for a policy that is the reference.

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ or `beta` is not above 0.

    Gradient:
        Into `chosen`: $-\beta$ times the probability of the opposite preference; the negative into
        `rejected`.

    Source:
        Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
        2023, equation 7, for one pair.

    Examples:
        >>> import torch
        >>> from ppo_core import dpo_loss
        >>> chosen, rejected = torch.tensor([0.4]).log(), torch.tensor([0.1]).log()
        >>> reference = torch.tensor([0.2]).log()
        >>> dpo_loss(chosen, rejected, reference, reference, beta=0.5)
        tensor([0.4055])
    """
    chosen, rejected, ref_chosen, ref_rejected = checks.floats(
        {"chosen": chosen, "rejected": rejected, "ref_chosen": ref_chosen, "ref_rejected": ref_rejected}
    )
    return reward_model_loss(
        implicit_reward(chosen, ref_chosen, beta=beta), implicit_reward(rejected, ref_rejected, beta=beta)
    )
