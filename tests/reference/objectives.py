"""The whole objective, and the policy loss from hidden states."""

from reference.aggregation import aggregate
from reference.lists import each
from reference.logits import hidden_logprobs
from reference.policy import policy_loss


def ppo_objective(
    logprobs, old_logprobs, ref_logprobs, advantages, values, returns, entropies, mask,
    *, epsilon, value_coef, entropy_coef, beta, mode, denominator=None, epsilon_high=None, dual_clip=None,
    sequence_ids=None,
):  # fmt: skip
    def reduced(losses):
        return aggregate(losses, mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids)

    clips = {"epsilon": epsilon, "epsilon_high": epsilon_high, "dual_clip": dual_clip}
    policy = reduced(policy_loss(logprobs, old_logprobs, advantages, **clips))
    value = reduced(each(lambda V, R: 0.5 * (V - R) ** 2, values, returns))
    entropy = reduced(entropies)
    kl = reduced(each(lambda new, ref: 0.5 * (new - ref) ** 2, logprobs, ref_logprobs))
    return [policy + value_coef * value - entropy_coef * entropy + beta * kl, policy, value, entropy, kl]


def hidden_policy_loss(
    hidden, weight, tokens, old_logprobs, advantages, mask, bias=None,
    *, epsilon, mode, denominator=None, epsilon_high=None, dual_clip=None, temperature=1.0, sequence_ids=None,
):  # fmt: skip
    logprobs, _ = hidden_logprobs(hidden, weight, tokens, bias, temperature=temperature, mask=mask)
    clips = {"epsilon": epsilon, "epsilon_high": epsilon_high, "dual_clip": dual_clip}
    losses = policy_loss(logprobs, old_logprobs, advantages, **clips, mask=mask)
    return aggregate(losses, mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids), logprobs
