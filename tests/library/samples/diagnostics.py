"""Sample calls of what is watched during a run."""

from .core import Sample

_PAIR = ("logprobs", "old_logprobs")

RANGES = {"advantages": (-2, 2), "values": (-2, 2), "returns": (-2, 2), "log_weights": (-3, 3)}
SAMPLES = [
    *(
        Sample("clip_fractions", (*_PAIR, "advantages", "mask"), (), {"epsilon": 0.3, **options}, result=(3,))
        for options in ({}, {"epsilon_high": 0.5}, {"dual_clip": 1.5}, {"epsilon_high": 1.2, "dual_clip": 3})
    ),
    Sample("approximate_kl", (*_PAIR, "mask"), (), result=()),
    Sample("explained_variance", ("values", "returns", "mask"), (), result=()),
    Sample("effective_sample_size", ("log_weights", "mask"), (), result=()),
    *(Sample("ratio_quantiles", (*_PAIR, "mask"), (), {"q": q}, result=()) for q in (0, 0.3, 0.5, 1)),
]
