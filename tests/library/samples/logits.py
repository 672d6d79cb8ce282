"""Sample calls of what is read off the logits, and off the hidden states that they are made of."""

from .core import Sample

# Without a bias the number of rows of the weight is free, and no shape of it alone is wrong.
_HIDDEN = ("hidden", "weight", "tokens", "bias")
_LINEAR = ("hidden", "weight", "bias")
# 2 is a token of the vocabulary here, so that some tokens are ignored.
_OPTIONS = ({}, {"temperature": 0.7}, {"ignore_index": 2}, {"temperature": 2, "ignore_index": 2})

RANGES = {"logits": (-3, 3), "hidden": (-2, 2), "weight": (-1, 1), "bias": (-1, 1)}
SAMPLES = [
    *(
        Sample("token_logprobs", ("logits", "tokens", *mask), ("logits",), options)
        for mask in ((), ("mask",))
        for options in _OPTIONS
    ),
    *(
        Sample("entropy", ("logits", *mask), ("logits",), options)
        for mask in ((), ("mask",))
        for options in _OPTIONS[:2]
    ),
    *(
        Sample("logit_statistics", ("logits", "tokens", *mask), ("logits",), options, part=part)
        for part in (0, 1)
        for mask in ((), ("mask",))
        for options in (_OPTIONS[0], _OPTIONS[3])
    ),
    *(
        Sample(
            "hidden_logprobs",
            (*_HIDDEN, *mask),
            _LINEAR,
            options,
            rounds=_LINEAR,
            part=part,
        )
        for part in (0, 1)
        for mask in ((), ("mask",))
        for options in (_OPTIONS[0], _OPTIONS[3])
    ),
]
