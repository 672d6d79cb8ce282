"""torchrl: its value estimators and its losses for language models."""

from benchmarks.parity.pairs import Pair, Peer

STEPS = (
    "next_values = torch.cat([values[:, 1:], bootstrap.unsqueeze(1)], 1)\n"
    "done = torch.zeros(4, 7, dtype=torch.bool)\n"
    "done[:, -1] = True\n"
)
ARGUMENTS = "values.unsqueeze(-1), next_values.unsqueeze(-1), rewards.unsqueeze(-1),\n    done.unsqueeze(-1)"
CUT = f"{STEPS}never = torch.zeros(4, 7, 1, dtype=torch.bool)\n"
POLICY = "_compute_policy_objective(logprobs - old_logprobs, advantages)[0]"
AGGREGATE = "_aggregate_loss_value(losses.unsqueeze(-1), mask)"

PEER = Peer(
    name="torchrl",
    title="torchrl",
    distribution="torchrl",
    names="`functional` is `torchrl.objectives.value.functional`, `grpo` is `torchrl.objectives.llm.grpo`, "
    "`llm_utils` is `torchrl.data.llm.utils`, "
    "`distance_loss` and `clip_value_loss` are `torchrl.objectives.utils.distance_loss` and `._clip_value_loss`. Its "
    "tensors have a last dimension of size 1. The losses of `grpo` take a model; here the methods behind them run "
    "on log-probabilities.",
    arguments=(
        ("state_value", "values", ""),
        ("next_state_value", "bootstrap", "the last of them alone"),
        ("reward", "rewards", ""),
        ("terminated", "terminated", "one for each answer in ours"),
        ("gamma", "gamma", ""),
        ("lmbda", "lam", ""),
        ("clip_epsilon", "epsilon", ""),
        ("aggregation", "mode", "`prompt_mean` is `sequence_mean_token_mean`"),
        ("clip_value", "epsilon", "of the value loss"),
        ("init_kl_coef", "beta", ""),
        ("target", "target", "per sequence or token as what is given; ours wants its `unit`"),
        ("horizon", "horizon", ""),
    ),
    pairs=(
        Pair(
            "GAE, answer cut off",
            CUT + f"functional.generalized_advantage_estimate(0.9, 0.8, {ARGUMENTS}, never)[0].squeeze(-1)",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8, bootstrap=bootstrap)",
            on="full",
        ),
        Pair(
            "GAE, answer finished",
            STEPS + f"functional.generalized_advantage_estimate(0.9, 0.8, {ARGUMENTS})[0].squeeze(-1)",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8)",
            on="full",
            note="Without `terminated` every `done` is an end in theirs; in ours that is `bootstrap` left out.",
        ),
        Pair(
            "GAE, vectorised",
            CUT
            + f"functional.vec_generalized_advantage_estimate(0.9, 0.8, {ARGUMENTS}, never)[0].squeeze(-1)",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8, bootstrap=bootstrap)",
            on="full",
        ),
        Pair(
            "GAE, some finished and some cut off",
            STEPS + "finished = done & torch.tensor([True, False, True, False]).unsqueeze(1)\n"
            f"functional.generalized_advantage_estimate(0.9, 0.8, {ARGUMENTS},\n"
            "    finished.unsqueeze(-1))[0].squeeze(-1)",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8, bootstrap=bootstrap,\n"
            "    terminated=torch.tensor([True, False, True, False]))",
            on="full",
        ),
        Pair(
            "Discounted returns",
            "done = torch.zeros(4, 7, 1, dtype=torch.bool)\ndone[:, -1] = True\n"
            "functional.reward2go(rewards.unsqueeze(-1), done, gamma=0.9).squeeze(-1)",
            "discounted_returns(rewards, mask, gamma=0.9)",
            on="full",
        ),
        Pair(
            "Policy loss",
            f"grpo.GRPOLoss(clip_epsilon=0.2).{POLICY}",
            "policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2)",
            on="full",
            slope="logprobs",
        ),
        Pair(
            "Clip-higher",
            f"grpo.DAPO(clip_epsilon=(0.2, 0.28)).{POLICY}",
            "policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2, epsilon_high=0.28)",
            on="full",
            slope="logprobs",
        ),
        Pair(
            "Token mean",
            f'grpo.GRPOLoss(aggregation="token_mean").{AGGREGATE}',
            'aggregate(losses, mask, mode="token_mean")',
            on="holes",
            slope="losses",
        ),
        Pair(
            "Prompt mean",
            f'grpo.GRPOLoss(aggregation="prompt_mean").{AGGREGATE}[0]',
            'aggregate(losses, mask, mode="sequence_mean_token_mean")',
            slope="losses",
        ),
        Pair(
            "Adaptive KL",
            "controller = llm_utils.AdaptiveKLController(init_kl_coef=0.1, target=1.4, horizon=100)\n"
            "d = ref_logprobs - logprobs\n"
            "penalties = -0.1 * ((d.expm1() - d) * mask).sum(-1)\n"
            "controller.update(penalties)",
            "kl = kl_k3(logprobs, ref_logprobs, mask=mask)\n"
            'adapt_beta(kl, mask, beta=0.1, target=1.4, horizon=100, unit="sequence")',
            note="torchrl takes the penalties of the rewards, one for each sequence.",
        ),
        Pair(
            "Value loss",
            'distance_loss(values, returns, "l2")',
            "value_loss(values, returns, factor=1)",
            on="full",
            slope="values",
        ),
        Pair(
            "Clipped value loss",
            'plain = distance_loss(values, returns, "l2")\n'
            'clip_value_loss(old_values, values, torch.tensor(0.2), returns, plain, "l2")[0]',
            "clipped_value_loss(values, old_values, returns, epsilon=0.2, factor=1)",
            on="full",
        ),
    ),
)
