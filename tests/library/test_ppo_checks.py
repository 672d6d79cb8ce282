"""The exact text of every error, and that each argument of each function is checked."""

import math
import re

import pytest
import torch

import ppo_core
from ppo_core import (
    aggregate,
    batch_count,
    clip_fractions,
    clip_ratio,
    clipped_surrogate,
    clipped_value_loss,
    discounted_returns,
    dpo_loss,
    effective_sample_size,
    entropy,
    explained_variance,
    gae,
    group_relative,
    implicit_reward,
    kl_k3,
    kl_penalty,
    leave_one_out,
    log_ratio,
    masked_mean,
    policy_loss,
    ppo_objective,
    ratio_quantiles,
    shaped_rewards,
    token_logprobs,
    value_loss,
    whiten,
)

from .samples import KINDS, SAMPLES, tensors_of

ONE, TWO, MASK = torch.ones(2, 3), torch.ones(2), torch.ones(2, 3, dtype=torch.bool)
EPSILON = (
    "epsilon must lie strictly between 0 and 1, got {}; at 1 or more no ratio is below the floor "
    "1 - epsilon, at 0 or less there is no band; 0.2 is usual"
)
SHAPE = "nothing is broadcast: expand or index one of them first"
GROUP = "the answers of a group, got {}; one answer alone has nothing to be compared with"
WEIGHTS = {"epsilon": 0.2, "value_coef": 0.5, "entropy_coef": 0.01, "beta": 0.1, "mode": "token_mean"}


def objective(**change):
    return ppo_objective(*[ONE] * 7, MASK, **{**WEIGHTS, **change})


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
    (lambda: gae(ONE, TWO, MASK, gamma=1.0, lam=1.0), ValueError,
     f"rewards and values must have the same shape, got [2, 3] and [2]; {SHAPE}"),
    (lambda: gae(ONE, ONE, MASK[0], gamma=1.0, lam=1.0), ValueError,
     f"rewards and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    (lambda: gae(ONE[0, 0], ONE[0, 0], MASK[0, 0], gamma=1.0, lam=1.0), ValueError,
     "rewards must have at least one dimension, the tokens, got []; write rewards.reshape(1)"),
    (lambda: gae(ONE, ONE, MASK, gamma=1.0, lam=1.0, bootstrap=ONE), ValueError,
     "bootstrap must have the shape of rewards without its last dimension, the tokens, got [2, 3] and [2, 3]; "
     "give one value for each answer"),
    (lambda: discounted_returns(ONE, MASK[:1], gamma=1.0), ValueError,
     f"rewards and mask must have the same shape, got [2, 3] and [1, 3]; {SHAPE}"),
    *((lambda call=call, shape=shape: call(torch.ones(shape)), ValueError,
       f"scores must have a last dimension of at least 2, {GROUP.format(shape)}")
      for call in (leave_one_out, lambda scores: group_relative(scores, eps=1e-6))
      for shape in ([], [1], [2, 0])),
    (lambda: value_loss(ONE, ONE, factor=1, mask=MASK[0]), ValueError,
     f"values and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    (lambda: clipped_value_loss(ONE, ONE, ONE, epsilon=0.2, factor=1, mask=MASK[0]), ValueError,
     f"values and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    *((lambda shape=shape: entropy(torch.ones(shape)), ValueError,
       f"logits must have a last dimension of at least 1, the vocabulary, got {shape}")
      for shape in ([], [0], [2, 0])),
    (lambda: entropy(ONE, mask=MASK), ValueError,
     "mask must have the shape of logits without its last dimension, the vocabulary, got [2, 3] and [2, 3]; "
     f"{SHAPE}"),
    (lambda: token_logprobs(ONE, MASK.long()), ValueError,
     "tokens must have the shape of logits without its last dimension, the vocabulary, got [2, 3] and [2, 3]; "
     f"{SHAPE}"),
    (lambda: ppo_objective(*[ONE] * 6, TWO, MASK, **WEIGHTS), ValueError,
     f"logprobs and entropies must have the same shape, got [2, 3] and [2]; {SHAPE}"),
    (lambda: dpo_loss(TWO, TWO, TWO, ONE, beta=0.1), ValueError,
     f"chosen and ref_rejected must have the same shape, got [2] and [2, 3]; {SHAPE}"),
    # Types
    (lambda: token_logprobs(ONE, TWO.int()), TypeError,
     "tokens must be an int64 tensor, got torch.int32; write tokens.long()"),
    (lambda: token_logprobs(ONE, [0, 1]), TypeError,
     "tokens must be a torch.Tensor, got list; write torch.tensor(tokens)"),
    (lambda: gae(ONE, ONE, MASK, gamma=1.0, lam=1.0, bootstrap=1.0), TypeError,
     "bootstrap must be a torch.Tensor, got float; write torch.tensor(bootstrap)"),
    (lambda: gae([1.0], ONE, MASK, gamma=1.0, lam=1.0), TypeError,
     "rewards must be a torch.Tensor, got list; write torch.tensor(rewards)"),
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
    *((lambda name=name, bad=bad: gae(ONE, ONE, MASK, **{"gamma": 1.0, "lam": 1.0, name: bad}), ValueError,
       f"{name} must lie between 0 and 1, got {bad}")
      for name in ("gamma", "lam")
      for bad in (-0.1, 1.5, math.nan, math.inf)),
    *((lambda bad=bad: whiten(ONE, MASK, ddof=bad, eps=1e-8), ValueError,
       f"ddof must be 0 (divide by the count) or 1 (divide by the count less one), got {bad}")
      for bad in (2, -1, 0.5, math.nan)),
    *((lambda call=call: call(eps=0), ValueError, "eps must be finite and above 0, got 0")
      for call in (lambda eps: whiten(ONE, MASK, ddof=1, eps=eps), lambda eps: group_relative(ONE, eps=eps))),
    *((lambda bad=bad: clipped_value_loss(ONE, ONE, ONE, epsilon=bad, factor=1), ValueError,
       f"epsilon must be finite and above 0, got {bad}")
      for bad in (0, -0.1, math.nan, math.inf)),
    *((lambda name=name, bad=bad: objective(**{name: bad}), ValueError,
       f"{name} must be finite and at least 0, got {bad}")
      for name in ("value_coef", "entropy_coef", "beta")
      for bad in (-0.1, math.nan, math.inf)),
    *((lambda call=call: call(beta=0), ValueError, "beta must be finite and above 0, got 0")
      for call in (lambda beta: dpo_loss(TWO, TWO, TWO, TWO, beta=beta),
                   lambda beta: implicit_reward(TWO, TWO, beta=beta))),
    *((lambda call=call, bad=bad: call(factor=bad), ValueError,
       f"factor must be 0.5 (half the squared error) or 1 (the whole of it), got {bad}")
      for call in (lambda factor: value_loss(ONE, ONE, factor=factor),
                   lambda factor: clipped_value_loss(ONE, ONE, ONE, epsilon=0.2, factor=factor))
      for bad in (0, -0.5, 2, math.nan)),
    *((lambda bad=bad: aggregate(ONE, MASK, mode="token_mean", denominator=bad), TypeError,
       f"denominator must be a plain number or a tensor of shape [], got {kind}; write a float or an int, or "
       "take batch_count")
      for bad, kind in (("6", "str"), (True, "bool"), ([6], "list"))),
    *((lambda bad=bad: aggregate(ONE, MASK, mode="token_mean", denominator=torch.tensor(bad)), TypeError,
       f"denominator must be a tensor of integers or floats, got {dtype}")
      for bad, dtype in ((True, "torch.bool"), (1j, "torch.complex64"))),
    (lambda: aggregate(ONE, MASK, mode="token_mean", denominator=MASK.sum(-1)), ValueError,
     "denominator must be a plain number or a tensor of shape [], got [2]; one number divides the whole sum"),
    *((lambda bad=bad: aggregate(ONE, MASK, mode="token_mean", denominator=torch.tensor(bad)), ValueError,
       f"denominator must be finite and above 0, got {bad}")
      for bad in (0, -1, 0.0, math.nan, math.inf)),
    (lambda: batch_count(ONE, mode="token_mean"), TypeError,
     "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
    (lambda: batch_count(MASK[0, 0], mode="token_mean"), ValueError,
     "mask must have at least one dimension, the tokens, got []; write mask.reshape(1)"),
    (lambda: batch_count(MASK, mode="mean"), ValueError,
     "mode must be one of token_mean, sequence_mean_token_mean, sequence_mean_token_sum, constant, "
     "got 'mean'"),
    (lambda: batch_count(MASK, mode="constant"), ValueError,
     'mode "constant" counts nothing: its denominator is your choice'),
    *((lambda call=call: call(MASK[0].long()), ValueError,
       f"{name} and sequence_ids must have the same shape, got [2, 3] and [3]; {SHAPE}")
      for call, name in ((lambda ids: batch_count(MASK, mode="token_mean", sequence_ids=ids), "mask"),
                         (lambda ids: aggregate(ONE, MASK, mode="token_mean", sequence_ids=ids), "losses"),
                         (lambda ids: objective(sequence_ids=ids), "logprobs"))),
    (lambda: batch_count(MASK, mode="token_mean", sequence_ids=MASK), TypeError,
     "sequence_ids must be an int64 tensor, got torch.bool; write sequence_ids.long()"),
    *((lambda bad=bad: ratio_quantiles(ONE, ONE, MASK, q=bad), ValueError, f"q must lie between 0 and 1, got {bad}")
      for bad in (-0.1, 1.1, 50, math.nan)),
    (lambda: clip_fractions(ONE, ONE, ONE, MASK, epsilon=1), ValueError, EPSILON.format(1)),
    (lambda: explained_variance(ONE, TWO, MASK), ValueError,
     f"values and returns must have the same shape, got [2, 3] and [2]; {SHAPE}"),
    (lambda: effective_sample_size(ONE, MASK[0]), ValueError,
     f"log_weights and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
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
    good = tensors_of(sample, (2, 3))
    sample(good)
    for name, tensor in good.items():
        if name == "denominator":
            continue  # a number does as well; test_text has its errors
        with pytest.raises(TypeError, match=f"^{name} must be a torch.Tensor, got list"):
            sample({**good, name: tensor.tolist()})
        wrong = {torch.bool: "a bool", torch.int64: "an int64"}.get(KINDS.get(name), "a floating-point")
        with pytest.raises(TypeError, match=f"^{name} must be {wrong} tensor"):
            sample({**good, name: tensor.int()})
        if len(good) == 1:
            continue  # one tensor has any shape
        # Each would broadcast, were it not for the check.
        for other in (tensor[:1], tensor[0, 0] if tensor.ndim == 2 else tensor[0], tensor[None]):
            with pytest.raises(ValueError, match="^(.*) must have the s") as raised:
                sample({**good, name: other})
            assert re.search(rf"\b{name}\b", str(raised.value))
            assert str(list(other.shape)) in str(raised.value)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.parameters], ids=str)
def test_every_hyper_parameter_is_checked(sample):
    tensors = tensors_of(sample, (2, 3))
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


def test_the_ends_of_a_range_are_allowed():
    assert gae(ONE, ONE, MASK, gamma=0, lam=1)[0].tolist() == [0, 0, 0]
    assert objective(value_coef=0, entropy_coef=0, beta=0).kl.item() == 0
    assert whiten(ONE, MASK, ddof=1.0, eps=1).sum().item() == 0
    # A value may move by more than 1; a ratio may not.
    assert clipped_value_loss(ONE, ONE, ONE, epsilon=5.0, factor=1.0).sum().item() == 0


def test_hyper_parameters_are_named():
    with pytest.raises(TypeError, match="positional argument"):
        clipped_surrogate(TWO, TWO, 0.2)
    with pytest.raises(TypeError, match="positional argument"):
        kl_k3(TWO, TWO, MASK)
