"""Advantages along time and within a group."""

from benchmarks.parity.differences import Difference

LOST = "rewards = torch.tensor([[0.0, 0.0, 1.0]])\nmask = torch.tensor([[True, True, False]])\n"
CUT = "rewards = torch.tensor([[0.0, 1.0, 0.0]])\nvalues = torch.tensor([[0.0, 0.0, torch.nan]])\n" + (
    "mask = torch.tensor([[True, True, False]])\n"
)


def alone(what: str, call: str) -> Difference:
    return Difference(
        "verl",
        "A group of one",
        what,
        "one answer, score 5",
        f"core_algos.{call}(torch.tensor([[5.0]]), torch.ones(1, 1), np.array([0]))[0]",
        "leave_one_out(torch.tensor([[5.0]]))"
        if "rloo" in call
        else "group_relative(torch.tensor([[5.0]]), eps=1e-6)",
        "'an error'",
        "an error: one answer has nothing to be compared with; less its own mean it would be 5 − 5 = 0",
        "The raw score becomes the advantage, in a batch where all others are compared with their group.",
    )


HOLE = (
    "rewards, values = torch.tensor([[0.0, 0.0, 1.0]]), torch.zeros(1, 3)\n"
    "mask = torch.tensor([[True, False, True]])\n"
)


def hole(peer: str, theirs: str) -> Difference:
    name = theirs.split("(")[0].split(".")[1]
    return Difference(
        peer,
        "A hole in the answer",
        f"returns of `{name}`",
        "rewards [0, 0, 1], values 0, mask [1, 0, 1], γ = 0.9, λ = 1, first return",
        HOLE + theirs,
        HOLE + "gae(rewards, values, mask, gamma=0.9, lam=1.0)[0, 0]",
        "0.9 * 1",
        "the two counted tokens are neighbours: 0.9 × 1",
        "A token of a tool in between counts as a step of time: 0.9 × 0.9. In verl it does not, as in ours.",
        fault=False,
    )


ROWS = (
    Difference(
        "verl",
        "A reward that is not counted",
        "`compute_gae_advantage_return`, before whitening",
        "rewards [0, 0, 1], mask [1, 1, 0], values 0",
        LOST + "with unwhitened():\n"
        "    both = core_algos.compute_gae_advantage_return(rewards, torch.zeros(1, 3), mask.float(), 1.0, 1.0)\n"
        "both[0]",
        LOST + "gae(rewards, torch.zeros(1, 3), mask, gamma=1.0, lam=1.0)",
        "'an error'",
        "an error: the only reward stands where nothing counts; were it paid, both advantages would be 1",
        "The step is skipped together with its reward, and the answer teaches nothing.",
    ),
    Difference(
        "verl",
        "A value that is not counted",
        "`compute_gae_advantage_return`, before whitening",
        "rewards [0, 1, 0], values [0, 0, NaN], mask [1, 1, 0]",
        CUT + "with unwhitened():\n"
        "    both = core_algos.compute_gae_advantage_return(rewards, values, mask.float(), 1.0, 1.0)\n"
        "both[0]",
        CUT + "gae(rewards, values, mask, gamma=1.0, lam=1.0)",
        "[[0 + 1, 1, 0]]",
        "the answer has two steps and ends with the reward 1: advantages 0 + 1 and 1",
        "The mask is multiplied with the value, and 0 times NaN is NaN.",
    ),
    alone("`compute_grpo_outcome_advantage`", "compute_grpo_outcome_advantage"),
    alone("`compute_rloo_outcome_advantage`", "compute_rloo_outcome_advantage"),
    Difference(
        "torchtune",
        "Padding in the recursion",
        "returns of `estimate_advantages`",
        "rewards [1, 0], values [0, 5], mask [1, 0], γ = 1, λ = 0.5",
        "rewards, values = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 5.0]])\n"
        "rlhf.estimate_advantages(values, rewards, 1.0, 0.5, torch.tensor([[True, False]]))[1][0, 0]",
        "rewards, values = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 5.0]])\n"
        "mask = torch.tensor([[True, False]])\n"
        "(gae(rewards, values, mask, gamma=1.0, lam=0.5) + values)[0, 0]",
        "1 - 0 + 0",
        "the answer is one token with the reward 1 and the value 0: return 1",
        "The recursion has no mask: the value 5 of the padding enters. The caller must set such values to 0.",
        fault=False,
    ),
    hole("torchtune", "rlhf.estimate_advantages(values, rewards, 0.9, 1.0, mask)[1][0, 0]"),
    hole("openrlhf", "maker.get_advantages_and_returns(values, rewards, mask, 0.9, 1.0)[1][0, 0]"),
)
