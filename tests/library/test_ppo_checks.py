"""The exact text of every error, and that each argument of each function is checked."""

import math

import pytest
import torch

import ppo_core
from ppo_core import (
    aggregate,
    clip_ratio,
    clipped_surrogate,
    kl_k3,
    kl_penalty,
    log_ratio,
    masked_mean,
    policy_loss,
    shaped_rewards,
)

from .samples import SAMPLES, draw, to_tensors

ONE, TWO, MASK = torch.ones(2, 3), torch.ones(2), torch.ones(2, 3, dtype=torch.bool)
EPSILON = (
    "epsilon must lie strictly between 0 and 1, got {}; at 1 or more no ratio is below the floor "
    "1 - epsilon, at 0 or less there is no band; 0.2 is usual"
)
SHAPE = "nothing is broadcast: expand or index one of them first"

ERRORS = [
    # Shapes
    (lambda: log_ratio(ONE, TWO), ValueError,
     f"logprobs and old_logprobs must have the same shape, got [2, 3] and [2]; {SHAPE}"),
    (lambda: log_ratio(ONE, torch.tensor(1.0)), ValueError,
     f"logprobs and old_logprobs must have the same shape, got [2, 3] and []; {SHAPE}"),
    (lambda: policy_loss(ONE, ONE, ONE[:, :1], epsilon=0.2), ValueError,
     f"logprobs and advantages must have the same shape, got [2, 3] and [2, 1]; {SHAPE}"),
    (lambda: policy_loss(ONE, ONE, ONE, epsilon=0.2, mask=MASK[:, :1]), ValueError,
     f"logprobs and mask must have the same shape, got [2, 3] and [2, 1]; {SHAPE}"),
    (lambda: masked_mean(ONE, MASK[0]), ValueError,
     f"x and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    (lambda: shaped_rewards(ONE, ONE, ONE, MASK, beta=0.1), ValueError,
     "scores must have the shape of logprobs without its last dimension, the tokens, got [2, 3] and [2, 3]; "
     "give one score for each answer"),
    (lambda: shaped_rewards(ONE[0, 0], ONE[0, 0], ONE[0, 0], MASK[0, 0], beta=0.1), ValueError,
     "scores must have the shape of logprobs without its last dimension, the tokens, got [] and []; "
     "give one score for each answer"),
    (lambda: aggregate(ONE[0, 0], MASK[0, 0], mode="token_mean"), ValueError,
     "losses must have at least one dimension, the tokens, got []; write losses.reshape(1)"),
    # Types
    (lambda: log_ratio([-1.0], TWO), TypeError,
     "logprobs must be a torch.Tensor, got list; write torch.tensor(logprobs)"),
    (lambda: clipped_surrogate(TWO, TWO.long(), epsilon=0.2), TypeError,
     "advantages must be a floating-point tensor, got torch.int64; write advantages.float()"),
    (lambda: masked_mean(TWO, [True, False]), TypeError,
     "mask must be a torch.Tensor, got list; write torch.tensor(mask)"),
    (lambda: masked_mean(TWO, TWO), TypeError,
     "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
    # Hyper-parameters
    (lambda: clip_ratio(TWO, epsilon=True), TypeError,
     "epsilon must be a plain number, got bool; write a float or an int"),
    (lambda: clip_ratio(TWO, epsilon=torch.tensor(0.2)), TypeError,
     "epsilon must be a plain number, got Tensor; write a float or an int"),
    (lambda: clip_ratio(TWO, epsilon="0.2"), TypeError,
     "epsilon must be a plain number, got str; write a float or an int"),
    *((lambda epsilon=epsilon: clip_ratio(TWO, epsilon=epsilon), ValueError, EPSILON.format(epsilon))
      for epsilon in (0, -0.2, 1, 1.5, math.nan, math.inf, -math.inf)),
    *((lambda beta=beta: kl_penalty(TWO, TWO, beta=beta), ValueError,
       f"beta must be finite and at least 0, got {beta}")
      for beta in (-0.1, math.nan, math.inf)),
    *((lambda d=d: aggregate(ONE, MASK, mode="constant", denominator=d), ValueError,
       f"denominator must be finite and above 0, got {d}")
      for d in (0, -1, math.nan, math.inf)),
    (lambda: aggregate(ONE, MASK, mode="token_mean", denominator=MASK.sum()), TypeError,
     "denominator must be a plain number, got Tensor; write a float or an int"),
    (lambda: aggregate(ONE, MASK, mode="mean"), ValueError,
     "mode must be one of token_mean, sequence_mean_token_mean, sequence_mean_token_sum, constant, "
     "got 'mean'"),
    (lambda: aggregate(ONE, MASK, mode="constant"), ValueError,
     'mode "constant" needs a denominator, for example denominator=batch_size * max_tokens'),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_text(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    assert str(raised.value) == text


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_tensor_is_checked(sample):
    good = to_tensors(draw(sample, (2, 3)), (2, 3))
    sample(good)
    for name, tensor in good.items():
        with pytest.raises(TypeError, match=f"^{name} must be a torch.Tensor, got list"):
            sample({**good, name: tensor.tolist()})
        wrong = "bool" if name == "mask" else "floating-point"
        with pytest.raises(TypeError, match=f"^{name} must be a {wrong} tensor"):
            sample({**good, name: tensor.int()})
        if len(good) == 1:
            continue  # one tensor has any shape
        # Each would broadcast, were it not for the check.
        for other in (tensor[:1], tensor[0, 0] if tensor.ndim == 2 else tensor[0], tensor[None]):
            with pytest.raises(ValueError, match=rf"\b{name}\b.* must have the s") as raised:
                sample({**good, name: other})
            assert str(list(other.shape)) in str(raised.value)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.parameters], ids=str)
def test_every_hyper_parameter_is_checked(sample):
    tensors = to_tensors(draw(sample, (2, 3)), (2, 3))
    for name in sample.parameters:
        for bad in (math.nan, "x", True):
            with pytest.raises((TypeError, ValueError), match=f"^{name} must (be|lie)"):
                getattr(ppo_core, sample.name)(**tensors, **{**sample.parameters, name: bad})


@pytest.mark.parametrize("epsilon", [5e-324, 1e-6, 0.2, math.nextafter(1, 0)])
def test_every_width_between_zero_and_one_is_allowed(epsilon):
    assert clip_ratio(torch.ones((), dtype=torch.float64), epsilon=epsilon).item() == 1


def test_whole_numbers_are_numbers():
    assert kl_penalty(TWO, TWO, beta=1).tolist() == [0, 0]
    assert aggregate(ONE, MASK, mode="constant", denominator=6).item() == 1


def test_hyper_parameters_are_named():
    with pytest.raises(TypeError, match="positional argument"):
        clipped_surrogate(TWO, TWO, 0.2)
    with pytest.raises(TypeError, match="positional argument"):
        kl_k3(TWO, TWO, MASK)
