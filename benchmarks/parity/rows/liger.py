"""Liger: the loss behind its chunked kernels, as it runs on a CPU."""

from benchmarks.parity.pairs import Pair, Peer

CALL = (
    "ppo_loss_fn(logprobs, mask, answer_advantages, mask, old_per_token_logps=old_logprobs,\n"
    "            epsilon_low=0.2, epsilon_high={high}, beta=0.0, {rest})[0]"
)
LOSSES = "losses = policy_loss(logprobs, old_logprobs, spread_advantages, epsilon=0.2, mask=mask)\n"

PEER = Peer(
    name="liger",
    title="Liger-Kernel",
    distribution="liger-kernel",
    names="`ppo_loss_fn` is that of `LigerFusedLinearGRPOFunction` and `preference_loss_fn` that of "
    "`LigerFusedLinearDPOFunction` in `liger_kernel.chunked_loss`, `selective_logprobs` is "
    "`_ChunkedSelectiveLogProbFunction.apply` of `fused_linear_ppo`. Liger has one advantage for each answer; "
    "`spread_advantages` is `answer_advantages.unsqueeze(-1).expand_as(logprobs)`.",
    arguments=(
        ("per_token_logps", "logprobs", ""),
        ("old_per_token_logps", "old_logprobs", ""),
        ("ref_per_token_logps", "ref_logprobs", ""),
        ("attention_mask", "mask", "bool in ours"),
        ("epsilon_low", "epsilon", ""),
        ("epsilon_high", "epsilon_high", '`max_ratio` of `cispo_loss` with `loss_type="cispo"`'),
        ("delta", "dual_clip", ""),
        ("beta", "beta", "times `kl_k3`, added to the loss"),
        ("vllm_is_ratio", "sampler_logprobs", "ours makes the weights: `truncated_weights`"),
        ("num_items_in_batch", "denominator", ""),
    ),
    pairs=(
        Pair(
            "DAPO",
            CALL.format(high=0.2, rest='loss_type="dapo"'),
            LOSSES + 'aggregate(losses, mask, mode="token_mean")',
            on="holes",
            slope="logprobs",
        ),
        Pair(
            "GRPO",
            CALL.format(high=0.2, rest='loss_type="grpo"'),
            LOSSES + 'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="logprobs",
        ),
        Pair(
            "Two-sided clip",
            CALL.format(high=0.28, rest='loss_type="dapo", delta=1.5'),
            "losses = policy_loss(logprobs, old_logprobs, spread_advantages,\n"
            "                     epsilon=0.2, epsilon_high=0.28, dual_clip=1.5, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
        ),
        Pair(
            "GSPO",
            CALL.format(high=0.2, rest='loss_type="grpo", importance_sampling_level="sequence"'),
            "losses = sequence_policy_loss(logprobs, old_logprobs, spread_advantages, mask, epsilon=0.2)\n"
            'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="logprobs",
        ),
        Pair(
            "CISPO",
            CALL.format(high=1.28, rest='loss_type="cispo"'),
            "losses = cispo_loss(logprobs, old_logprobs, spread_advantages, max_ratio=1.28, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
        ),
        Pair(
            "KL, k3",
            "grpo_loss.k3_loss_fn(ref_logprobs, logprobs)",
            "kl_k3(logprobs, ref_logprobs)",
            on="full",
            slope="logprobs",
        ),
        Pair(
            "DPO",
            "target = torch.zeros(8, 1)\n"
            "preference_loss_fn(chosen, rejected, target, ref_chosen, ref_rejected, beta=0.1)[0]",
            "dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1).mean()",
            slope="chosen",
        ),
        Pair(
            "Log-probabilities from hidden states",
            "selective_logprobs(hidden.flatten(0, 1), weight, tokens.flatten(), None, 0.7, 4).reshape(4, 7)",
            "hidden_logprobs(hidden, weight, tokens, temperature=0.7).logprobs",
            slope="hidden",
        ),
    ),
)
