"""Sample calls of the whole objective."""

from .core import Sample

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
_WEIGHTS = {"epsilon": 0.3, "value_coef": 0.7, "entropy_coef": 0.2, "beta": 0.1}

RANGES = {"advantages": (-2, 2), "values": (-2, 2), "returns": (-2, 2), "entropies": (0, 2)}
SAMPLES = [
    Sample(
        "ppo_objective",
        (*_OBJECTIVE, *more),
        ("logprobs", "values", "entropies"),
        {**_WEIGHTS, "mode": mode, **options},
        by_token=True,
        result=(5,),
    )
    for mode, options, more in (
        ("token_mean", {}, ()),
        ("constant", {"denominator": 7}, ()),
        ("sequence_mean_token_sum", {"epsilon_high": 0.4}, ("denominator",)),
        ("sequence_mean_token_mean", {"epsilon_high": 0.5, "dual_clip": 2}, ("sequence_ids",)),
    )
]
