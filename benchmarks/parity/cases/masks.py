"""What a mask lets through."""

from benchmarks.parity.differences import Difference

NAN = (
    "losses = torch.tensor([[1.0, torch.nan], [3.0, 4.0]])\n"
    "mask = torch.tensor([[True, False], [True, True]])\n"
)
EMPTY = "losses = torch.tensor([[1.0, 2.0]])\nmask = torch.tensor([[False, False]])\n"
WIDE = "losses = torch.tensor([[1.0, 2.0], [3.0, 4.0]])\nmask = torch.tensor([[True], [True]])\n"
FAR = (
    "logprobs = torch.tensor([[0.0, 200.0]])\nold_logprobs = torch.zeros(1, 2)\n"
    "mask = torch.tensor([[True, False]])\n"
)
FAR_OURS = (
    FAR + "losses = policy_loss(logprobs, old_logprobs, torch.full((1, 2), -1.0), epsilon=0.2, mask=mask)\n"
    'aggregate(losses, mask, mode="token_mean")'
)
TOKEN, SEQUENCE = '"token_mean"', '"sequence_mean_token_mean"'


def nan(peer: str, what: str, theirs: str, mode: str, right: str, by_hand: str) -> Difference:
    return Difference(
        peer,
        "NaN where nothing counts",
        what,
        "losses [[1, NaN], [3, 4]], mask [[1, 0], [1, 1]]",
        NAN + theirs,
        f"{NAN}aggregate(losses, mask, mode={mode})",
        right,
        by_hand,
        "The mask is multiplied with the loss, and 0 times NaN is NaN.",
    )


def empty(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "Nothing counts",
        what,
        "losses [[1, 2]], mask [[0, 0]]",
        EMPTY + theirs,
        EMPTY + 'aggregate(losses, mask, mode="token_mean")',
        "0",
        "no token asks for anything, so the loss is 0, and so is its gradient",
        "0 is divided by 0 tokens. One such micro-batch makes all weights NaN.",
    )


def wide(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "A mask of another shape",
        what,
        "losses [[1, 2], [3, 4]], mask [[1], [1]]",
        WIDE + theirs,
        WIDE + 'aggregate(losses, mask, mode="token_mean")',
        "'an error'",
        "an error; if the mask is meant for all tokens of a row: (1 + 2 + 3 + 4) / 4 = 2.5",
        "The mask is broadcast over the four losses above the line, but counted as two below it.",
    )


def far(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "A ratio that overflows where nothing counts",
        what,
        "log-ratios [[0, 200]], advantage −1, mask [[1, 0]]",
        FAR + theirs,
        FAR_OURS,
        "1",
        "only the first token counts: ratio 1 times advantage −1, negated: 1",
        "The exponential of 200 is infinite in float32, and 0 times infinity is NaN.",
    )


MEANS = "(1 + (3 + 4) / 2) / 2"
MEANS_BY_HAND = "(1 + (3 + 4) / 2) / 2 = 2.25"
POOLED = "(1 + 3 + 4) / 3"
POOLED_BY_HAND = "(1 + 3 + 4) / 3 = 2.6667"

ROWS = (
    nan(
        "verl",
        "`seq-mean-token-mean`",
        'core_algos.agg_loss(losses, mask, "seq-mean-token-mean")',
        SEQUENCE,
        MEANS,
        MEANS_BY_HAND,
    ),
    nan(
        "openrlhf",
        "`aggregate_loss`, sample level",
        "loss.aggregate_loss(losses, mask, token_level_loss=False)",
        SEQUENCE,
        MEANS,
        MEANS_BY_HAND,
    ),
    nan(
        "openrlhf",
        "`aggregate_loss`, token level",
        "loss.aggregate_loss(losses, mask)",
        TOKEN,
        POOLED,
        POOLED_BY_HAND,
    ),
    nan("trl", "`masked_mean`", "ppo_trainer.masked_mean(losses, mask)", TOKEN, POOLED, POOLED_BY_HAND),
    nan("torchtune", "`masked_mean`", "rlhf.masked_mean(losses, mask)", TOKEN, POOLED, POOLED_BY_HAND),
    nan(
        "torchrl",
        "`prompt_mean`",
        'grpo.GRPOLoss(aggregation="prompt_mean")._aggregate_loss_value(losses.unsqueeze(-1), mask)[0]',
        SEQUENCE,
        MEANS,
        MEANS_BY_HAND,
    ),
    empty("verl", "`token-mean`", 'core_algos.agg_loss(losses, mask, "token-mean")'),
    empty("openrlhf", "`aggregate_loss`", "loss.aggregate_loss(losses, mask)"),
    empty("trl", "`masked_mean`", "ppo_trainer.masked_mean(losses, mask)"),
    wide("verl", "`agg_loss`", 'core_algos.agg_loss(losses, mask, "token-mean")'),
    wide("openrlhf", "`aggregate_loss`", "loss.aggregate_loss(losses, mask)"),
    wide("trl", "`masked_mean`", "ppo_trainer.masked_mean(losses, mask)"),
    wide("torchtune", "`masked_mean`", "rlhf.masked_mean(losses, mask)"),
    far("trl", "`GRPOTrainer`", "grpo_loss(logprobs, old_logprobs, torch.tensor([-1.0]), mask)"),
    far(
        "torchtune",
        "`PPOLoss`",
        "zero = torch.zeros(1, 2)\nadvantages = torch.full((1, 2), -1.0)\n"
        "loss.PPOLoss()(old_logprobs, logprobs, advantages, zero, zero, zero, mask, mask)[1]",
    ),
    far(
        "liger",
        "`ppo_loss_fn`",
        "ppo_loss_fn(logprobs, mask, torch.tensor([-1.0]), mask, old_per_token_logps=old_logprobs, beta=0.0)[0]",
    ),
    Difference(
        "torchrl",
        "A mean over padding",
        "KL to the reference",
        "d = [1, 0], mask [1, 0]",
        "from tensordict import TensorDict\n"
        'data = TensorDict({"_cur_log_prob": torch.zeros(1, 2), "ref": torch.tensor([[1.0, 0.0]])}, [1])\n'
        'grpo.GRPOLoss()._kl_to_ref(data, key="ref", coeff=1.0, mask=torch.tensor([[True, False]]))[1]',
        "mask = torch.tensor([[True, False]])\n"
        "losses = kl_k3(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), mask=mask)\n"
        'aggregate(losses, mask, mode="token_mean")',
        "(e - 1 - 1) / 1",
        "one token counts: e − 1 − 1 = 0.7183, over 1",
        "The mean is over all places, so the leash is weaker the more padding there is; the policy loss beside it is "
        "a mean over counted tokens.",
    ),
    Difference(
        "torchtune",
        "A mean over padding",
        "mean ratio of `PPOLoss`",
        "log-ratios [0, 1], mask [1, 0]",
        "zero = torch.zeros(1, 2)\nmask = torch.tensor([[True, False]])\n"
        "loss.PPOLoss()(zero, torch.tensor([[0.0, 1.0]]), zero, zero, zero, zero, mask, mask)[3]",
        "mask = torch.tensor([[True, False]])\n"
        "masked_mean(ratio(torch.tensor([[0.0, 1.0]]), torch.zeros(1, 2)), mask)",
        "1",
        "one token counts, and its ratio is 1",
        "The reported mean takes padding in.",
    ),
)
