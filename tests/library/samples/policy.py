"""Sample calls of the ratios, the surrogates and the policy loss."""

from .core import Sample

_POLICY = ("logprobs", "old_logprobs", "advantages")

RANGES = {"advantages": (-2, 2), "ratio": (0, 2)}
SAMPLES = [
    Sample("log_ratio", ("logprobs", "old_logprobs"), ("logprobs",)),
    Sample("ratio", ("logprobs", "old_logprobs"), ("logprobs",)),
    Sample("surrogate", ("ratio", "advantages"), ("ratio",)),
    Sample("clip_ratio", ("ratio",), ("ratio",), {"epsilon": 0.2}),
    Sample("clipped_surrogate", ("ratio", "advantages"), ("ratio",), {"epsilon": 0.2}),
    Sample("policy_loss", _POLICY, ("logprobs",), {"epsilon": 0.3}),
    Sample("policy_loss", (*_POLICY, "mask"), ("logprobs",), {"epsilon": 0.3}),
]
