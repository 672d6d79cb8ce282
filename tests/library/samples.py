"""Sample calls of every public function, as plain data: the general tests run over them."""

import random
from dataclasses import dataclass, field

import torch

import ppo_core
import reference

VOCABULARY = 4


@dataclass(frozen=True)
class Sample:
    """A way to call a function: its tensors, its plain parameters, and which tensors a gradient reaches."""

    name: str
    tensors: tuple[str, ...]
    gradients: tuple[str, ...]
    parameters: dict = field(default_factory=dict)
    by_token: bool = False  # the last dimension holds tokens, so that there must be one
    by_group: bool = False  # the last dimension holds the answers of a group, at least two
    per_answer: str = ""  # the tensor that has one number for each answer
    result: tuple[int, ...] | None = None  # the shape of the result, where it is not that of the tensors

    def __str__(self):
        words = [self.name, *(["mask"] if self.masked else []), *map(str, self.parameters.values())]
        return "-".join(words)

    @property
    def masked(self):
        return "mask" in self.tensors

    @property
    def reduces(self):
        return self.result is not None

    def __call__(self, tensors):
        result = getattr(ppo_core, self.name)(**tensors, **self.parameters)
        return torch.stack(result) if isinstance(result, tuple) else result

    def twin(self, data):
        return getattr(reference, self.name)(**data, **self.parameters)

    def result_shape(self, shape):
        return self.result if self.reduces else shape

    def shape_of(self, name, shape):
        """The shape of one tensor of a call in a shape."""
        if name == "logits":
            return (*shape, VOCABULARY)
        return shape[:-1] if name == self.per_answer else shape

    def covers(self, name, mask):
        """The mask in the shape of one tensor: which of its elements count. What has no tokens counts."""
        if name == "logits":
            return mask.unsqueeze(-1).expand(*mask.shape, VOCABULARY)
        return torch.ones_like(mask[..., 0]) if name == self.per_answer else mask


_PAIR = ("logprobs", "ref_logprobs")
_POLICY = ("logprobs", "old_logprobs", "advantages")
_DPO = ("chosen", "rejected", "ref_chosen", "ref_rejected")
_OBJECTIVE = (
    "logprobs",
    "old_logprobs",
    "ref_logprobs",
    "advantages",
    "values",
    "returns",
    "entropies",
    "mask",
)
_CRITIC = ("values", "old_values", "returns")
_WEIGHTS = {"epsilon": 0.3, "value_coef": 0.7, "entropy_coef": 0.2, "beta": 0.1}
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
    Sample(
        "shaped_rewards", ("scores", *_PAIR, "mask"), (), {"beta": 0.1}, by_token=True, per_answer="scores"
    ),
    *(
        Sample(
            "gae",
            ("rewards", "values", "mask", *bootstrap),
            (),
            {"gamma": gamma, "lam": lam},
            by_token=True,
            per_answer="bootstrap",
        )
        for gamma, lam in ((0.9, 0.7), (1, 1), (1, 0), (0, 1))
        for bootstrap in ((), ("bootstrap",))
    ),
    Sample("discounted_returns", ("rewards", "mask"), (), {"gamma": 0.9}, by_token=True),
    Sample("group_relative", ("scores",), (), {"eps": 0.01}, by_group=True),
    Sample("leave_one_out", ("scores",), (), by_group=True),
    *(Sample("whiten", ("x", "mask"), (), {"ddof": ddof, "eps": 0.01}) for ddof in (0, 1)),
    Sample("value_loss", ("values", "returns"), ("values",)),
    Sample("value_loss", ("values", "returns", "mask"), ("values",)),
    Sample("clipped_value_loss", _CRITIC, ("values",), {"epsilon": 0.5}),
    Sample("clipped_value_loss", (*_CRITIC, "mask"), ("values",), {"epsilon": 0.5}),
    Sample("token_logprobs", ("logits", "tokens"), ("logits",)),
    Sample("token_logprobs", ("logits", "tokens", "mask"), ("logits",)),
    Sample("entropy", ("logits",), ("logits",)),
    Sample("entropy", ("logits", "mask"), ("logits",)),
    Sample("masked_sum", ("x", "mask"), ("x",), result=()),
    Sample("masked_mean", ("x", "mask"), ("x",), result=()),
    *(
        Sample(
            "aggregate",
            ("losses", "mask"),
            ("losses",),
            {"mode": mode, **denominator},
            by_token=True,
            result=(),
        )
        for mode in ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")
        for denominator in ({}, {"denominator": 7})
        if mode != "constant" or denominator
    ),
    *(
        Sample(
            "ppo_objective",
            _OBJECTIVE,
            ("logprobs", "values", "entropies"),
            {**_WEIGHTS, "mode": mode, **denominator},
            by_token=True,
            result=(5,),
        )
        for mode, denominator in (("token_mean", {}), ("constant", {"denominator": 7}))
    ),
    Sample("preference_probability", _DPO[:2], _DPO[:2]),
    Sample("reward_model_loss", _DPO[:2], _DPO[:2]),
    Sample("implicit_reward", _PAIR, ("logprobs",), {"beta": 0.1}),
    Sample("dpo_loss", _DPO, _DPO[:2], {"beta": 0.4}),
]

# Log-probabilities, where nothing else is said.
_RANGES = dict.fromkeys(
    ("advantages", "scores", "x", "losses", "rewards", "values", "old_values", "returns", "bootstrap"),
    (-2, 2),
)
_RANGES |= {"ratio": (0, 2), "logits": (-3, 3), "entropies": (0, 2)}


def draw(sample, shape, seed=0):
    """Draw the arguments of a sample as nested lists. Every sequence has a counted token."""
    rng = random.Random(f"{sample} {shape} {seed}")
    data = {}
    for name in sample.tensors:
        if name == "mask":
            data[name] = _mask(rng, shape)
        elif name == "tokens":
            data[name] = _nested(shape, lambda: rng.randrange(VOCABULARY))
        else:
            low, high = _RANGES.get(name, (-3, 0))
            drawn = _nested(sample.shape_of(name, shape), lambda low=low, high=high: rng.uniform(low, high))
            data[name] = drawn
    if "rewards" in data and shape:
        # A reward on an uncounted token is an error.
        data["rewards"] = reference._under_mask(lambda r: r, data["mask"], data["rewards"])
    return data


def to_tensors(data, shape, device="cpu", dtype=torch.float64, *, sample):
    """Make tensors of the data, in the right shape even where a dimension is 0."""
    kinds = {"mask": torch.bool, "tokens": torch.int64}
    return {
        name: torch.tensor(x, dtype=kinds.get(name, dtype), device=device).reshape(
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


def _nested(shape, element):
    return [_nested(shape[1:], element) for _ in range(shape[0])] if shape else element()


def _mask(rng, shape):
    mask = _nested(shape, lambda: rng.random() < 0.6)
    for row in reference._rows(mask) if shape else []:
        if row:
            row[rng.randrange(len(row))] = True
    return mask
