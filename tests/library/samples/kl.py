"""Sample calls of the KL divergence: its estimators, the penalty, the losses, and the exact one."""

from .core import Sample

_PAIR = ("logprobs", "ref_logprobs")
_LOGITS = ("logits", "ref_logits")
_SHAPED = ("straight_through", "score_function")  # gradients that are not those of the value

RANGES = {"logits": (-3, 3), "ref_logits": (-3, 3)}
SAMPLES = [
    *(
        Sample(name, tensors, ("logprobs",))
        for name in ("kl_k1", "kl_k2", "kl_k3")
        for tensors in (_PAIR, (*_PAIR, "mask"))
    ),
    Sample("kl_penalty", _PAIR, ("logprobs",), {"beta": 0.1}),
    *(
        Sample(
            "kl_loss",
            (*_PAIR, *mask),
            ("logprobs",),
            {"estimator": estimator, "gradient": gradient},
            slope="kl_loss_slope" if gradient in _SHAPED else None,
        )
        for estimator in ("k1", "k2", "k3")
        for gradient in ("own", *_SHAPED)
        for mask in ((), ("mask",))
    ),
    *(Sample("full_kl", (*_LOGITS, *mask), ("logits",)) for mask in ((), ("mask",))),
]
