import math

import pytest
import torch

import reference
from lab import kl_gradient, sampled_kl_gradient
from reference.logits import softmax

PAIRS = [
    ([0.0], [3.0]),
    ([1.0, 0.0], [0.0, 0.0]),
    ([1.0, 0.0], [0.0, 1.0]),
    ([0.3, -1.2, 2.0], [0.0, 0.5, -0.5]),
    ([5.0, -5.0, 0.0, 1.0], [-5.0, 5.0, 0.0, 2.0]),
]
EACH_PAIR = pytest.mark.parametrize("pair", PAIRS, ids=str)


def tensors(pair, dtype=torch.float64):
    return [torch.tensor(logits, dtype=dtype) for logits in pair]


def divergence(p, q):
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def numerical(of, logits):
    """Differentiate a function of logits by central differences."""
    h = 1e-5
    steps = [[z + h * (i == j) for i, z in enumerate(logits)] for j in range(len(logits))]
    back = [[z - h * (i == j) for i, z in enumerate(logits)] for j in range(len(logits))]
    return [(of(up) - of(down)) / (2 * h) for up, down in zip(steps, back, strict=True)]


def test_by_hand():
    # pi = (3/4, 1/4) against (1/2, 1/2): logs log(3/2) and -log 2, so KL = 3/4 log 3 - log 2.
    # Gradient: 3/4 (log(3/2) - KL) = 3/16 log 3.
    pair = [torch.tensor([math.log(3), 0.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)]
    g = 3 / 16 * math.log(3)
    assert kl_gradient(*pair).tolist() == pytest.approx([g, -g], rel=1e-14)
    assert sampled_kl_gradient(*pair, estimator="k2").tolist() == pytest.approx([g, -g], rel=1e-14)
    # The forward divergence has the gradient pi - ref.
    assert sampled_kl_gradient(*pair, estimator="k3").tolist() == pytest.approx([0.25, -0.25], rel=1e-14)
    assert sampled_kl_gradient(*pair, estimator="k1").tolist() == pytest.approx([0, 0], abs=1e-15)


@EACH_PAIR
def test_agrees_with_the_plain_float_twin(pair):
    assert kl_gradient(*tensors(pair)).tolist() == pytest.approx(reference.kl_gradient(*pair), abs=1e-13)
    for estimator in ("k1", "k2", "k3"):
        found = sampled_kl_gradient(*tensors(pair), estimator=estimator).tolist()
        assert found == pytest.approx(reference.sampled_kl_gradient(*pair, estimator=estimator), abs=1e-13)


@EACH_PAIR
def test_each_estimator_has_the_gradient_that_its_docstring_names(pair):
    logits, ref = pair[0], softmax(pair[1])
    reverse = numerical(lambda z: divergence(softmax(z), ref), logits)
    forward = numerical(lambda z: divergence(ref, softmax(z)), logits)
    assert kl_gradient(*tensors(pair)).tolist() == pytest.approx(reverse, abs=1e-8)
    sampled = {e: sampled_kl_gradient(*tensors(pair), estimator=e).tolist() for e in ("k1", "k2", "k3")}
    assert sampled["k1"] == pytest.approx([0] * len(logits), abs=1e-15)
    assert sampled["k2"] == pytest.approx(reverse, abs=1e-8)
    assert sampled["k3"] == pytest.approx(forward, abs=1e-8)


def test_the_three_differ():
    pair = tensors(PAIRS[3])
    exact = kl_gradient(*pair)
    assert (sampled_kl_gradient(*pair, estimator="k1") - exact).abs().max() > 0.1
    assert (sampled_kl_gradient(*pair, estimator="k3") - exact).abs().max() > 0.1


def test_at_the_reference_nothing_pulls():
    z = tensors(PAIRS[3])[0]
    assert kl_gradient(z, z).tolist() == pytest.approx([0, 0, 0], abs=1e-16)
    for estimator in ("k1", "k2", "k3"):
        assert sampled_kl_gradient(z, z, estimator=estimator).tolist() == pytest.approx([0, 0, 0], abs=1e-15)


@pytest.mark.parametrize("call", [kl_gradient, lambda *x: sampled_kl_gradient(*x, estimator="k2")])
def test_results_are_numbers_and_arguments_are_left_alone(call):
    logits, ref = (x.requires_grad_() for x in tensors(PAIRS[3]))
    with torch.no_grad():
        found = call(logits, ref)
    assert torch.equal(found, call(logits, ref)) and not call(logits, ref).requires_grad
    assert (logits.grad, ref.grad) == (None, None)
    assert logits.tolist() == PAIRS[3][0]


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(half):
    pair = tensors(PAIRS[3], half)
    wide = [x.float() for x in pair]
    assert kl_gradient(*pair).dtype == torch.float32
    assert torch.equal(kl_gradient(*pair), kl_gradient(*wide))
    assert torch.equal(sampled_kl_gradient(*pair, estimator="k3"), sampled_kl_gradient(*wide, estimator="k3"))


TWO = torch.zeros(2)
CALLS = {"exact": kl_gradient, "sampled": lambda *pair: sampled_kl_gradient(*pair, estimator="k1")}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("pair", "kind", "text"),
    [
        (
            (TWO, torch.zeros(3)),
            ValueError,
            "logits and ref_logits must have the same shape, got [2] and [3]; nothing is broadcast: "
            "expand or index one of them first",
        ),
        ((TWO[:0], TWO[:0]), ValueError, "logits must have the shape [n] with n at least 1, got [0]"),
        ((TWO[None], TWO[None]), ValueError, "logits must have the shape [n] with n at least 1, got [1, 2]"),
        (
            (TWO, TWO.int()),
            TypeError,
            "ref_logits must be a floating-point tensor, got torch.int32; write ref_logits.float()",
        ),
    ],
)
def test_text_of_errors(call, pair, kind, text):
    with pytest.raises(kind) as raised:
        call(*pair)
    assert str(raised.value) == text


def test_text_of_an_unknown_estimator():
    with pytest.raises(ValueError) as raised:
        sampled_kl_gradient(TWO, TWO, estimator="k4")
    assert str(raised.value) == "estimator must be one of k1, k2, k3, got 'k4'"
