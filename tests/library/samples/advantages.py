"""Sample calls of the advantages and the returns."""

from .core import Sample

RANGES = dict.fromkeys(("rewards", "values", "bootstrap", "scores", "x"), (-2, 2))
SAMPLES = [
    *(
        Sample(
            "gae",
            ("rewards", "values", "mask", *bootstrap),
            (),
            {"gamma": gamma, "lam": lam},
            by_token=True,
            per_answer=("bootstrap",),
        )
        for gamma, lam in ((0.9, 0.7), (1, 1), (1, 0), (0, 1))
        for bootstrap in ((), ("bootstrap",))
    ),
    Sample("discounted_returns", ("rewards", "mask"), (), {"gamma": 0.9}, by_token=True),
    Sample("group_relative", ("scores",), (), {"eps": 0.01}, by_group=True),
    Sample("leave_one_out", ("scores",), (), by_group=True),
    *(Sample("whiten", ("x", "mask"), (), {"ddof": ddof, "eps": 0.01}) for ddof in (0, 1)),
]
