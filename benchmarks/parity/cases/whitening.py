"""Whitening: what is centred, what is divided by, what is left."""

from benchmarks.parity.differences import Difference

ONE = "x = torch.tensor([1.0, 2.0])\nmask = torch.tensor([True, False])\n"
THREE = "x = torch.tensor([1.0, 2.0, 3.0, 9.0])\nmask = torch.tensor([True, True, True, False])\n"
ROOT = "sqrt(((1 - 2) ** 2 + (2 - 2) ** 2 + (3 - 2) ** 2) / {})"
OURS = "x = torch.tensor([1.0, 2.0, 3.0])\nwhiten(x, torch.ones(3, dtype=torch.bool), ddof={}, eps=1e-8)"


def one(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "A single counted number",
        what,
        "x = [1, 2], mask [1, 0]",
        ONE + theirs,
        ONE + "whiten(x, mask, ddof=1, eps=1e-8)",
        "[1 - 1, 0]",
        "the number less its own mean is 0, whatever divides it",
        "The variance is 0 times 1/0, which is NaN, and spreads over all tokens.",
    )


def left(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "What stands under the mask",
        what,
        "x = [1, 2, 3, 9], mask [1, 1, 1, 0]",
        THREE + theirs,
        THREE + "whiten(x, mask, ddof=1, eps=1e-8)",
        "[-1, 0, 1, 0]",
        "mean 2 and standard deviation 1 of the counted; the last is no advantage: 0",
        "An uncounted token gets the advantage 7: harmless as long as each later step masks again.",
        fault=False,
    )


ROWS = (
    Difference(
        "torchtune",
        "Advantages that are not centred",
        "`whiten`, by default",
        "x = [1, 2, 3]",
        "rlhf.whiten(torch.tensor([1.0, 2.0, 3.0]))",
        OURS.format(1),
        f"[(1 - 2) / {ROOT.format(2)}, 0, (3 - 2) / {ROOT.format(2)}]",
        "mean 2, standard deviation √((1 + 0 + 1) / 2) = 1: (1 − 2) / 1, (2 − 2) / 1, (3 − 2) / 1",
        "`shift_mean=True`, the default, adds the mean back, and means the opposite of what it means in TRL and verl.",
    ),
    Difference(
        "torchtune",
        "Advantages that are not centred",
        "`estimate_advantages`",
        "rewards [1, 2, 3], values 0, γ = 0",
        "rlhf.estimate_advantages(torch.zeros(1, 3), torch.tensor([[1.0, 2.0, 3.0]]), 0.0, 1.0)[0]",
        "mask = torch.ones(1, 3, dtype=torch.bool)\n"
        "advantages = gae(torch.tensor([[1.0, 2.0, 3.0]]), torch.zeros(1, 3), mask, gamma=0.0, lam=1.0)\n"
        "whiten(advantages, mask, ddof=1, eps=1e-8)",
        f"[[(1 - 2) / {ROOT.format(2)}, 0, (3 - 2) / {ROOT.format(2)}]]",
        "with γ = 0 the advantages are the rewards; whitened: −1, 0, 1",
        "The same default: each of the three tokens is reinforced, the worst one too.",
    ),
    one("torchtune", "`whiten`", "rlhf.whiten(x, mask, shift_mean=False)"),
    one("trl", "`masked_whiten`", "ppo_trainer.masked_whiten(x, mask)"),
    left("verl", "`masked_whiten`", "verl_F.masked_whiten(x, mask.float())"),
    left("trl", "`masked_whiten`", "ppo_trainer.masked_whiten(x, mask)"),
    Difference(
        "openrlhf",
        "Divided by n or by n − 1",
        "`masked_normalize`",
        "x = [1, 2, 3]",
        "utils.masked_normalize(torch.tensor([[1.0, 2.0, 3.0]]), torch.ones(1, 3))",
        "x = torch.tensor([[1.0, 2.0, 3.0]])\nwhiten(x, torch.ones(1, 3, dtype=torch.bool), ddof=1, eps=1e-8)",
        f"[[(1 - 2) / {ROOT.format(2)}, 0, (3 - 2) / {ROOT.format(2)}]]",
        "with n − 1 = 2 the standard deviation is 1: −1, 0, 1; with n = 3 it is √(2/3) = 0.8165: −1.2247, 0, 1.2247",
        "OpenRLHF divides by n; verl, TRL and torchtune by n − 1. Ours has `ddof`, and no default.",
        fault=False,
    ),
)
