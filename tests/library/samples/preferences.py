"""Sample calls of the losses on pairs of answers."""

from .core import Sample

_DPO = ("chosen", "rejected", "ref_chosen", "ref_rejected")

RANGES = {}
SAMPLES = [
    Sample("preference_probability", _DPO[:2], _DPO[:2]),
    Sample("reward_model_loss", _DPO[:2], _DPO[:2]),
    Sample("implicit_reward", ("logprobs", "ref_logprobs"), ("logprobs",), {"beta": 0.1}),
    Sample("dpo_loss", _DPO, _DPO[:2], {"beta": 0.4}),
]
