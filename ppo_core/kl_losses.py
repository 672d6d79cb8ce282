"""The leash in the loss: a value to report, and a gradient that says what the loss minimises."""

from torch import Tensor

from ppo_core import checks
from ppo_core.kl import kl_k1, kl_k2, kl_k3

ESTIMATORS = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}
GRADIENTS = ("own", "straight_through", "score_function")


def kl_loss(
    logprobs: Tensor, ref_logprobs: Tensor, *, estimator: str, gradient: str, mask: Tensor | None = None
) -> Tensor:
    r"""Give an estimate of the KL divergence per token, with the gradient that is asked for.

    $$\ell_t = k_j(d_t), \qquad \nabla \ell_t = g_j(d_t)\, \nabla \log \pi_\theta(a_t \mid s_t), \qquad
    d_t = \log \pi_\text{ref}(a_t \mid s_t) - \log \pi_\theta(a_t \mid s_t)$$

    The slope $g_j$ need not be that of the value. It is the estimator's own; or that of k2, straight
    through the value; or its own plus the value, which adds the score function, the share that a sampled
    token has because the policy chose it:

    | estimator | value $k_j$ | `"own"` | `"straight_through"` | `"score_function"` |
    |---|---|---|---|---|
    | k1 | $-d$ | $1$ | $-d$ | $1 - d$ |
    | k2 | $\tfrac{1}{2} d^2$ | $-d$ | $-d$ | $\tfrac{1}{2} d^2 - d$ |
    | k3 | $e^d - 1 - d$ | $1 - e^d$ | $-d$ | $-d$ |

    Averaged over tokens that the policy itself sampled, with the prefixes before them held fixed, that
    gives the gradient of the reverse divergence $\mathrm{KL}(\pi_\theta \Vert \pi_\text{ref})$, which is
    the leash that is meant, or of something else:

    | estimator | `"own"` | `"straight_through"` | `"score_function"` |
    |---|---|---|---|
    | k1 | nothing: zero | the reverse divergence | the reverse divergence |
    | k2 | the reverse divergence | the reverse divergence | the average of k2 |
    | k3 | the forward divergence, $\mathrm{KL}(\pi_\text{ref} \Vert \pi_\theta)$ | the reverse divergence | the reverse divergence |

    Tokens from an *older policy* need the ratio of the two policies as a weight. Either multiply the loss
    that has its own gradient, for k1 or k3, by `ratio(logprobs, old_logprobs)`: the slope of the ratio
    brings in the score function. Or multiply a loss with the gradient of the reverse divergence by the
    ratio detached. Not both: the score function would count twice.

    The divergence of *whole answers* has a gradient that no sum over tokens has, because a token also
    decides which tokens follow:

    $$\nabla\, \mathrm{KL} = \mathrm{E} \sum_t \Bigl(-d_t - \sum_{s > t} d_s\Bigr)
    \nabla \log \pi_\theta(a_t \mid s_t)$$

    The inner sum, over later tokens, is missing from every entry of the table. A leash in the reward has
    it, as the later part of the undiscounted return; see `shaped_rewards`.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        estimator: `"k1"`, `"k2"` or `"k3"`: the value.
        gradient: `"own"`, `"straight_through"` or `"score_function"`: the slope.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The value of the estimator per token, same shape, in nats, float32 or wider; 0 on uncounted tokens.
        That of k3 is infinite where $e^d$ overflows, at about $d = 88$ in float32. Where a log-probability is
        infinite it is NaN, unless the gradient is its own.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ, or `estimator` or `gradient` is unknown.

    Gradient:
        Into `logprobs` alone, as the first table says, 0 on uncounted tokens whatever they hold. Where
        $e^d$ overflows that of k3 is minus infinity if it is its own; the others stay $-d$. Only `"own"`
        has second derivatives: the other slopes are constants to autograd.

    Source:
        Schulman, "Approximating KL Divergence", 2020, for the values. Tang and Munos, "On a few pitfalls in
        KL divergence gradient estimation for RL", 2025, for their gradients and for sequences. Liu et al.,
        "Rethinking KL Regularization in RLHF: From Value Estimation to Gradient Optimization", 2025, for k2
        as a loss. DeepSeek-AI, "DeepSeek-V3.2", 2025, equation 7, for k3 times the ratio.

    Examples:
        >>> import torch
        >>> from ppo_core import kl_loss
        >>> logprobs, ref_logprobs = torch.tensor([-1.0]).requires_grad_(), torch.tensor([0.0])
        >>> loss = kl_loss(logprobs, ref_logprobs, estimator="k3", gradient="straight_through")
        >>> loss.backward()
        >>> loss.tolist(), logprobs.grad.tolist()
        ([0.718], [-1.0])
    """
    checks.one_of("estimator", estimator, tuple(ESTIMATORS))
    checks.one_of("gradient", gradient, GRADIENTS)
    value = ESTIMATORS[estimator](logprobs, ref_logprobs, mask=mask)
    if gradient == "own":
        return value
    drift = kl_k1(logprobs, ref_logprobs, mask=mask)
    slope = drift.detach()
    # The own slope of k3 plus its value, 1 - e^d + e^d - 1 - d, is -d again, and is never computed as infinity
    # less infinity.
    if gradient == "score_function" and estimator != "k3":
        slope = slope + (1 if estimator == "k1" else value.detach())
    # The last term is 0 and has the slope.
    return value.detach() + slope * (drift - drift.detach())
