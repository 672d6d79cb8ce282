"""Sample calls of the whitening."""

from .core import Sample

RANGES = dict.fromkeys(("rewards", "x"), (-2, 2))
SAMPLES = [
    *(Sample("whiten", ("x", "mask"), (), {"ddof": ddof, "eps": 0.01}) for ddof in (0, 1)),
    *(
        Sample(
            "reinforce_plus_plus",
            ("rewards", "mask", *packed),
            (),
            {"gamma": 0.9, "ddof": ddof, "eps": 0.01},
            by_token=True,
        )
        for packed, ddof in (((), 0), (("sequence_ids",), 1))
    ),
]
