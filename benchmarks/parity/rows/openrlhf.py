"""OpenRLHF: its loss modules, its functions on tensors and its controller."""

from benchmarks.parity.pairs import Pair, Peer

TOKENS = 'aggregate(losses, mask, mode="token_mean")'
SEQUENCES = 'aggregate(losses, mask, mode="sequence_mean_token_mean")'

PEER = Peer(
    name="openrlhf",
    title="OpenRLHF",
    distribution="openrlhf",
    names="`loss` is `openrlhf.models.loss`, `utils` is `openrlhf.models.utils`, `kl_controller` is "
    "`openrlhf.trainer.ppo_utils.kl_controller`, "
    "`maker` is a `RemoteExperienceMaker` of `openrlhf.trainer.ppo_utils.experience_maker`.",
    arguments=(
        ("log_probs", "logprobs", ""),
        ("old_log_probs", "old_logprobs", ""),
        ("log_probs_base", "ref_logprobs", ""),
        ("rollout_log_probs", "sampler_logprobs", ""),
        ("action_mask", "mask", "bool in ours"),
        ("clip_eps_low", "epsilon", ""),
        ("clip_eps_high", "epsilon_high", ""),
        ("dual_clip", "dual_clip", ""),
        ("clip_eps", "epsilon", "of the value loss"),
        ("token_level_loss", "mode", "`token_mean` or `sequence_mean_token_mean`"),
        ("batch_num_tokens", "denominator", "with `token_mean`"),
        ("global_batch_size", "denominator", "with `sequence_mean_token_mean`"),
        ("kl_estimator", "estimator", ""),
        ("unbiased_gradient", "gradient", '`"straight_through"`'),
        ("kl_coef", "beta", ""),
        ("target", "target", "ours wants its `unit`"),
        ("horizon", "horizon", ""),
        ("lambd", "lam", ""),
    ),
    pairs=(
        Pair(
            "Policy loss",
            "loss.PolicyLoss(0.2, 0.2)(logprobs, old_logprobs, advantages, mask)[0]",
            "losses = policy_loss(logprobs, old_logprobs, advantages,\n"
            "                     epsilon=0.2, log_bound=20.0, mask=mask)\n" + TOKENS,
            on="holes",
            slope="logprobs",
            note="Its bound of 20 on the log-ratio is fixed; ours is off unless you give it.",
        ),
        Pair(
            "Policy loss, sample level",
            "loss.PolicyLoss(0.2, 0.2, token_level_loss=False)(logprobs, old_logprobs, advantages, mask)[0]",
            "losses = policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)\n" + SEQUENCES,
            slope="logprobs",
        ),
        Pair(
            "Asymmetric clip and dual clip",
            "loss.PolicyLoss(0.2, 0.28, dual_clip=3.0)(logprobs, old_logprobs, advantages, mask)[0]",
            "losses = policy_loss(logprobs, old_logprobs, advantages,\n"
            "                     epsilon=0.2, epsilon_high=0.28, dual_clip=3.0, mask=mask)\n" + TOKENS,
            slope="logprobs",
        ),
        Pair(
            "GSPO",
            'loss.PolicyLoss(0.1, 0.1, policy_loss_type="gspo")(logprobs, old_logprobs, advantages, mask)[0]',
            "losses = sequence_policy_loss(logprobs, old_logprobs, advantages, mask, epsilon=0.1)\n"
            + SEQUENCES,
            slope="logprobs",
        ),
        Pair(
            "Truncated importance weights",
            'correct = loss.PolicyLoss(0.2, 0.2, is_correction_level="token",\n'
            '                          is_correction_mode="clip", is_correction_threshold=[0.0, 1.5])\n'
            "correct(logprobs, old_logprobs, advantages, mask, sampler_logprobs)[0]",
            "weights = truncated_weights(old_logprobs, sampler_logprobs, mask,\n"
            '                            level="token", max_weight=1.5)\n'
            "losses = weights * policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)\n"
            + TOKENS,
            slope="logprobs",
        ),
        Pair(
            "Masked importance weights",
            'correct = loss.PolicyLoss(0.2, 0.2, is_correction_level="token",\n'
            '                          is_correction_mode="mask", is_correction_threshold=[0.7, 1.5])\n'
            "correct(logprobs, old_logprobs, advantages, mask, sampler_logprobs)[0]",
            "weights = masked_weights(old_logprobs, sampler_logprobs, mask,\n"
            '                         level="token", min_weight=0.7, max_weight=1.5)\n'
            "losses = weights * policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)\n"
            + TOKENS,
            slope="logprobs",
        ),
        Pair(
            "Clip fraction",
            "loss.PolicyLoss(0.2, 0.2)(logprobs, old_logprobs, advantages, mask)[1]",
            "fractions = clip_fractions(logprobs, old_logprobs, advantages, mask, epsilon=0.2)\n"
            "fractions.upper + fractions.lower",
            on="holes",
        ),
        Pair(
            "KL to the old policy",
            "loss.PolicyLoss(0.2, 0.2)(logprobs, old_logprobs, advantages, mask)[2]",
            "masked_mean(kl_k1(old_logprobs, logprobs, mask=mask), mask)",
            on="holes",
            note="k1, of either sign; our `approximate_kl` is k3, never negative.",
        ),
        Pair(
            "Clipped value loss",
            "loss.ValueLoss(0.2)(values, old_values, returns, mask)",
            "losses = clipped_value_loss(values, old_values, returns, epsilon=0.2, factor=0.5, mask=mask)\n"
            + TOKENS,
            slope="values",
        ),
        Pair(
            "Value loss",
            "loss.ValueLoss()(values, old_values, returns, mask)",
            "losses = value_loss(values, returns, factor=0.5, mask=mask)\n" + TOKENS,
            slope="values",
        ),
        Pair("Token level", "loss.aggregate_loss(losses, mask)", TOKENS, on="holes", slope="losses"),
        Pair(
            "Sample level",
            "loss.aggregate_loss(losses, mask, token_level_loss=False)",
            SEQUENCES,
            slope="losses",
        ),
        Pair(
            "Token level of a batch in pieces",
            "loss.aggregate_loss(losses, mask, batch_num_tokens=50)",
            'aggregate(losses, mask, mode="token_mean", denominator=50)',
            slope="losses",
        ),
        Pair(
            "Sample level of a batch in pieces",
            "loss.aggregate_loss(losses, mask, token_level_loss=False, global_batch_size=8)",
            'aggregate(losses, mask, mode="sequence_mean_token_mean", denominator=8)',
            slope="losses",
        ),
        *(
            Pair(
                f"KL, {name}",
                f'utils.compute_approx_kl(logprobs, ref_logprobs, kl_estimator="{name}")',
                f"kl_{name}(logprobs, ref_logprobs)",
                on="full",
                slope="logprobs",
                note="Theirs is bounded by 10, and its gradient ends there; ours is not bounded."
                if name == "k1"
                else "",
            )
            for name in ("k1", "k2", "k3")
        ),
        Pair(
            "KL, k3 with the gradient of k2",
            'utils.compute_approx_kl(logprobs, ref_logprobs, kl_estimator="k3", unbiased_gradient=True)',
            'kl_loss(logprobs, ref_logprobs, estimator="k3", gradient="straight_through")',
            on="full",
            slope="logprobs",
        ),
        Pair(
            "Adaptive KL",
            "controller = kl_controller.AdaptiveKLController(0.1, target=0.35, horizon=100)\n"
            'kl = utils.compute_approx_kl(logprobs, ref_logprobs, kl_estimator="k3")\n'
            "controller.update(utils.masked_mean(kl, mask).item(), n_steps=4)\n"
            "controller.value",
            "kl = kl_k3(logprobs, ref_logprobs, mask=mask)\n"
            'adapt_beta(kl, mask, beta=0.1, target=0.35, horizon=100, unit="token")',
            note="Theirs takes the number and the steps from the caller; ours counts the sequences.",
        ),
        Pair(
            "Rewards with the KL leash",
            "utils.compute_reward(scores, 0.1, logprobs - ref_logprobs, action_mask=mask)",
            "shaped_rewards(scores, logprobs, ref_logprobs, mask, beta=0.1)",
            counted=True,
        ),
        Pair(
            "GAE",
            "maker.get_advantages_and_returns(values, rewards, mask, 0.9, 0.8)[0]",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8)",
            counted=True,
            note="Equal as long as the mask has no holes: there theirs goes on counting time.",
        ),
        Pair(
            "Returns for the critic",
            "maker.get_advantages_and_returns(values, rewards, mask, 0.9, 0.8)[1]",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8) + values",
            counted=True,
        ),
        Pair(
            "Discounted returns",
            "maker.get_cumulative_returns(rewards, mask, 0.9)",
            "discounted_returns(rewards, mask, gamma=0.9)",
        ),
        Pair(
            "Whitening",
            "utils.masked_normalize(advantages, mask, dim=(0, 1))",
            "whiten(advantages, mask, ddof=0, eps=1e-8)",
            on="holes",
        ),
        Pair(
            "Masked mean",
            "utils.masked_mean(losses, mask)",
            "masked_mean(losses, mask)",
            on="holes",
            slope="losses",
        ),
        Pair(
            "Log-probabilities",
            "utils.log_probs_from_logits(logits.clone(), tokens, temperature=0.7)",
            "token_logprobs(logits, tokens, temperature=0.7)",
            slope="logits",
            note="Theirs divides the caller's own logits by the temperature, hence the copy.",
        ),
        Pair("Entropy", "utils.compute_entropy(logits)", "entropy(logits)", slope="logits"),
        Pair(
            "Reward model",
            "loss.PairWiseLoss()(chosen, rejected)",
            "reward_model_loss(chosen, rejected).mean()",
            slope="chosen",
        ),
        Pair(
            "DPO",
            "loss.DPOLoss(0.1)(chosen, rejected, ref_chosen, ref_rejected)[0]",
            "dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1).mean()",
            slope="chosen",
        ),
        Pair(
            "Implicit reward",
            "loss.DPOLoss(0.1)(chosen, rejected, ref_chosen, ref_rejected)[1]",
            "implicit_reward(chosen, ref_chosen, beta=0.1)",
        ),
    ),
)
