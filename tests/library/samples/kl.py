"""Sample calls of the estimators of the KL divergence and of the penalty."""

from .core import Sample

_PAIR = ("logprobs", "ref_logprobs")

RANGES = {}
SAMPLES = [
    *(
        Sample(name, tensors, ("logprobs",))
        for name in ("kl_k1", "kl_k2", "kl_k3")
        for tensors in (_PAIR, (*_PAIR, "mask"))
    ),
    Sample("kl_penalty", _PAIR, ("logprobs",), {"beta": 0.1}),
]
