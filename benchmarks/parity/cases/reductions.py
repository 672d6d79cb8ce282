"""Losses of the critic, and what a loss is divided by."""

from benchmarks.parity.differences import Difference

COLUMN = "values, returns = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, 2.0], [1.0, 2.0]])\n"


def column(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "Values of another shape",
        what,
        "values [[1], [2]], returns [[1, 2], [1, 2]]",
        COLUMN + theirs,
        COLUMN + "value_loss(values, returns, factor=0.5)",
        "'an error'",
        "an error: two values, four returns",
        "The values are broadcast, and a critic that is right for its own token is pulled to its neighbour's return.",
    )


PIECES = "for advantage, mask in ((-4.0, [True, False, False]), (0.0, [True, True, True])):\n"
OURS = (
    "parts = []\n"
    + PIECES
    + "    losses = policy_loss(torch.zeros(3), torch.zeros(3), torch.full((3,), advantage), epsilon=0.2)\n"
    '    parts.append(aggregate(losses, torch.tensor(mask), mode="token_mean", denominator=4))\n'
    "sum(parts)"
)


def pieces(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "A batch in two pieces",
        what,
        "losses [4] and [0, 0, 0] in two micro-batches",
        "parts = []\n" + PIECES + theirs + "sum(parts) / 2",
        OURS,
        "(4 + 0 + 0 + 0) / 4",
        "the mean over the four tokens of the batch: 4 / 4 = 1; the mean of the two means is (4 + 0) / 2 = 2",
        "Each piece is divided by its own number of tokens, so the loss depends on how the batch is cut. Ours takes "
        "the denominator of the whole.",
        fault=False,
    )


ROWS = (
    column(
        "verl",
        "`compute_value_loss`",
        "core_algos.compute_value_loss(values, returns, values, torch.ones(2, 2), 0.2)[0]",
    ),
    column("openrlhf", "`ValueLoss`", "loss.ValueLoss()(values, None, returns, torch.ones(2, 2))"),
    column(
        "torchtune",
        "`PPOLoss`",
        "zero = torch.zeros(2, 2)\nloss.PPOLoss()(zero, zero, zero, values, values, returns)[2]",
    ),
    Difference(
        "torchrl",
        "With or without the half",
        "`distance_loss`, l2",
        "value 2, return 0",
        'distance_loss(torch.tensor([2.0]), torch.tensor([0.0]), "l2")',
        "value_loss(torch.tensor([2.0]), torch.tensor([0.0]), factor=0.5)",
        "[2 ** 2 / 2]",
        "half of 2²: 2",
        "torchrl has no half; verl, OpenRLHF and torchtune have one. Ours has `factor`, and no default.",
        fault=False,
    ),
    pieces(
        "trl",
        '`loss_type="bnpo"`',
        "    zero = torch.zeros(1, 3)\n"
        "    advantages = torch.tensor([advantage])\n"
        '    parts.append(grpo_loss(zero, zero, advantages, torch.tensor([mask]), loss_type="bnpo"))\n',
    ),
    pieces(
        "torchtune",
        "`PPOLoss`",
        "    zero, counts = torch.zeros(1, 3), torch.tensor([mask])\n"
        "    advantages = torch.full((1, 3), advantage)\n"
        "    parts.append(loss.PPOLoss()(zero, zero, advantages, zero, zero, zero, counts, counts)[1])\n",
    ),
    pieces(
        "openrlhf",
        "`PolicyLoss`, without `batch_num_tokens`",
        "    zero, counts = torch.zeros(1, 3), torch.tensor([mask])\n"
        "    advantages = torch.full((1, 3), advantage)\n"
        "    parts.append(loss.PolicyLoss()(zero, zero, advantages, counts)[0])\n",
    ),
    Difference(
        "verl",
        "A constant that is not constant",
        "`seq-mean-token-sum-norm`, without `loss_scale_factor`",
        "losses [[1, 2], [3, ·]], budget 4 tokens",
        "losses, mask = torch.tensor([[1.0, 2.0], [3.0, 0.0]]), torch.tensor([[True, True], [True, False]])\n"
        'core_algos.agg_loss(losses, mask, "seq-mean-token-sum-norm")',
        "losses, mask = torch.tensor([[1.0, 2.0], [3.0, 0.0]]), torch.tensor([[True, True], [True, False]])\n"
        'aggregate(losses, mask, mode="constant", denominator=2 * 4)',
        "(1 + 2 + 3) / (2 * 4)",
        "(1 + 2 + 3) / (2 × 4) = 0.75",
        "Without the setting it divides by the width of the padded batch, here 2: the longest answer sets the step. Ours "
        "wants the number.",
        fault=False,
    ),
)
