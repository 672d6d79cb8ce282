"""Ratios and clips."""

from benchmarks.parity.differences import Difference

FAR = "x = torch.tensor([[100.0]], requires_grad=True)\nzero, one = torch.zeros(1, 1), torch.ones(1, 1)\n"
OURS_FAR = FAR + "torch.autograd.grad(policy_loss(x, zero, one, epsilon=0.2).sum(), x)[0]"
GRADIENT = "torch.autograd.grad({}, x)[0]"
NO_PULL = (
    "The gradient 0 of the clip is multiplied by the infinite ratio: 0 times infinity is NaN, in all weights."
)


def far(peer: str, what: str, theirs: str, ours: str = OURS_FAR, right: str = "[[0]]") -> Difference:
    return Difference(
        peer,
        "A ratio that overflows: gradient",
        what,
        "log-ratio 100, advantage 1",
        theirs,
        ours,
        right,
        "the token is past the ceiling, where the loss is −1.2 whatever the ratio: slope 0",
        NO_PULL,
    )


def neutral(peer: str, what: str, theirs: str, right: str) -> Difference:
    return Difference(
        peer,
        "A ratio that overflows: advantage 0",
        what,
        "log-ratio 100, advantage 0",
        theirs,
        f"policy_loss(*torch.tensor({'[100.0, 0.0, 0.0]' if right == '0' else '[[100.0], [0.0], [0.0]]'}), epsilon=0.2)",
        right,
        "advantage 0 times any ratio is 0",
        "0 times infinity is NaN.",
    )


SAME = "x = torch.zeros(1, 2, requires_grad=True)\nold_logprobs = x * 1.0\nadvantages = torch.tensor([[1.0, 2.0]])\n"
MASK = "mask = torch.ones(1, 2, dtype=torch.bool)\n"


def same(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "Old log-probabilities that still have a graph",
        what,
        "old = logprobs, not detached, advantages [1, 2]",
        SAME + MASK + theirs,
        SAME + MASK + "losses = policy_loss(x, old_logprobs, advantages, epsilon=0.2)\n"
        'torch.autograd.grad(aggregate(losses, mask, mode="token_mean"), x)[0]',
        "[[-1 / 2, -2 / 2]]",
        "the ratio is 1, so the slope of each loss is −A, over 2 tokens: −0.5, −1",
        "The two gradients cancel: without an error, nothing is learned. To detach is left to the caller.",
        fault=False,
    )


CISPO = "x = torch.tensor([[1.5]]).log().requires_grad_()\nzero, one = torch.zeros(1, 1), torch.ones(1, 1)\n"
CISPO_OURS = CISPO + (
    "loss = cispo_loss(x, zero, one, epsilon_low=0.2, epsilon_high=0.28)\ntorch.autograd.grad(loss.sum(), x)[0]"
)


def cispo(peer: str, what: str, theirs: str, why: str, fault: bool) -> Difference:
    return Difference(
        peer,
        "CISPO",
        what,
        "ratio 1.5, advantage 1, bound 0.28",
        CISPO + theirs,
        CISPO_OURS,
        "[[-(1 + 0.28) * 1]]",
        "the weight is 1.5 bounded by 1 + 0.28, and not differentiated: −1.28 × 1",
        why,
        fault,
    )


RAW = "`epsilon_high` is the bound itself, not its distance from 1: they mean values such as 5. Ours has two names."
ROWS = (
    far("trl", "`GRPOTrainer`", FAR + GRADIENT.format("grpo_loss(x, zero, torch.tensor([1.0]), one)")),
    far(
        "torchtune",
        "`PPOLoss`",
        FAR + GRADIENT.format("loss.PPOLoss(epsilon=0.2)(zero, x, one, zero, zero, zero)[0]"),
    ),
    far(
        "torchrl",
        "`GRPOLoss`",
        FAR + GRADIENT.format("grpo.GRPOLoss()._compute_policy_objective(x, one)[0].sum()"),
    ),
    far(
        "liger",
        "`ppo_loss_fn`",
        FAR
        + GRADIENT.format(
            "ppo_loss_fn(x, one, torch.tensor([1.0]), one, old_per_token_logps=zero, beta=0.0)[0]"
        ),
    ),
    far(
        "rlax",
        "`clipped_surrogate_pg_loss`",
        "loss = lambda x: rlax.clipped_surrogate_pg_loss(jnp.exp(x), jnp.array([1.0]), 0.2)\n"
        "jax.grad(loss)(jnp.array([100.0]))",
        OURS_FAR + "[0]",
        "[0]",
    ),
    neutral(
        "trl",
        "`GRPOTrainer`",
        "grpo_loss(torch.tensor([[100.0]]), torch.zeros(1, 1), torch.tensor([0.0]), torch.ones(1, 1))",
        "0",
    ),
    neutral(
        "torchtune",
        "`PPOLoss`",
        "zero = torch.zeros(1, 1)\nloss.PPOLoss()(zero, torch.tensor([[100.0]]), zero, zero, zero, zero)[1]",
        "0",
    ),
    neutral(
        "torchrl",
        "`GRPOLoss`",
        "grpo.GRPOLoss()._compute_policy_objective(torch.tensor([100.0]), torch.tensor([0.0]))[0]",
        "[0]",
    ),
    cispo(
        "torchrl",
        "`CISPOLoss`",
        "objective = grpo.CISPOLoss(clip_epsilon=(0.2, 0.28))._compute_policy_objective(x, one)[0]\n"
        "torch.autograd.grad(objective.sum(), x)[0]",
        "The bounded ratio itself is differentiated, so a token past the bound has no gradient at all: what CISPO was "
        "made to avoid.",
        True,
    ),
    cispo(
        "trl",
        '`loss_type="cispo"`',
        'loss = grpo_loss(x, zero, torch.tensor([1.0]), one, loss_type="cispo", epsilon_high=0.28)\n'
        "torch.autograd.grad(loss, x)[0]",
        RAW,
        False,
    ),
    cispo(
        "liger",
        '`loss_type="cispo"`',
        "loss = ppo_loss_fn(x, one, torch.tensor([1.0]), one, old_per_token_logps=zero, beta=0.0,\n"
        '                   loss_type="cispo", epsilon_high=0.28)[0]\n'
        "torch.autograd.grad(loss, x)[0]",
        RAW,
        False,
    ),
    same(
        "verl",
        "`vanilla`",
        'loss = policy_loss_fn("vanilla", old_logprobs, x, advantages, mask, clip_ratio=0.2)\n'
        "torch.autograd.grad(loss, x)[0]",
    ),
    same(
        "openrlhf",
        "`PolicyLoss`",
        "torch.autograd.grad(loss.PolicyLoss(0.2, 0.2)(x, old_logprobs, advantages, mask)[0], x)[0]",
    ),
    same(
        "torchtune",
        "`PPOLoss`",
        "zero = torch.zeros(1, 2)\n"
        "torch.autograd.grad(loss.PPOLoss()(old_logprobs, x, advantages, zero, zero, zero)[0], x)[0]",
    ),
    Difference(
        "verl",
        "GSPO with advantages per token",
        "`gspo`, gradient",
        "one answer, all log-ratios 0, advantages [1, 3]",
        "x, old = torch.zeros(1, 2, requires_grad=True), torch.zeros(1, 2)\n"
        'loss = policy_loss_fn("gspo", old, x, torch.tensor([[1.0, 3.0]]), torch.ones(1, 2),\n'
        '                      clip_ratio=0.2, loss_agg_mode="seq-mean-token-mean")\n'
        "torch.autograd.grad(loss, x)[0]",
        "x, mask = torch.zeros(1, 2, requires_grad=True), torch.ones(1, 2, dtype=torch.bool)\n"
        "losses = sequence_policy_loss(x, torch.zeros(1, 2), torch.tensor([[1.0, 3.0]]), mask, epsilon=0.2)\n"
        'torch.autograd.grad(aggregate(losses, mask, mode="sequence_mean_token_mean"), x)[0]',
        "[[-(1 + 3) / 2 * (1 / 2), -(1 + 3) / 2 * (1 / 2)]]",
        "the loss is −(1 + 3)/2 times the ratio of the answer, which each of the two log-probabilities moves by 1/2: −1, −1",
        "verl has the variant GSPO-token: each token is moved by its own advantage, −1/2 and −3/2. With one advantage "
        "for each answer both are the same.",
        fault=False,
    ),
    Difference(
        "verl",
        "Dual clip by default",
        "`vanilla`",
        "log-ratio 2, advantage −1",
        'policy_loss_fn("vanilla", torch.zeros(1, 1), torch.tensor([[2.0]]), torch.tensor([[-1.0]]),\n'
        "               torch.ones(1, 1), clip_ratio=0.2)",
        "policy_loss(torch.tensor(2.0), torch.tensor(0.0), torch.tensor(-1.0), epsilon=0.2)",
        "exp(2) * 1",
        "min(e² × −1, 1.2 × −1), negated: 7.3891",
        "The loss of PPO as published has no bound here; verl's is bounded by 3 unless `clip_ratio_c` says otherwise.",
        fault=False,
    ),
    Difference(
        "openrlhf",
        "A bound on the log-ratio",
        "`PolicyLoss`",
        "log-ratio 30, advantage −1",
        "zero, one = torch.zeros(1, 1), torch.ones(1, 1)\n"
        "loss.PolicyLoss(0.2, 0.2)(torch.tensor([[30.0]]), zero, -one, one)[0]",
        "policy_loss(torch.tensor(30.0), torch.tensor(0.0), torch.tensor(-1.0), epsilon=0.2)",
        "exp(30) * 1",
        "e³⁰ = 1.0686e13",
        "The log-ratio is bounded by ±20, and past it the gradient is 0. Ours has `log_bound`, off by default.",
        fault=False,
    ),
    Difference(
        "torchrl",
        "Which tokens are clipped",
        "clip fraction of `GRPOLoss`",
        "ratio 1.5, advantage −1, ε = 0.2",
        "objective = grpo.GRPOLoss(clip_epsilon=0.2)._compute_policy_objective\n"
        "objective(torch.tensor([1.5]).log(), torch.tensor([-1.0]))[1]",
        "logprobs = torch.tensor([1.5]).log()\nmask = torch.tensor([True])\n"
        "fractions = clip_fractions(logprobs, torch.zeros(1), torch.tensor([-1.0]), mask, epsilon=0.2)\n"
        "fractions.upper + fractions.lower",
        "0",
        "min(1.5 × −1, 1.2 × −1) = −1.5: the clip changes nothing",
        "Each ratio outside the band is counted, whether the clip changes its loss or not.",
        fault=False,
    ),
)
