"""Sample calls of what makes one number of losses per token."""

from .core import Sample

RANGES = {"x": (-2, 2), "losses": (-2, 2)}
SAMPLES = [
    Sample("masked_sum", ("x", "mask"), ("x",), result=()),
    Sample("masked_mean", ("x", "mask"), ("x",), result=()),
    *(
        Sample(
            "aggregate",
            ("losses", "mask", *ids),
            ("losses",),
            {"mode": mode, **denominator},
            by_token=True,
            result=(),
        )
        for mode in ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")
        for denominator in ({}, {"denominator": 7})
        if mode != "constant" or denominator
        for ids in ((), ("sequence_ids",))
    ),
]
