"""Sample calls of the advantages with a critic, and of the returns."""

from .core import Sample

RANGES = dict.fromkeys(("rewards", "values", "bootstrap"), (-2, 2))
ENDS = ((), ("bootstrap",), ("bootstrap", "terminated"))
SAMPLES = [
    *(
        Sample(
            "gae",
            ("rewards", "values", "mask", *ends),
            (),
            {"gamma": gamma, "lam": lam},
            by_token=True,
            per_answer=ends,
        )
        for gamma, lam in ((0.9, 0.7), (1, 1), (1, 0), (0, 1))
        for ends in ENDS[:2]
    ),
    Sample(
        "gae",
        ("rewards", "values", "mask", *ENDS[2]),
        (),
        {"gamma": 0.8, "lam": 0.6},
        by_token=True,
        per_answer=ENDS[2],
    ),
    *(
        Sample(
            "gae",
            ("rewards", "values", "mask", *ends, "sequence_ids"),
            (),
            {"gamma": 0.9, "lam": 0.8},
            by_token=True,
        )
        for ends in ENDS
    ),
    *(
        Sample(
            "discounted_returns",
            ("rewards", "mask", *ends),
            (),
            {"gamma": 0.9},
            by_token=True,
            per_answer=ends,
        )
        for ends in ENDS
    ),
    *(
        Sample(
            "discounted_returns",
            ("rewards", "mask", *ends, "sequence_ids"),
            (),
            {"gamma": 0.8},
            by_token=True,
        )
        for ends in ENDS
    ),
]
