"""torchtune: its module rlhf."""

from benchmarks.parity.pairs import Pair, Peer

LOSS = (
    "ppo = loss.PPOLoss(epsilon=0.2, value_clip_range=0.3, value_coeff=0.1)\n"
    "total, policy, value, *_ = ppo(old_logprobs, logprobs, advantages, old_values, values, returns, mask, mask)\n"
)

PEER = Peer(
    name="torchtune",
    title="torchtune",
    distribution="torchtune",
    names="`rlhf` is `torchtune.rlhf`, `loss` is `torchtune.rlhf.loss`. Its `padding_masks` are True where a token counts.",
    arguments=(
        ("pi_logprobs", "logprobs", ""),
        ("pi_old_logprobs", "old_logprobs", "first in theirs, second in ours"),
        ("padding_masks", "mask", ""),
        ("epsilon", "epsilon", ""),
        ("phi_values", "values", ""),
        ("phi_old_values", "old_values", ""),
        ("value_clip_range", "epsilon", "of the value loss"),
        ("value_coeff", "value_coef", "of `ppo_objective`"),
        ("kl_coeff", "beta", ""),
        ("valid_score_idxs", "slot", "the last counted token by default in ours"),
        ("gamma", "gamma", ""),
        ("lmbda", "lam", ""),
        ("temperature", "temperature", ""),
    ),
    pairs=(
        Pair(
            "Policy loss",
            LOSS + "policy",
            "losses = policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            on="holes",
        ),
        Pair(
            "Clipped value loss",
            LOSS + "value",
            "losses = clipped_value_loss(values, old_values, returns, epsilon=0.3, factor=0.5, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            on="holes",
        ),
        Pair(
            "The whole loss",
            LOSS + "total",
            "policy = policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)\n"
            "value = clipped_value_loss(values, old_values, returns, epsilon=0.3, factor=0.5, mask=mask)\n"
            'aggregate(policy + 0.1 * value, mask, mode="token_mean")',
            slope="logprobs",
        ),
        Pair(
            "Clip fraction",
            "ppo = loss.PPOLoss(epsilon=0.2)\n"
            "ppo(old_logprobs, logprobs, advantages, old_values, values, returns, mask, mask)[4]",
            "fractions = clip_fractions(logprobs, old_logprobs, advantages, mask, epsilon=0.2)\n"
            "fractions.upper + fractions.lower",
        ),
        Pair(
            "Rewards with the KL leash",
            "rlhf.get_rewards_ppo(scores, logprobs, ref_logprobs, 0.1, mask.sum(1) - 1)[0]",
            "shaped_rewards(scores, logprobs, ref_logprobs, mask, beta=0.1)",
            counted=True,
        ),
        Pair(
            "Returns for the critic",
            "rlhf.estimate_advantages(values, rewards, 0.9, 0.8)[1]",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8) + values",
            on="full",
            note="Its recursion has no mask: values after the end must be 0 in theirs.",
        ),
        Pair(
            "GAE before whitening",
            "with unwhitened():\n"
            "    both = rlhf.estimate_advantages(torch.where(mask, values, 0.0), rewards, 0.9, 0.8, mask)\n"
            "both[0]",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8)",
            note="`unwhitened()` replaces `rlhf.whiten` for the call.",
        ),
        Pair(
            "Whitening",
            "rlhf.whiten(advantages, mask, shift_mean=False)",
            "whiten(advantages, mask, ddof=1, eps=1e-8)",
            on="holes",
            counted=True,
            note="Theirs centres with `shift_mean=False` and keeps the mean by default.",
        ),
        Pair(
            "Masked mean",
            "rlhf.masked_mean(losses, mask)",
            "masked_mean(losses, mask)",
            on="holes",
            slope="losses",
        ),
        Pair(
            "Log-probabilities",
            "rlhf.logits_to_logprobs(logits, tokens, temperature=0.7)",
            "token_logprobs(logits, tokens, temperature=0.7)",
            slope="logits",
        ),
        Pair(
            "Log-probability of a sequence",
            "rlhf.get_batch_log_probs(logits, tokens)",
            "token_logprobs(logits[:, :-1], tokens[:, 1:]).sum(-1)",
            slope="logits",
            note="Theirs shifts the tokens inside.",
        ),
        Pair(
            "DPO",
            "loss.DPOLoss(beta=0.1)(chosen, rejected, ref_chosen, ref_rejected)[0]",
            "dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1)",
            slope="chosen",
        ),
        Pair(
            "Implicit reward",
            "loss.DPOLoss(beta=0.1)(chosen, rejected, ref_chosen, ref_rejected)[2]",
            "implicit_reward(rejected, ref_rejected, beta=0.1)",
        ),
    ),
)
