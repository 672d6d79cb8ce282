"""Sample calls of every public function, as plain data: the general tests run over them."""

import random
from dataclasses import dataclass, field

import torch

import ppo_core
import reference


@dataclass(frozen=True)
class Sample:
    """A way to call a function: its tensors, its plain parameters, and which tensors a gradient reaches."""

    name: str
    tensors: tuple[str, ...]
    gradients: tuple[str, ...]
    parameters: dict = field(default_factory=dict)

    def __str__(self):
        words = [self.name, *(["mask"] if self.masked else []), *map(str, self.parameters.values())]
        return "-".join(words)

    @property
    def masked(self):
        return "mask" in self.tensors

    @property
    def by_token(self):
        """Whether the last dimension holds tokens, so that there must be one."""
        return self.name in ("aggregate", "shaped_rewards")

    @property
    def reduces(self):
        return self.name in ("aggregate", "masked_mean", "masked_sum")

    def __call__(self, tensors):
        return getattr(ppo_core, self.name)(**tensors, **self.parameters)

    def twin(self, data):
        return getattr(reference, self.name)(**data, **self.parameters)


_PAIR = ("logprobs", "ref_logprobs")
_POLICY = ("logprobs", "old_logprobs", "advantages")
SAMPLES = [
    Sample("log_ratio", ("logprobs", "old_logprobs"), ("logprobs",)),
    Sample("ratio", ("logprobs", "old_logprobs"), ("logprobs",)),
    Sample("surrogate", ("ratio", "advantages"), ("ratio",)),
    Sample("clip_ratio", ("ratio",), ("ratio",), {"epsilon": 0.2}),
    Sample("clipped_surrogate", ("ratio", "advantages"), ("ratio",), {"epsilon": 0.2}),
    Sample("policy_loss", _POLICY, ("logprobs",), {"epsilon": 0.3}),
    Sample("policy_loss", (*_POLICY, "mask"), ("logprobs",), {"epsilon": 0.3}),
    *(
        Sample(name, tensors, ("logprobs",))
        for name in ("kl_k1", "kl_k2", "kl_k3")
        for tensors in (_PAIR, (*_PAIR, "mask"))
    ),
    Sample("kl_penalty", _PAIR, ("logprobs",), {"beta": 0.1}),
    Sample("shaped_rewards", ("scores", *_PAIR, "mask"), (), {"beta": 0.1}),
    Sample("masked_sum", ("x", "mask"), ("x",)),
    Sample("masked_mean", ("x", "mask"), ("x",)),
    *(
        Sample("aggregate", ("losses", "mask"), ("losses",), {"mode": mode, **denominator})
        for mode in ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")
        for denominator in ({}, {"denominator": 7})
        if mode != "constant" or denominator
    ),
]

_RANGES = {"ratio": (0, 2), "advantages": (-2, 2), "scores": (-2, 2), "x": (-2, 2), "losses": (-2, 2)}


def draw(sample, shape, seed=0):
    """Draw the arguments of a sample as nested lists. Every sequence has a counted token."""
    rng = random.Random(f"{sample} {shape} {seed}")
    data = {}
    for name in sample.tensors:
        if name == "mask":
            data[name] = _mask(rng, shape)
        else:
            low, high = _RANGES.get(name, (-3, 0))
            data[name] = _nested(_shape(name, shape), lambda low=low, high=high: rng.uniform(low, high))
    return data


def to_tensors(data, shape, device="cpu", dtype=torch.float64):
    """Make tensors of the data, in the right shape even where a dimension is 0."""
    return {
        name: torch.tensor(x, dtype=torch.bool if name == "mask" else dtype, device=device).reshape(
            _shape(name, shape)
        )
        for name, x in data.items()
    }


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


def _shape(name, shape):
    return shape[:-1] if name == "scores" else shape


def _nested(shape, element):
    return [_nested(shape[1:], element) for _ in range(shape[0])] if shape else element()


def _mask(rng, shape):
    mask = _nested(shape, lambda: rng.random() < 0.6)
    for row in reference._rows(mask) if shape else []:
        if row:
            row[rng.randrange(len(row))] = True
    return mask
