"""The cases of tests/cases/loss_cases.json: inputs with answers from hand, papers and bug reports."""

import json
import math
from pathlib import Path

import pytest
import torch

from lab import expected_reward, policy_gradient_mean, policy_gradient_variance
from ppo_core import (
    adapt_beta,
    aggregate,
    clip_fractions,
    clipped_surrogate,
    dpo_loss,
    entropy,
    gae,
    kl_k1,
    kl_k2,
    kl_k3,
    kl_penalty,
    masked_mean,
    policy_loss,
    shaped_rewards,
    token_logprobs,
    value_loss,
    whiten,
)

CASES = json.loads((Path(__file__).parents[1] / "cases" / "loss_cases.json").read_text())
ESTIMATORS = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}


def tensor(x, **options):
    return torch.tensor(x, dtype=torch.float64, **options)


def bools(mask):
    return torch.tensor(mask, dtype=torch.bool)


def clipped(ratio, advantage, epsilon):
    """Value and slope in the ratio."""
    ratio = tensor(ratio, requires_grad=True)
    value = clipped_surrogate(ratio, tensor(advantage).expand_as(ratio), epsilon=epsilon)
    return {"value": value.tolist(), "gradient": torch.autograd.grad(value.sum(), ratio)[0].tolist()}


def kinks(ratio, advantage, epsilon):
    return {"gradient": clipped(ratio, advantage, epsilon)["gradient"]}


def per_logprob(ratio, advantage, epsilon):
    logprobs = tensor(ratio).log().requires_grad_()
    old = torch.zeros_like(logprobs)
    loss = policy_loss(logprobs, old, torch.full_like(old, advantage), epsilon=epsilon)
    return {"gradient": (-torch.autograd.grad(loss.sum(), logprobs)[0]).tolist()}


def two_widths(ratio, advantage, epsilon_low, epsilon_high):
    value = clipped_surrogate(
        tensor(ratio), tensor(advantage), epsilon=epsilon_low, epsilon_high=epsilon_high
    )
    return {"value": value.tolist()}


def dual_clipped(ratio, advantage, epsilon, dual_clip):
    logprobs = tensor(ratio).log()
    old = torch.zeros_like(logprobs)
    return {
        "loss": policy_loss(logprobs, old, tensor(advantage), epsilon=epsilon, dual_clip=dual_clip).tolist()
    }


def dual_clipped_and_reduced(**inputs):
    loss = tensor(dual_clipped(**inputs)["loss"])
    mean = aggregate(loss, torch.ones_like(loss).bool(), mode="token_mean")
    return {"loss": loss.tolist(), "mean": mean.item()}


def token_loss(logprob, old_logprob, advantage, epsilon):
    logprob = tensor(logprob, requires_grad=True)
    loss = policy_loss(logprob, tensor(old_logprob), tensor(advantage), epsilon=epsilon)
    return {"loss": loss.item(), "gradient": torch.autograd.grad(loss, logprob)[0].item()}


def masked_overflow(logprobs, old_logprobs, advantages, mask, epsilon):
    logprobs = torch.tensor(logprobs, dtype=torch.float32, requires_grad=True)  # where e^200 overflows
    old, advantages, mask = tensor(old_logprobs).float(), tensor(advantages).float(), bools(mask)
    losses = policy_loss(logprobs, old, advantages, epsilon=epsilon, mask=mask)
    loss = aggregate(losses, mask, mode="token_mean")
    return {"loss": loss.item(), "gradient": torch.autograd.grad(loss, logprobs)[0].tolist()}


def from_logits(logits, old_logits, actions, advantages, epsilon):
    rows = range(len(actions)), actions
    new, old = (tensor(x).log_softmax(-1)[rows] for x in (logits, old_logits))
    losses = policy_loss(new, old, tensor(advantages), epsilon=epsilon)
    return {"loss": aggregate(losses, torch.ones_like(losses).bool(), mode="token_mean").item()}


def aggregate_modes(loss, mask):
    loss, mask = tensor(loss), bools(mask)
    return {
        "token_mean": aggregate(loss, mask, mode="token_mean").item(),
        "seq_mean_token_mean": aggregate(loss, mask, mode="sequence_mean_token_mean").item(),
        "seq_mean_token_sum": aggregate(loss, mask, mode="sequence_mean_token_sum").item(),
        "constant_6": aggregate(loss, mask, mode="constant", denominator=6).item(),
    }


def micro_batches(loss):
    tokens = sum(map(len, loss))
    pieces = [(tensor(piece), torch.ones(len(piece)).bool()) for piece in loss]
    return {"loss": sum(aggregate(*p, mode="token_mean", denominator=tokens).item() for p in pieces)}


def empty_mask(loss, mask):
    found = []
    for mode in ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant"):
        losses = tensor(loss, requires_grad=True)
        value = aggregate(losses, bools(mask), mode=mode, denominator=2 if mode == "constant" else None)
        found.append({"value": value.item(), "gradient": torch.autograd.grad(value, losses)[0].tolist()})
    assert all(each == found[0] for each in found)
    return found[0]


def mean_with_nan(x, mask):
    return {"value": masked_mean(tensor([float(element) for element in x]), bools(mask)).item()}


def kl_table(logprob, ref_logprob):
    ref = tensor(ref_logprob)
    new = torch.full_like(ref, logprob)
    return {name: estimator(new, ref).tolist() for name, estimator in ESTIMATORS.items()}


def kl_gradients(ref_minus_logprob):
    slopes = {}
    for name, estimator in ESTIMATORS.items():
        ref = tensor(ref_minus_logprob)
        new = torch.zeros_like(ref, requires_grad=True)
        slopes[name] = torch.autograd.grad(estimator(new, ref).sum(), new)[0].tolist()
    return slopes


def k3_small(ref_minus_logprob):
    return {"k3": kl_k3(torch.tensor(0.0), torch.tensor(ref_minus_logprob, dtype=torch.float32)).item()}


def k3_far(logprob, ref_logprob):
    new = tensor(logprob, requires_grad=True)
    value = kl_k3(new, tensor(ref_logprob))
    assert value.item() == pytest.approx(math.exp(100) - 101, rel=1e-12)
    (gradient,) = torch.autograd.grad(value, new)
    return {"finite_gradient": math.isfinite(gradient.item())}


def penalty(prob, ref_prob, beta, score):
    new, ref = tensor([prob]).log(), tensor([ref_prob]).log()
    reward = shaped_rewards(tensor(score), new, ref, bools([1]), beta=beta)
    return {"penalty": kl_penalty(new, ref, beta=beta).item(), "reward": reward.item()}


def next_beta(beta, kl, target, n, horizon):
    sequences = torch.full((n, 3), kl / 3, dtype=torch.float64)  # the divergence of each sequence is kl
    counts = torch.ones(n, 3, dtype=torch.bool)
    found = adapt_beta(sequences, counts, beta=beta, target=target, horizon=horizon, unit="sequence")
    return {"beta": found.item()}


def bad_controller(target, horizon):
    kl, mask = tensor([[1.0]]), bools([[1]])
    good = {"beta": 0.1, "target": 6, "horizon": 10000, "unit": "token"}
    kinds = set()
    for bad in ({"target": target}, {"horizon": horizon}):
        with pytest.raises(ValueError, match="must be finite and above 0, got 0") as raised:
            adapt_beta(kl, mask, **{**good, **bad})
        kinds.add(type(raised.value).__name__)
    return {"error": kinds.pop()}


def shape_mask(logprobs, mask):
    logprobs, mask = torch.zeros(json.loads(logprobs)), torch.ones(json.loads(mask)).bool()
    with pytest.raises(ValueError, match=r"logprobs and mask .* \[2, 3\] and \[2, 1\]") as raised:
        policy_loss(logprobs, logprobs, logprobs, epsilon=0.2, mask=mask)
    return {"error": type(raised.value).__name__}


def baseline(probs, rewards):
    probs, rewards = tensor(probs), tensor(rewards)
    V = expected_reward(probs, rewards).item()
    with_V = policy_gradient_mean(probs, rewards, baseline=V).item()
    assert with_V == pytest.approx(policy_gradient_mean(probs, rewards).item(), abs=1e-15)
    return {
        "mean": with_V,
        "variance_without": policy_gradient_variance(probs, rewards).item(),
        "V": V,
        "variance_with": policy_gradient_variance(probs, rewards, baseline=V).item(),
    }


def episode(rewards, values, gamma, lam, mask=None, bootstrap=None):
    """The advantages of one episode, as a list."""
    mask = bools([True] * len(rewards) if mask is None else mask)
    bootstrap = None if bootstrap is None else tensor(bootstrap)
    return gae(tensor(rewards), tensor(values), mask, gamma=gamma, lam=lam, bootstrap=bootstrap).tolist()


def advantages(**inputs):
    return {"advantages": episode(**inputs)}


def advantages_with_holes(rewards_valid, values_valid, mask, gamma, lam):
    rewards, values = torch.zeros(2, len(mask), dtype=torch.float64)
    values += 1e9  # what lies in a hole
    rewards[bools(mask)], values[bools(mask)] = tensor(rewards_valid), tensor(values_valid)
    A = gae(rewards, values, bools(mask), gamma=gamma, lam=lam)
    assert (A[~bools(mask)] == 0).all()
    return {
        "advantages_valid": A[bools(mask)].tolist(),
        "returns_valid": (A + values)[bools(mask)].tolist(),
    }


def reward_slots(values, pad_value, reward, gamma, lam):
    last = episode([0, 0, reward], values, gamma, lam)
    return {"last_token": last, "next_slot": episode([0, 0, 0, reward], [*values, pad_value], gamma, lam)}


def episodes_in_a_row(rewards, next_values, terminated, gamma, lam):
    values = [next_values[-1], *next_values[:-1]]
    ends = [t + 1 for t, ended in enumerate(terminated) if ended]
    returns = []
    for start, end in zip([0, *ends], ends, strict=False):
        A = episode(rewards[start:end], values[start:end], gamma, lam)
        returns += [a + v for a, v in zip(A, values[start:end], strict=True)]
    return {"returns": returns}


def whitened(x):
    x = tensor(x)
    both = {f"ddof{ddof}": whiten(x, torch.ones_like(x).bool(), ddof=ddof, eps=1e-12) for ddof in (0, 1)}
    return {name: found.tolist() for name, found in both.items()}


def whitened_under_a_mask(x, mask):
    return {"value": whiten(tensor(x), bools(mask), ddof=1, eps=1e-12).tolist()}


def half_square(values, returns):
    (loss,) = value_loss(tensor(values), tensor(returns), factor=0.5).tolist()
    return {"loss": loss}


def clip_fraction(ratio, advantage, epsilon):
    logprobs = tensor(ratio).log()
    every = torch.ones_like(logprobs).bool()
    shares = clip_fractions(logprobs, torch.zeros_like(logprobs), tensor(advantage), every, epsilon=epsilon)
    return {"fraction": sum(shares).item()}


def entropy_of(logits):
    logits = tensor([float(element) for element in logits], requires_grad=True)
    value = entropy(logits)
    assert torch.autograd.grad(value, logits)[0].isfinite().all()
    return {"entropy": value.item()}


def logprob_of_any(logits, vocabulary):
    assert logits == "all -50"
    rows = torch.full((vocabulary, vocabulary), -50.0)
    found = set(token_logprobs(rows, torch.arange(vocabulary)).tolist())
    assert max(found) - min(found) < 1e-6
    return {"logprob": found.pop()}


def dpo(beta, **logprobs):
    return {"loss": dpo_loss(**{name: tensor(x) for name, x in logprobs.items()}, beta=beta).tolist()}


# How each case is computed: from its inputs to what it expects, by the same names.
RUN = {
    "clip-good-past-ceiling": clipped,
    "clip-bad-below-floor": clipped,
    "clip-bad-above-ceiling": clipped,
    "clip-tiny-epsilon-first-step": clipped,
    "clip-kink": kinks,
    "clip-asymmetric": two_widths,
    "dual-clip": dual_clipped,
    "dual-clip-large": dual_clipped_and_reduced,
    "clip-gradient-per-logprob": per_logprob,
    "zero-advantage-huge-ratio": token_loss,
    "overflow-past-ceiling": token_loss,
    "masked-overflow": masked_overflow,
    "rlax-clip": from_logits,
    "aggregate-modes": aggregate_modes,
    "aggregate-micro-batches": micro_batches,
    "aggregate-empty-mask": empty_mask,
    "masked-mean-nan": mean_with_nan,
    "kl-table": kl_table,
    "k3-small-1e-6": k3_small,
    "k3-small-1e-5": k3_small,
    "k3-small-1e-4": k3_small,
    "k3-small-1e-3": k3_small,
    "k3-small-1e-2": k3_small,
    "kl-gradient-table": kl_gradients,
    "k3-far": k3_far,
    "kl-penalty-exercise": penalty,
    "adaptive-kl": next_beta,
    "adaptive-kl-bad": bad_controller,
    "shape-mask": shape_mask,
    "baseline-raises-variance": baseline,
    "gae-rlax-0.7": advantages,
    "gae-masked-tail": advantages,
    "gae-one-step": advantages,
    "gae-holes": advantages_with_holes,
    "gae-reward-slot": reward_slots,
    "gae-terminated": episodes_in_a_row,
    "whiten": whitened,
    "whiten-masked": whitened_under_a_mask,
    "value-half": half_square,
    "clip-fraction-sign": clip_fraction,
    "entropy-minus-inf": entropy_of,
    "logprob-odd-vocabulary": logprob_of_any,
    "dpo": dpo,
}


def close(found, expected, tolerance, relative):
    """Compare numbers, and nested lists of them; everything else exactly."""
    if isinstance(expected, list):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(close(f, e, tolerance, relative) for f, e in pairs)
    if isinstance(expected, bool | str):
        return found == expected
    return abs(found - expected) <= tolerance * (abs(expected) if relative else 1)


@pytest.mark.parametrize("case", [c for c in CASES if c["id"] in RUN], ids=lambda case: case["id"])
def test_case(case):
    found = RUN[case["id"]](**case["inputs"])
    relative = "relative" in case["op"]
    assert set(found) == set(case["expect"])
    wrong = {k: v for k, v in case["expect"].items() if not close(found[k], v, case["tol"], relative)}
    assert not wrong, f"expected {wrong}, found {found}"


def test_every_case_is_run():
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    assert sorted(RUN) == sorted(ids)


@pytest.mark.parametrize(
    ("found", "expected", "relative"),
    [
        (1.1, 1, False),
        ([1.0, 2.1], [1, 2], False),
        ([1.0], [1, 2], False),
        ([[1.0]], [[2]], False),
        (math.nan, 1, False),
        (False, True, False),
        (5.1e-13, 5e-13, True),
    ],
)
def test_a_wrong_result_is_seen(found, expected, relative):
    assert close(expected, expected, 1e-6, relative)
    assert not close(found, expected, 1e-6, relative)
