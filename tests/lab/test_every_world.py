"""What holds for every function of lab: its twin, half precision, gradients, and arguments left alone."""

import math

import pytest
import torch

import lab
import reference

FIRST, SECOND = [0.2, 0.5, 0.3], [[0.5, 0.5], [0.9, 0.1], [0.25, 0.75]]
OLD_FIRST, OLD_SECOND = [0.4, 0.4, 0.2], [[0.3, 0.7], [0.5, 0.5], [0.6, 0.4]]
SCORES, VALUES = [[1.0, 3.0], [0.0, 1.0], [-2.0, 0.5]], [0.5, -4.0, 2.0]
PROBS, REF, REWARDS, TRUE = [0.25, 0.6, 0.15], [0.5, 0.3, 0.2], [1.0, -0.5, 3.0], [1.0, 0.0, -2.0]
LOGITS, REF_LOGITS, ADVANTAGES = [0.3, -1.2, 2.0], [0.0, 0.5, -0.5], [1.0, 2.0, -1.5]
STEPS = {"epsilon": 0.2, "lr": 0.7}
CHAIN = (FIRST, SECOND, SCORES)
TWO_POLICIES = (FIRST, SECOND, OLD_FIRST, OLD_SECOND, SCORES)

# name, tensors, plain parameters, whether a gradient reaches the tensors
CALLS = [
    ("expected_reward", (PROBS, REWARDS), {}, True),
    ("exact_policy_gradient", (PROBS, REWARDS), {}, False),
    ("policy_gradient_mean", (PROBS, REWARDS), {"baseline": 0.7}, True),
    ("policy_gradient_variance", (PROBS, REWARDS), {"baseline": 0.7}, True),
    ("best_baseline", (PROBS, REWARDS), {}, True),
    ("kl_gradient", (LOGITS, REF_LOGITS), {}, False),
    ("sampled_kl_gradient", (LOGITS, REF_LOGITS), {"estimator": "k3"}, False),
    ("entropy_gradient", (LOGITS,), {}, False),
    ("kl_divergence", (PROBS, REF), {}, True),
    ("kl_objective", (PROBS, REF, REWARDS), {"beta": 0.5}, True),
    ("kl_objective", (PROBS, REF, REWARDS), {"beta": 0}, True),
    ("kl_regularised_optimum", (REF, REWARDS), {"beta": 0.5}, True),
    ("dpo_minimiser", (REF, REWARDS), {"beta": 0.5}, False),
    ("proxy_and_true", (REF, REWARDS, TRUE), {"beta": 0.5}, True),
    *(("repeated_steps", (LOGITS, ADVANTAGES), {**STEPS, "steps": steps}, False) for steps in (1, 2, 7.0)),
    ("ratio_after_steps", (LOGITS, ADVANTAGES), {**STEPS, "steps": 3}, False),
    ("precision_ratio", ([20.06, 20.0, -3.7],), {}, False),
    ("temperature_ratio", (LOGITS,), {"temperature": 0.5}, False),
    ("answer_value", CHAIN, {}, True),
    ("answer_gradient", CHAIN, {}, False),
    *(
        (name, (*CHAIN, VALUES), {"lam": lam, **start}, False)
        for name in ("gae_gradient", "gae_variance")
        for lam in (0, 0.3, 1)
        for start in ({}, {"start_value": 1.5})
    ),
    *(("gae_bias", (*CHAIN, VALUES), {"lam": lam}, False) for lam in (0, 0.3, 1)),
    ("token_ratio_estimate", TWO_POLICIES, {}, True),
    ("sequence_ratio_estimate", TWO_POLICIES, {}, True),
]
# What is computed in float64 whatever it is given.
ALWAYS_WIDE = {"dpo_minimiser", "precision_ratio"}
# The old policy of a ratio gets no gradient, as everywhere in ppo_core; its probability as a weight does.
EACH = pytest.mark.parametrize(
    ("name", "lists", "parameters", "differentiable"),
    CALLS,
    ids=lambda x: x if isinstance(x, str) else "-" if isinstance(x, tuple | bool) else str(list(x.values())),
)


def tensors(lists, dtype=torch.float64):
    return [torch.tensor(x, dtype=dtype) for x in lists]


def test_every_function_is_here():
    assert {name for name, *_ in CALLS} == set(lab.__all__)


@EACH
def test_agrees_with_the_plain_float_twin(name, lists, parameters, differentiable):
    expected = torch.tensor(getattr(reference, name)(*lists, **parameters), dtype=torch.float64)
    found = getattr(lab, name)(*tensors(lists), **parameters)
    assert found.dtype == torch.float64 and found.shape == expected.shape
    torch.testing.assert_close(found.detach(), expected, rtol=1e-12, atol=1e-13)


@EACH
def test_gradients_are_as_the_docstring_says(name, lists, parameters, differentiable):
    leaves = [x.requires_grad_() for x in tensors(lists)]
    function = getattr(lab, name)
    found = function(*leaves, **parameters)
    assert found.requires_grad == differentiable
    if not differentiable:
        assert "None: " in function.__doc__
        return
    weights = torch.arange(1.0, found.numel() + 1, dtype=torch.float64).reshape(found.shape)
    slopes = torch.autograd.grad((found * weights).sum(), leaves, allow_unused=True)
    assert any(slope is not None and slope.abs().max() > 0 for slope in slopes)


@EACH
def test_arguments_are_left_alone_and_no_grad_makes_no_difference(name, lists, parameters, differentiable):
    arguments = [x.requires_grad_() for x in tensors(lists)]
    expected = getattr(lab, name)(*arguments, **parameters)
    with torch.no_grad():
        assert torch.equal(getattr(lab, name)(*arguments, **parameters), expected)
    assert [x.grad for x in arguments] == [None] * len(arguments)
    assert [x.tolist() for x in arguments] == list(lists)


@EACH
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(name, lists, parameters, differentiable, half):
    # Probabilities that half precision holds exactly, so that they still sum to 1.
    exact = {id(PROBS): [0.25, 0.5, 0.25], id(REF): [0.5, 0.25, 0.25], id(FIRST): [0.25, 0.5, 0.25]}
    exact |= {id(SECOND): [[0.5, 0.5], [0.75, 0.25], [0.25, 0.75]], id(OLD_FIRST): [0.5, 0.25, 0.25]}
    exact |= {id(OLD_SECOND): [[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]}
    arguments = tensors([exact.get(id(x), x) for x in lists], half)
    found = getattr(lab, name)(*arguments, **parameters)
    assert found.dtype == (torch.float64 if name in ALWAYS_WIDE else torch.float32)
    assert torch.equal(found, getattr(lab, name)(*[x.float() for x in arguments], **parameters))


@EACH
def test_every_tensor_is_checked(name, lists, parameters, differentiable):
    good = tensors(lists)
    function = getattr(lab, name)
    for place in range(len(good)):
        for bad, kind in [
            (good[place].tolist(), TypeError),
            (good[place].int(), TypeError),
            (good[place][:2], ValueError),
            (good[place][None], ValueError),
        ]:
            if len(good) == 1 and kind is ValueError and bad.ndim == 1:
                continue  # a shorter list is another world
            with pytest.raises(kind, match="must"):
                function(*good[:place], bad, *good[place + 1 :], **parameters)


@EACH
def test_every_number_is_checked(name, lists, parameters, differentiable):
    for parameter in parameters:
        for bad in (math.nan, "x", True):
            with pytest.raises((TypeError, ValueError), match=f"^{parameter} must (be|lie)"):
                getattr(lab, name)(*tensors(lists), **{**parameters, parameter: bad})
