"""A sample call: how to draw its arguments, make tensors of them, and call the function."""

import random
from dataclasses import dataclass, field

import torch

import ppo_core
import reference
from reference.lists import rows, under_mask

VOCABULARY, WIDTH = 4, 3
# What stands at each token where it is more than a number, and what is there once for all tokens.
AT_EACH_TOKEN = {"logits": (VOCABULARY,), "ref_logits": (VOCABULARY,), "hidden": (WIDTH,)}
ONCE = {"weight": (VOCABULARY, WIDTH), "bias": (VOCABULARY,), "denominator": ()}
# What is no floating-point tensor: it keeps its type, holds no NaN and gets no gradient.
KINDS = {
    "mask": torch.bool,
    "tokens": torch.int64,
    "sequence_ids": torch.int64,
    "slot": torch.int64,
    "terminated": torch.bool,
    "denominator": torch.int64,
}


@dataclass(frozen=True)
class Sample:
    """A way to call a function: its tensors, its plain parameters, and which tensors a gradient reaches."""

    name: str
    tensors: tuple[str, ...]
    gradients: tuple[str, ...]
    parameters: dict = field(default_factory=dict)
    by_token: bool = False  # the last dimension holds tokens, so that there must be one
    by_group: bool = False  # the last dimension holds the answers of a group, at least two
    per_answer: tuple[str, ...] = ()  # the tensors that have one element for each answer
    result: tuple[int, ...] | None = None  # the shape of the result, where it is not that of the tensors
    slope: str | None = (
        None  # the twin of the gradient per token, where the gradient is not that of the value
    )
    rounds: tuple[str, ...] = ()  # the tensors that autocast rounds first, as it does in a linear layer
    part: int | None = None  # which of several results is looked at
    ranges: dict = field(default_factory=dict)  # from where to where a tensor is drawn; its subject's RANGES

    def __str__(self):
        part = [] if self.part is None else [str(self.part)]
        words = [self.name, *part, *(["mask"] if self.masked else []), *map(str, self.parameters.values())]
        return "-".join(words)

    @property
    def masked(self):
        return "mask" in self.tensors

    @property
    def reduces(self):
        return self.result is not None

    @property
    def numbers(self):
        """The floating-point tensors."""
        return tuple(name for name in self.tensors if name not in KINDS)

    @property
    def points_at_tokens(self):
        """Whether a tensor holds places of tokens, which mean others once some tokens are left out."""
        return "slot" in self.tensors

    def __call__(self, tensors):
        result = getattr(ppo_core, self.name)(**tensors, **self.parameters)
        if self.part is not None:
            return result[self.part]
        return torch.stack(result) if isinstance(result, tuple) else result

    def twin(self, data):
        result = getattr(reference, self.name)(**data, **self.parameters)
        return result if self.part is None else result[self.part]

    def result_shape(self, shape):
        return self.result if self.reduces else shape

    def shape_of(self, name, shape):
        """The shape of one tensor of a call in a shape."""
        if name in ONCE:
            return ONCE[name]
        shape = (*shape, *AT_EACH_TOKEN.get(name, ()))
        return shape[:-1] if name in self.per_answer else shape

    def covers(self, name, mask):
        """The mask in the shape of one tensor: which of its elements count. What has no tokens counts."""
        if name in ONCE:
            return mask.new_ones(ONCE[name])
        if name in AT_EACH_TOKEN:
            return mask.unsqueeze(-1).expand(*mask.shape, *AT_EACH_TOKEN[name])
        return torch.ones_like(mask[..., 0]) if name in self.per_answer else mask

    def subset(self, tensors, mask):
        """The counted tokens alone, as tensors of one dimension more than what stands at each token."""
        return {name: x if name in ONCE else x[mask] for name, x in tensors.items()}


def draw(sample, shape, seed=0):
    """Draw the arguments of a sample as nested lists. Every sequence has a counted token."""
    rng = random.Random(f"{sample} {shape} {seed}")
    data = {name: _drawn(sample, name, shape, rng) for name in sample.tensors}
    if "rewards" in data and shape:
        # A reward on an uncounted token is an error.
        data["rewards"] = under_mask(lambda r: r, data.get("mask"), data["rewards"])
    if "slot" in data and shape:
        mask = data["mask"] if sample.masked else _nested(shape, lambda: True)
        data["slot"] = _slots(rng, mask, len(shape) - 1)
    return data


def to_tensors(data, shape, device="cpu", dtype=torch.float64, *, sample):
    """Make tensors of the data, in the right shape even where a dimension is 0."""
    return {
        name: torch.tensor(x, dtype=KINDS.get(name, dtype), device=device).reshape(
            sample.shape_of(name, shape)
        )
        for name, x in data.items()
    }


def tensors_of(sample, shape, device="cpu", dtype=torch.float64):
    """Draw the arguments of a sample as tensors."""
    return to_tensors(draw(sample, shape), shape, device, dtype, sample=sample)


def run(sample, tensors, call=None):
    """Return the result, and the gradient of a weighted sum of it into each tensor that should get one.

    `call` stands in for the sample where the call is to be made in another way.
    """
    leaves = {name: tensors[name].detach().clone().requires_grad_() for name in sample.gradients}
    result = (call or sample)({**tensors, **leaves})
    if not leaves:
        return result, ()
    # Unequal weights, so that a gradient in the wrong place shows.
    weights = torch.linspace(1, 2, result.numel(), dtype=result.dtype, device=result.device)
    loss = (result * weights.reshape(result.shape)).sum()
    return result.detach(), torch.autograd.grad(loss, list(leaves.values()))


def _drawn(sample, name, shape, rng):
    """Draw one tensor as nested lists; a slot needs the mask and is set later."""
    if name == "mask":
        return _mask(rng, shape)
    if name == "sequence_ids":
        return _sequence_ids(rng, shape)
    low, high = sample.ranges.get(name, (-3, 0))  # log-probabilities, where nothing else is said
    elements = {
        "tokens": lambda: rng.randrange(VOCABULARY),
        "slot": lambda: 0,
        "terminated": lambda: rng.random() < 0.5,
        "denominator": lambda: rng.randrange(1, 9),
    }
    return _nested(sample.shape_of(name, shape), elements.get(name, lambda: rng.uniform(low, high)))


def _nested(shape, element):
    return [_nested(shape[1:], element) for _ in range(shape[0])] if shape else element()


def _mask(rng, shape):
    mask = _nested(shape, lambda: rng.random() < 0.6)
    for row in rows(mask) if shape else []:
        if row:
            row[rng.randrange(len(row))] = True
    return mask


def _sequence_ids(rng, shape):
    """Number the sequences of each packed row, as in 0, 0, 1, 1, 1, 2."""
    ids = _nested(shape, lambda: 0)
    for row in rows(ids) if shape else []:
        for t in range(1, len(row)):
            row[t] = row[t - 1] + (rng.random() < 0.4)
    return ids


def _slots(rng, mask, depth):
    """Choose a counted token of each answer; 0 where there is none."""
    if depth:
        return [_slots(rng, answers, depth - 1) for answers in mask]
    counted = [t for t, counts in enumerate(mask) if counts]
    return rng.choice(counted) if counted else 0
