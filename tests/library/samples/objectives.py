"""Sample calls of the whole objective, and of the policy loss from hidden states."""

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

# A bias, for the same reason as in the samples of the logits.
_HIDDEN = ("hidden", "weight", "tokens", "old_logprobs", "advantages", "mask", "bias")
_LINEAR = ("hidden", "weight", "bias")

RANGES = {
    "advantages": (-2, 2),
    "values": (-2, 2),
    "returns": (-2, 2),
    "entropies": (0, 2),
    "hidden": (-2, 2),
    "weight": (-1, 1),
    "bias": (-1, 1),
}
SAMPLES = [
    *(
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
    ),
    *(
        Sample(
            "hidden_policy_loss",
            (*_HIDDEN, *more),
            _LINEAR,
            {"epsilon": 0.3, "mode": mode, **options},
            by_token=True,
            result=(),
            rounds=_LINEAR,
            part=0,
        )
        for mode, options, more in (
            ("token_mean", {}, ()),
            ("constant", {"denominator": 7, "temperature": 0.7}, ()),
            ("sequence_mean_token_sum", {"epsilon_high": 0.4}, ("denominator",)),
            ("sequence_mean_token_mean", {"dual_clip": 1.5, "temperature": 2}, ("sequence_ids",)),
        )
    ),
]
