"""Sample calls of what makes one number of losses per token."""

from .core import Sample

RANGES = {"x": (-2, 2), "losses": (-2, 2)}
SAMPLES = [
    Sample("masked_sum", ("x", "mask"), ("x",), result=()),
    Sample("masked_mean", ("x", "mask"), ("x",), result=()),
    *(
        Sample(
            "aggregate",
            ("losses", "mask", *ids, *counted),
            ("losses",),
            {"mode": mode, **plain},
            by_token=True,
            result=(),
        )
        for mode in ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")
        # As a number, and as a tensor, which is what `batch_count` gives.
        for plain, counted in (({}, ()), ({"denominator": 7}, ()), ({}, ("denominator",)))
        if mode != "constant" or plain or counted
        for ids in ((), ("sequence_ids",))
    ),
]
