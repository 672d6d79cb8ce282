"""Sample calls of the ratios, the surrogates and the policy losses."""

from .core import Sample

_PAIR = ("logprobs", "old_logprobs")
_POLICY = (*_PAIR, "advantages")
_SURROGATE = ("ratio", "advantages")

RANGES = {"advantages": (-2, 2), "ratio": (0, 2)}
SAMPLES = [
    Sample("log_ratio", _PAIR, ("logprobs",)),
    Sample("ratio", _PAIR, ("logprobs",)),
    Sample("ratio", _PAIR, ("logprobs",), {"log_bound": 0.7}),
    *(
        Sample("sequence_ratio", (*_PAIR, "mask", *ids), ("logprobs",), by_token=True)
        for ids in ((), ("sequence_ids",))
    ),
    Sample("surrogate", _SURROGATE, ("ratio",)),
    Sample("clip_ratio", ("ratio",), ("ratio",), {"epsilon": 0.2}),
    Sample("clip_ratio", ("ratio",), ("ratio",), {"epsilon": 0.2, "epsilon_high": 0.5}),
    *(
        Sample("clipped_surrogate", _SURROGATE, ("ratio",), {"epsilon": 0.2, **options})
        for options in (
            {},
            {"epsilon_high": 0.5},
            {"dual_clip": 1.5},
            {"epsilon_high": 0.6, "dual_clip": 1.3},
        )
    ),
    *(
        Sample("policy_loss", (*_POLICY, *mask), ("logprobs",), {"epsilon": 0.3, **options})
        for options in ({}, {"epsilon_high": 1.5, "dual_clip": 3, "log_bound": 1.9})
        for mask in ((), ("mask",))
    ),
    *(
        Sample("policy_loss", _POLICY, ("logprobs",), {"epsilon": 0.3, name: value})
        for name, value in (("epsilon_high", 0.5), ("dual_clip", 2.5), ("log_bound", 0.8))
    ),
    *(
        Sample("sequence_policy_loss", (*_POLICY, "mask", *ids), ("logprobs",), options, by_token=True)
        for ids in ((), ("sequence_ids",))
        for options in ({"epsilon": 0.3}, {"epsilon": 0.2, "epsilon_high": 0.4})
    ),
    *(
        Sample("cispo_loss", (*_POLICY, *mask), ("logprobs",), bounds, slope="cispo_slope")
        for mask in ((), ("mask",))
        for bounds in ({"epsilon_low": 0.2, "epsilon_high": 0.3}, {"min_ratio": 0.5, "max_ratio": 2})
    ),
    *(
        Sample("cispo_loss", _POLICY, ("logprobs",), {name: value}, slope="cispo_slope")
        for name, value in (
            ("epsilon_low", 0.4),
            ("epsilon_high", 1.5),
            ("min_ratio", 0.7),
            ("max_ratio", 1.2),
        )
    ),
]
