"""Random inputs by name, the same in every process: from Python's own generator, not from torch's."""

import random

import torch
from torch import Tensor

ROWS, TOKENS, VOCABULARY, HIDDEN, GROUPS, GROUP = 4, 7, 11, 5, 2, 4
# The lengths of the answers in "padded".
LENGTHS = (7, 3, 1, 5)
# With these each side of each clip of the rows is reached, by good tokens and by bad ones.
SEEDS = (5, 36, 48)


def sample(kind: str, seed: int) -> dict[str, Tensor]:
    """Make one input of each name.

    `kind` says where the mask is True: "padded" at the start of each row, "holes" anywhere but not nowhere,
    "full" everywhere. What lies under the mask is random too, except rewards, which are 0 there: a reward
    that is not counted would be lost.
    """
    source = random.Random(f"{kind} {seed}")

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        size = torch.Size(shape).numel()
        return torch.tensor([source.gauss(0.0, scale) for _ in range(size)]).reshape(shape)

    mask = _mask(kind, source)
    old_logprobs = -normal(ROWS, TOKENS).abs() - 0.1
    values = normal(ROWS, TOKENS)
    chosen, rejected = -normal(ROWS, scale=5.0).abs() - 3, -normal(ROWS, scale=5.0).abs() - 3
    answer_advantages = normal(ROWS)
    tokens = torch.tensor([source.randrange(VOCABULARY) for _ in range(ROWS * TOKENS)])
    return {
        "mask": mask,
        "logprobs": old_logprobs + normal(ROWS, TOKENS, scale=0.5),
        "old_logprobs": old_logprobs,
        "ref_logprobs": old_logprobs + normal(ROWS, TOKENS, scale=0.5),
        "sampler_logprobs": old_logprobs + normal(ROWS, TOKENS, scale=0.5),
        "advantages": normal(ROWS, TOKENS),
        "answer_advantages": answer_advantages,
        "spread_advantages": answer_advantages.unsqueeze(-1).expand(ROWS, TOKENS),
        "rewards": torch.where(mask, normal(ROWS, TOKENS), 0.0),
        "losses": normal(ROWS, TOKENS),
        "values": values,
        "old_values": values + normal(ROWS, TOKENS, scale=0.5),
        "returns": normal(ROWS, TOKENS),
        "bootstrap": normal(ROWS),
        "scores": normal(ROWS),
        "group_scores": normal(GROUPS, GROUP),
        "chosen": chosen,
        "rejected": rejected,
        "ref_chosen": chosen + normal(ROWS, scale=2.0),
        "ref_rejected": rejected + normal(ROWS, scale=2.0),
        "logits": normal(ROWS, TOKENS, VOCABULARY, scale=2.0),
        "ref_logits": normal(ROWS, TOKENS, VOCABULARY, scale=2.0),
        "tokens": tokens.reshape(ROWS, TOKENS),
        "hidden": normal(ROWS, TOKENS, HIDDEN),
        "weight": normal(VOCABULARY, HIDDEN),
    }


def _mask(kind: str, source: random.Random) -> Tensor:
    if kind == "full":
        return torch.ones(ROWS, TOKENS, dtype=torch.bool)
    if kind == "padded":
        return torch.arange(TOKENS) < torch.tensor(LENGTHS).unsqueeze(-1)
    mask = torch.tensor([[source.random() < 0.6 for _ in range(TOKENS)] for _ in range(ROWS)])
    # No row without a counted token: several peers divide by 0 there, which the page of differences shows.
    mask[:, 2] = True
    return mask
