"""verl: its algorithms, its functions on tensors and its correction for the sampler."""

from benchmarks.parity.pairs import Pair, Peer

MEAN = 'aggregate(losses, mask, mode="token_mean")'
PADDING = "Under the mask verl leaves other numbers; ours are 0."
GROUPED = "score = group_scores.reshape(8, 1)\nones = torch.ones(8, 1)\nindex = np.repeat([0, 1], 4)\n"
REWARD = (
    "last = mask.sum(1, keepdim=True) - 1\n"
    "token_level_scores = torch.zeros_like(logprobs).scatter(1, last, scores.unsqueeze(1))\n"
)

PEER = Peer(
    name="verl",
    title="verl",
    distribution="verl",
    names="`core_algos` is `verl.trainer.ppo.core_algos`, `verl_F` is `verl.utils.torch_functional`, "
    "`rollout_corr_helper` is `verl.trainer.ppo.rollout_corr_helper`; `policy_loss_fn(name, ...)` is "
    "`core_algos.get_policy_loss_fn(name)` with the named settings of `ActorConfig`; "
    "`spread_advantages` is one advantage for each answer, `answer_advantages.unsqueeze(-1).expand_as(logprobs)`.",
    arguments=(
        ("log_prob", "logprobs", ""),
        ("old_log_prob", "old_logprobs", ""),
        ("ref_logprob", "ref_logprobs", ""),
        ("response_mask", "mask", "bool in ours"),
        ("clip_ratio", "epsilon", ""),
        ("clip_ratio_low", "epsilon", ""),
        ("clip_ratio_high", "epsilon_high", ""),
        ("clip_ratio_c", "dual_clip", "3 by default in theirs, none in ours"),
        ("vpreds", "values", ""),
        ("cliprange_value", "epsilon", "of the value loss"),
        ("loss_agg_mode", "mode", "hyphens in theirs, underscores in ours"),
        ("batch_num_tokens", "denominator", "with `token_mean`"),
        ("global_batch_size", "denominator", "with the sequence means"),
        ("loss_scale_factor", "denominator", "times the number of sequences, with `constant`"),
        ("token_level_rewards", "rewards", ""),
        ("gamma", "gamma", ""),
        ("lam", "lam", ""),
        ("kl_ratio", "beta", ""),
        ("init_kl_coef", "beta", ""),
        ("target_kl", "target", "ours wants its `unit`"),
        ("horizon", "horizon", ""),
        ("rollout_is", "level", ""),
        ("rollout_is_threshold", "max_weight", ""),
    ),
    pairs=(
        Pair(
            "Policy loss",
            'policy_loss_fn("vanilla", old_logprobs, logprobs, advantages, mask,\n'
            "               clip_ratio=0.2, clip_ratio_c=3.0)",
            "losses = policy_loss(logprobs, old_logprobs, advantages,\n"
            "                     epsilon=0.2, dual_clip=3.0, log_bound=20.0, mask=mask)\n" + MEAN,
            slope="logprobs",
            note="verl's dual clip is on unless you raise `clip_ratio_c`, and its bound of 20 on the log-ratio is fixed; "
            "in ours both are off unless you give them.",
        ),
        Pair(
            "Policy loss, no dual clip",
            'policy_loss_fn("vanilla", old_logprobs, logprobs, advantages, mask,\n'
            "               clip_ratio=0.2, clip_ratio_c=1e9)",
            "losses = policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)\n" + MEAN,
            on="holes",
            slope="logprobs",
        ),
        Pair(
            "Asymmetric clip",
            'policy_loss_fn("vanilla", old_logprobs, logprobs, advantages, mask,\n'
            "               clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=1e9)",
            "losses = policy_loss(logprobs, old_logprobs, advantages,\n"
            "                     epsilon=0.2, epsilon_high=0.28, mask=mask)\n" + MEAN,
            slope="logprobs",
        ),
        Pair(
            "Clip fraction",
            "core_algos.compute_policy_loss(old_logprobs, logprobs, advantages, mask, cliprange=0.2)[1]",
            "fractions = clip_fractions(logprobs, old_logprobs, advantages, mask, epsilon=0.2)\n"
            "fractions.upper + fractions.lower",
            on="holes",
            note="`actor/pg_clipfrac`; verl has one number for both sides.",
        ),
        Pair(
            "Fraction of the dual clip",
            "core_algos.compute_policy_loss(old_logprobs, logprobs, advantages, mask, cliprange=0.2,\n"
            "    clip_ratio_c=1.5)[3]",
            "clip_fractions(logprobs, old_logprobs, advantages, mask, epsilon=0.2, dual_clip=1.5).dual",
            on="holes",
            note="`actor/pg_clipfrac_lower`.",
        ),
        Pair(
            "KL to the old policy",
            "core_algos.compute_policy_loss(old_logprobs, logprobs, advantages, mask, cliprange=0.2)[2]",
            "masked_mean(kl_k1(old_logprobs, logprobs, mask=mask), mask)",
            on="holes",
            note="`actor/ppo_kl` is k1, of either sign; our `approximate_kl` is k3, never negative.",
        ),
        Pair(
            "GSPO",
            'policy_loss_fn("gspo", old_logprobs, logprobs, advantages, mask,\n'
            '               clip_ratio_low=0.1, clip_ratio_high=0.1, loss_agg_mode="seq-mean-token-mean")',
            "losses = sequence_policy_loss(logprobs, old_logprobs, advantages, mask, epsilon=0.1)\n"
            'aggregate(losses, mask, mode="sequence_mean_token_mean")',
        ),
        Pair(
            "GSPO, one advantage for each answer",
            'policy_loss_fn("gspo", old_logprobs, logprobs, spread_advantages, mask,\n'
            '               clip_ratio_low=0.1, clip_ratio_high=0.1, loss_agg_mode="seq-mean-token-mean")',
            "losses = sequence_policy_loss(logprobs, old_logprobs, spread_advantages, mask, epsilon=0.1)\n"
            'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="logprobs",
            note="With advantages that differ within an answer the value is the same and the gradient is not.",
        ),
        Pair(
            "CISPO",
            'loss = policy_loss_fn("cispo", old_logprobs, logprobs, advantages, mask,\n'
            "                      clip_ratio_low=0.2, clip_ratio_high=0.28)\n"
            "loss",
            "losses = cispo_loss(logprobs, old_logprobs, advantages,\n"
            "                    epsilon_low=0.2, epsilon_high=0.28, mask=mask)\n" + MEAN,
            slope="logprobs",
        ),
        Pair(
            "Token-mean",
            'core_algos.agg_loss(losses, mask, "token-mean")',
            MEAN,
            on="holes",
            slope="losses",
        ),
        Pair(
            "Token-mean of a batch in pieces",
            'core_algos.agg_loss(losses, mask, "token-mean", batch_num_tokens=50)',
            'aggregate(losses, mask, mode="token_mean", denominator=50)',
            slope="losses",
            note="`dp_size` is a factor on the loss; ours is `undo_mean_over_ranks`.",
        ),
        Pair(
            "Token-sum",
            'core_algos.agg_loss(losses, mask, "token-sum")',
            "masked_sum(losses, mask)",
            slope="losses",
        ),
        Pair(
            "Sequence-mean of token-means",
            'core_algos.agg_loss(losses, mask, "seq-mean-token-mean")',
            'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="losses",
        ),
        Pair(
            "Sequence-mean of token-sums",
            'core_algos.agg_loss(losses, mask, "seq-mean-token-sum")',
            'aggregate(losses, mask, mode="sequence_mean_token_sum")',
            slope="losses",
        ),
        Pair(
            "Constant denominator",
            'core_algos.agg_loss(losses, mask, "seq-mean-token-sum-norm", loss_scale_factor=16)',
            'aggregate(losses, mask, mode="constant", denominator=16 * 4)',
            slope="losses",
            note="Ours is the whole denominator, here 16 tokens times the 4 sequences of the batch.",
        ),
        Pair(
            "Clipped value loss",
            "core_algos.compute_value_loss(values, returns, old_values, mask, 0.2)[0]",
            "losses = clipped_value_loss(values, old_values, returns, epsilon=0.2, factor=0.5, mask=mask)\n"
            + MEAN,
            slope="values",
        ),
        Pair(
            "KL, k1",
            'core_algos.kl_penalty(logprobs, ref_logprobs, "k1")',
            "kl_k1(logprobs, ref_logprobs)",
            on="full",
            slope="logprobs",
        ),
        Pair(
            "KL, k2",
            'core_algos.kl_penalty(logprobs, ref_logprobs, "k2")',
            "kl_k2(logprobs, ref_logprobs)",
            on="full",
            slope="logprobs",
        ),
        Pair(
            "KL, k3",
            'core_algos.kl_penalty(logprobs, ref_logprobs, "k3")',
            "kl_k3(logprobs, ref_logprobs)",
            on="full",
            slope="logprobs",
            note="verl bounds the result by 10, and its gradient ends there; ours is not bounded.",
        ),
        Pair(
            "KL, k3 with the gradient of k2",
            'core_algos.kl_penalty(logprobs, ref_logprobs, "k3+")',
            'kl_loss(logprobs, ref_logprobs, estimator="k3", gradient="straight_through")',
            on="full",
            slope="logprobs",
        ),
        Pair(
            "Adaptive KL, a target per token",
            "controller = core_algos.AdaptiveKLController(0.1, target_kl=0.35, horizon=100)\n"
            'kl = core_algos.kl_penalty(logprobs, ref_logprobs, "k3")\n'
            "controller.update(verl_F.masked_mean(kl, mask).item(), n_steps=4)\n"
            "controller.value",
            "kl = kl_k3(logprobs, ref_logprobs, mask=mask)\n"
            'adapt_beta(kl, mask, beta=0.1, target=0.35, horizon=100, unit="token")',
            note="verl takes the number and the steps from the caller; ours counts the sequences.",
        ),
        Pair(
            "Adaptive KL, a target per sequence",
            "controller = core_algos.AdaptiveKLController(0.1, target_kl=1.4, horizon=100)\n"
            'kl = core_algos.kl_penalty(logprobs, ref_logprobs, "k3")\n'
            "controller.update((kl * mask).sum(-1).mean().item(), n_steps=4)\n"
            "controller.value",
            "kl = kl_k3(logprobs, ref_logprobs, mask=mask)\n"
            'adapt_beta(kl, mask, beta=0.1, target=1.4, horizon=100, unit="sequence")',
        ),
        Pair(
            "Rewards with the KL leash",
            REWARD + "core_algos.compute_rewards(token_level_scores, logprobs, ref_logprobs, 0.1)",
            "shaped_rewards(scores, logprobs, ref_logprobs, mask, beta=0.1)",
            counted=True,
            note=PADDING,
        ),
        Pair(
            "GAE",
            "core_algos.compute_gae_advantage_return(rewards, values, mask.float(), 0.9, 0.8)[0]",
            "whiten(gae(rewards, values, mask, gamma=0.9, lam=0.8), mask, ddof=1, eps=1e-8)",
            on="holes",
            counted=True,
            note="verl whitens inside; ours are two calls. " + PADDING,
        ),
        Pair(
            "Returns for the critic",
            "core_algos.compute_gae_advantage_return(rewards, values, mask.float(), 0.9, 0.8)[1]",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8) + values",
            on="holes",
            counted=True,
        ),
        Pair(
            "GAE before whitening",
            "with unwhitened():\n"
            "    both = core_algos.compute_gae_advantage_return(rewards, values, mask.float(), 0.9, 0.8)\n"
            "both[0]",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8)",
            on="holes",
            counted=True,
            note="`unwhitened()` replaces `verl_F.masked_whiten` for the call.",
        ),
        Pair(
            "GRPO advantages",
            GROUPED + "core_algos.compute_grpo_outcome_advantage(score, ones, index)[0].reshape(2, 4)",
            "group_relative(group_scores, eps=1e-6)",
            note="verl finds the groups by `index`; ours are the last dimension.",
        ),
        Pair(
            "Dr. GRPO advantages",
            GROUPED + "core_algos.compute_grpo_outcome_advantage(score, ones, index,\n"
            "    norm_adv_by_std_in_grpo=False)[0].reshape(2, 4)",
            "group_centred(group_scores)",
        ),
        Pair(
            "RLOO advantages",
            GROUPED + "core_algos.compute_rloo_outcome_advantage(score, ones, index)[0].reshape(2, 4)",
            "leave_one_out(group_scores)",
        ),
        Pair(
            "REINFORCE++ advantages",
            "config = AlgoConfig(gamma=0.9)\n"
            "core_algos.compute_reinforce_plus_plus_outcome_advantage(rewards, mask.float(), config=config)[0]",
            "reinforce_plus_plus(rewards, mask, gamma=0.9, ddof=1, eps=1e-8)",
            on="holes",
        ),
        Pair(
            "Discounted returns",
            "config = AlgoConfig(gamma=0.9)\n"
            "core_algos.compute_reinforce_plus_plus_outcome_advantage(rewards, mask.float(), config=config)[1]",
            "discounted_returns(rewards, mask, gamma=0.9)",
            on="holes",
        ),
        Pair(
            "Whitening",
            "verl_F.masked_whiten(advantages, mask.float())",
            "whiten(advantages, mask, ddof=1, eps=1e-8)",
            on="holes",
            counted=True,
            note=PADDING,
        ),
        Pair(
            "Masked mean",
            "verl_F.masked_mean(losses, mask)",
            "masked_mean(losses, mask)",
            on="holes",
            slope="losses",
        ),
        Pair(
            "Log-probabilities",
            "verl_F.logprobs_from_logits(logits / 0.7, tokens)",
            "token_logprobs(logits, tokens, temperature=0.7)",
            slope="logits",
        ),
        Pair("Entropy", "verl_F.entropy_from_logits(logits)", "entropy(logits)", slope="logits"),
        Pair(
            "Entropy loss",
            "core_algos.compute_entropy_loss(logits, mask)",
            'aggregate(entropy(logits, mask=mask), mask, mode="token_mean")',
            slope="logits",
        ),
        Pair(
            "Truncated importance weights",
            "rollout_corr_helper.compute_rollout_correction_weights(\n"
            '    old_logprobs - sampler_logprobs, mask, "token", 1.5)[0]',
            'truncated_weights(old_logprobs, sampler_logprobs, mask, level="token", max_weight=1.5)',
        ),
        Pair(
            "Truncated importance weights of sequences",
            "rollout_corr_helper.compute_rollout_correction_weights(\n"
            '    old_logprobs - sampler_logprobs, mask, "sequence", 1.5)[0]',
            'truncated_weights(old_logprobs, sampler_logprobs, mask, level="sequence", max_weight=1.5)',
        ),
        Pair(
            "Effective sample size",
            "rollout_corr_helper.compute_rollout_correction_weights(\n"
            '    old_logprobs - sampler_logprobs, mask, "token", 1e6)[1]["rollout_is_eff_sample_size"]',
            "effective_sample_size(old_logprobs - sampler_logprobs, mask)",
            on="holes",
        ),
        Pair(
            "Masked importance weights",
            "rollout_corr_helper.compute_rollout_correction_weights(\n"
            '    old_logprobs - sampler_logprobs, mask, "token", "0.7_1.5")[0]',
            "masked_weights(old_logprobs, sampler_logprobs, mask,\n"
            '               level="token", min_weight=0.7, max_weight=1.5)',
        ),
    ),
)
