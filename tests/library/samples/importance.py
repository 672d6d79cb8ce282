"""Sample calls of the weights for tokens that something other than the trainer sampled."""

from .core import Sample

_PAIR = ("logprobs", "sampler_logprobs")

RANGES = {}
SAMPLES = [
    Sample(
        name,
        (*_PAIR, "mask", *ids),
        (),
        {"level": level, **bounds},
        by_token=level == "sequence" or ids != (),
    )
    for name, bounds in (
        ("truncated_weights", {"max_weight": 1.5}),
        ("masked_weights", {"min_weight": 0.5, "max_weight": 2.5}),
    )
    for level in ("token", "sequence")
    for ids in ((), ("sequence_ids",))
]
