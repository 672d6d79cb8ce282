"""TRL: its GRPO trainer, the functions beside it, and its PPO trainer as it was last released."""

from benchmarks.parity.pairs import Pair, Peer

LOSSES = "losses = policy_loss(logprobs, old_logprobs, spread_advantages, epsilon=0.2, mask=mask)\n"


def grpo(settings: str) -> str:
    return f"grpo_loss(logprobs, old_logprobs, answer_advantages, mask,\n          {settings})"


PEER = Peer(
    name="trl",
    title="TRL",
    distribution="trl",
    names="`utils` is `trl.trainer.utils`, `ppo_trainer` is `trl.experimental.ppo.ppo_trainer`; `grpo_loss(...)` is the "
    "loss of `GRPOTrainer` with the named settings of `GRPOConfig`, from log-probabilities instead of a model; "
    "`chunked_logprobs` is `utils._ChunkedLogProbFunction.apply`. TRL has one advantage for each answer; "
    "`spread_advantages` is `answer_advantages.unsqueeze(-1).expand_as(logprobs)`.",
    arguments=(
        ("epsilon", "epsilon", ""),
        ("epsilon_high", "epsilon_high", '`max_ratio` of `cispo_loss` with `loss_type="cispo"`'),
        ("delta", "dual_clip", ""),
        ("beta", "beta", "times `kl_k3`, added to the loss"),
        ("loss_type", "mode", "see the rows below"),
        ("max_completion_length", "denominator", "times the number of sequences, with `constant`"),
    ),
    pairs=(
        Pair(
            "DAPO",
            grpo('loss_type="dapo", epsilon=0.2'),
            LOSSES + 'aggregate(losses, mask, mode="token_mean")',
            on="holes",
            slope="logprobs",
        ),
        Pair(
            "BNPO",
            grpo('loss_type="bnpo", epsilon=0.2'),
            LOSSES + 'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
            note="TRL's denominator is that of the micro-batch; give ours that of the batch.",
        ),
        Pair(
            "GRPO",
            grpo('loss_type="grpo", epsilon=0.2'),
            LOSSES + 'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="logprobs",
        ),
        Pair(
            "Dr. GRPO",
            grpo('loss_type="dr_grpo", epsilon=0.2, max_completion_length=16'),
            LOSSES + 'aggregate(losses, mask, mode="constant", denominator=4 * 16)',
            slope="logprobs",
        ),
        Pair(
            "LUSPO",
            grpo('loss_type="luspo", epsilon=0.2'),
            LOSSES + 'aggregate(losses, mask, mode="sequence_mean_token_sum")',
            slope="logprobs",
        ),
        Pair(
            "Clip-higher",
            grpo('loss_type="dapo", epsilon=0.2, epsilon_high=0.28'),
            "losses = policy_loss(logprobs, old_logprobs, spread_advantages,\n"
            "                     epsilon=0.2, epsilon_high=0.28, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
        ),
        Pair(
            "Two-sided clip",
            grpo('loss_type="dapo", epsilon=0.2, delta=1.5'),
            "losses = policy_loss(logprobs, old_logprobs, spread_advantages,\n"
            "                     epsilon=0.2, dual_clip=1.5, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
        ),
        Pair(
            "KL in the loss",
            grpo('ref_logprobs=ref_logprobs, beta=0.04, loss_type="dapo", epsilon=0.2'),
            LOSSES + "losses = losses + 0.04 * kl_k3(logprobs, ref_logprobs, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
        ),
        Pair(
            "GSPO",
            grpo('loss_type="grpo", epsilon=0.1, importance_sampling_level="sequence"'),
            "losses = sequence_policy_loss(logprobs, old_logprobs, spread_advantages, mask, epsilon=0.1)\n"
            'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="logprobs",
        ),
        Pair(
            "CISPO",
            grpo('loss_type="cispo", epsilon_high=1.28'),
            "losses = cispo_loss(logprobs, old_logprobs, spread_advantages, max_ratio=1.28, mask=mask)\n"
            'aggregate(losses, mask, mode="token_mean")',
            slope="logprobs",
            note="TRL's `epsilon_high` is the bound itself here, our `max_ratio`.",
        ),
        Pair(
            "Log-probabilities",
            "utils.selective_log_softmax(logits, tokens)",
            "token_logprobs(logits, tokens)",
            slope="logits",
        ),
        Pair("Entropy", "utils.entropy_from_logits(logits)", "entropy(logits)", slope="logits"),
        Pair(
            "Log-probabilities from hidden states",
            "chunked_logprobs(hidden.flatten(0, 1), weight, tokens.flatten(), 0.7, 4)[0].reshape(4, 7)",
            "hidden_logprobs(hidden, weight, tokens, temperature=0.7).logprobs",
            slope="hidden",
        ),
        Pair(
            "Entropy from hidden states",
            "chunked_logprobs(hidden.flatten(0, 1), weight, tokens.flatten(), 0.7, 4)[1].reshape(4, 7)",
            "hidden_logprobs(hidden, weight, tokens, temperature=0.7).entropies",
            note="Theirs sends no gradient back, ours does. Theirs is the difference of two numbers near 10, and has the "
            "digits of one.",
            tolerance=1e-4,
        ),
        Pair(
            "Masked mean",
            "ppo_trainer.masked_mean(losses, mask)",
            "masked_mean(losses, mask)",
            on="holes",
            slope="losses",
        ),
        Pair(
            "Whitening",
            "ppo_trainer.masked_whiten(advantages, mask)",
            "whiten(advantages, mask, ddof=1, eps=1e-8)",
            on="holes",
            counted=True,
            note="Under the mask TRL leaves other numbers; ours are 0.",
        ),
        Pair(
            "Whitening that keeps the mean",
            "ppo_trainer.masked_whiten(advantages, mask, shift_mean=False)",
            "whiten(advantages, mask, ddof=1, eps=1e-8) + masked_mean(advantages, mask)",
            on="holes",
            counted=True,
        ),
    ),
)
