"""What holds for every public function, run over the samples."""

import inspect
from functools import partial

import pytest
import torch

import ppo_core
import reference

from .samples import ONCE, SAMPLES, WITHOUT_SAMPLES, draw, run, tensors_of, to_tensors

SHAPES = [(), (1,), (5,), (1, 1), (2, 3), (3, 1), (0, 3), (2, 0), (2, 2, 3)]
EVERY = pytest.mark.parametrize("sample", SAMPLES, ids=str)
MASKED = pytest.mark.parametrize("sample", [s for s in SAMPLES if s.masked], ids=str)


def fits(sample, shape):
    """Whether the function takes the shape: tokens need a dimension, a score a token, a group two answers."""
    if sample.by_group:
        return shape != () and shape[-1] > 1
    scores_need_a_token = sample.name == "shaped_rewards" and "sequence_ids" not in sample.tensors
    return not (sample.by_token and shape == ()) and not (scores_need_a_token and shape == (2, 0))


def same(a, b):
    """Compare results and gradients exactly, NaN equal to NaN."""
    torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


def test_the_samples_reach_every_public_function():
    sampled = {sample.name for sample in SAMPLES}
    assert sampled | set(WITHOUT_SAMPLES) == set(ppo_core.__all__)
    assert sampled.isdisjoint(WITHOUT_SAMPLES)


# Parameters of functions that have samples, but that no sample gives, or that every sample gives.
NEVER_GIVEN = {
    ("whiten", "group"): "a process group, which must stand; tests/library/test_distributed.py has it",
    ("reinforce_plus_plus", "group"): "a process group; tests/library/test_distributed.py has it",
}
ALWAYS_GIVEN = {
    ("hidden_logprobs", "bias"): "without it any weight is right; tests/library/test_hidden.py does without",
    ("hidden_policy_loss", "bias"): "the same; tests/library/test_hidden_losses.py does without",
}


def test_the_samples_give_every_argument_and_leave_out_every_optional_one():
    given = {(s.name, name) for s in SAMPLES for name in (*s.tensors, *s.parameters)}
    parameters = {
        (sample.name, name): parameter
        for sample in SAMPLES
        for name, parameter in inspect.signature(getattr(ppo_core, sample.name)).parameters.items()
    }
    assert parameters.keys() - given == NEVER_GIVEN.keys()
    optional = {key for key, p in parameters.items() if p.default is not inspect.Parameter.empty}
    always_given = {
        (name, parameter)
        for name, parameter in optional
        if all(parameter in (*s.tensors, *s.parameters) for s in SAMPLES if s.name == name)
    }
    assert always_given == ALWAYS_GIVEN.keys()


@EVERY
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 2e-6)], ids=str)
def test_agrees_with_the_plain_float_twin(sample, shape, dtype, tolerance, device):
    if not fits(sample, shape):
        with pytest.raises(ValueError, match="dimension|no counted token"):
            sample(tensors_of(sample, shape, device, dtype))
        return
    for seed in range(5):
        data = draw(sample, shape, seed)
        result = sample(to_tensors(data, shape, device, dtype, sample=sample))
        expected = sample.twin(data)
        assert result.dtype == dtype
        assert result.shape == sample.result_shape(shape)
        expected = torch.tensor(expected, dtype=dtype, device=device).reshape(result.shape)
        torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@EVERY
def test_gradient_is_the_numerical_one(sample, device):
    tensors = tensors_of(sample, (2, 3), device)
    if sample.slope:
        leaf = tensors[sample.gradients[0]].requires_grad_()
        (gradient,) = torch.autograd.grad(sample(tensors).sum(), leaf)
        expected = getattr(reference, sample.slope)(**draw(sample, (2, 3)), **sample.parameters)
        torch.testing.assert_close(gradient.tolist(), expected, rtol=1e-14, atol=0)
        return
    if not sample.gradients:
        assert not sample(
            {n: t.requires_grad_() if t.is_floating_point() else t for n, t in tensors.items()}
        ).requires_grad
        return
    leaves = [tensors[name].requires_grad_() for name in sample.gradients]
    assert torch.autograd.gradcheck(
        lambda *x: sample({**tensors, **dict(zip(sample.gradients, x, strict=True))}), leaves
    )


@EVERY
def test_no_gradient_reaches_the_other_inputs(sample, device):
    tensors = tensors_of(sample, (2, 3), device)
    others = [n for n, t in tensors.items() if n not in sample.gradients and t.is_floating_point()]
    for name in (*sample.gradients, *others):
        tensors[name].requires_grad_()
    result = sample(tensors)
    if sample.gradients:
        result.sum().backward()
    assert [name for name in others if tensors[name].grad is not None] == []
    assert [name for name in sample.gradients if tensors[name].grad is None] == []


@MASKED
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_what_lies_under_the_mask_touches_neither_value_nor_gradient(sample, poison, device):
    clean = tensors_of(sample, (4, 5), device)
    assert not clean["mask"].all(), "nothing is under the mask"
    expected = run(sample, clean)
    # No token is NaN; -100 is the usual mark of one that does not count.
    fillers = {**dict.fromkeys(sample.numbers, poison), "tokens": -100}
    for name in set(sample.tensors) & fillers.keys() - set(sample.per_answer):
        uncounted = ~sample.covers(name, clean["mask"])
        same(run(sample, {**clean, name: clean[name].masked_fill(uncounted, fillers[name])}), expected)
    # 0 on uncounted tokens, in the result and in the gradient.
    if not sample.reduces:
        assert (expected[0][~clean["mask"]] == 0).all()
    for name, gradient in zip(sample.gradients, expected[1], strict=True):
        assert (gradient[~sample.covers(name, clean["mask"])] == 0).all()


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.masked and not s.points_at_tokens], ids=str)
def test_a_mask_selects(sample, device):
    if sample.by_token:
        # One row with holes: its meaning is the row without them.
        tensors = tensors_of(sample, (1, 6), device)
        mask = tensors["mask"]
        packed = {n: t[mask][None] if t.shape[:2] == mask.shape else t for n, t in tensors.items()}
        expected, result = sample(packed), sample(tensors)
        # Not to the last bit: a sum over more places is taken in another order.
        found = result if sample.reduces else result[mask][None]
        torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)
        return
    tensors = tensors_of(sample, (4, 5), device)
    mask = tensors["mask"]
    result, expected = sample(tensors), sample(sample.subset(tensors, mask))
    torch.testing.assert_close(result if sample.reduces else result[mask], expected, rtol=1e-14, atol=0)


@EVERY
def test_a_nan_on_a_counted_token_surfaces(sample, device):
    clean = tensors_of(sample, (2, 3), device)
    assert not run(sample, clean)[0].isnan().any()
    for name in sample.numbers:
        poisoned = torch.full_like(clean[name], torch.nan)
        if sample.masked:
            poisoned = torch.where(sample.covers(name, clean["mask"]), poisoned, clean[name])
        assert sample({**clean, name: poisoned}).isnan().any(), name


@EVERY
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(sample, half, device):
    tensors = tensors_of(sample, (2, 3), device, half)
    result, gradients = run(sample, tensors)
    wide = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
    expected, wide_gradients = run(sample, wide)
    assert result.dtype == torch.float32
    same(result, expected)
    # The gradient returns in the type of the input.
    same(gradients, tuple(g.to(half) for g in wide_gradients))


@EVERY
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("wide", [True, False], ids=["float32", "half"])
def test_autocast_changes_nothing_but_rounds_for_a_linear_layer(sample, half, wide, device):
    tensors = tensors_of(sample, (2, 3), device, torch.float32 if wide else half)
    rounded = {n: t.to(half).to(t.dtype) if n in sample.rounds else t for n, t in tensors.items()}
    expected = run(sample, rounded)
    with torch.autocast(device, dtype=half):
        found = run(sample, tensors)
    assert found[0].dtype == torch.float32
    same(found, expected)


@EVERY
def test_arguments_are_left_as_they_were(sample, device):
    tensors = tensors_of(sample, (2, 3), device)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    result = sample(tensors)
    result.zero_()
    assert all(tensors[name]._version == 0 for name in tensors)
    same(tensors, before)


def strided(x):
    """Return the tensor with another order in memory: its first dimension lies closest together."""
    if x.ndim == 1:
        return x.repeat_interleave(2)[::2]
    backwards = tuple(range(x.ndim))[::-1]
    return x.permute(backwards).contiguous().permute(backwards)


@EVERY
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4)], ids=str)
def test_strides_do_not_matter(sample, shape, device):
    tensors = tensors_of(sample, shape, device)
    turned = {n: strided(t) for n, t in tensors.items()}
    assert not any(t.is_contiguous() for t in turned.values() if t.ndim)
    torch.testing.assert_close(run(sample, turned), run(sample, tensors), rtol=1e-15, atol=1e-15)


@EVERY
def test_one_row_may_stand_for_many(sample, device):
    # An expanded tensor has the stride 0: all its rows lie in one place, which nothing may write to.
    tensors = tensors_of(sample, (1, 4), device)
    rows = {n: (3, *t.shape[1:]) if t.shape[:1] == (1,) else t.shape for n, t in tensors.items()}

    def expanded(tensors, *, copied):
        wide = {n: t.expand(rows[n]) for n, t in tensors.items()}
        return sample({n: t.contiguous() for n, t in wide.items()} if copied else wide)

    expected, found = (run(sample, tensors, partial(expanded, copied=copied)) for copied in (True, False))
    torch.testing.assert_close(found, expected, rtol=1e-15, atol=0)


@EVERY
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)], ids=str)
def test_an_empty_batch_has_a_gradient(sample, shape, device):
    if not fits(sample, shape):
        return
    tensors = tensors_of(sample, shape, device)
    for name, gradient in zip(sample.gradients, run(sample, tensors)[1], strict=True):
        # A tensor that is there once for all tokens has a gradient, and no token to get it from.
        same(gradient, torch.zeros_like(tensors[name]))


@EVERY
def test_the_order_of_the_rows_does_not_matter(sample, device):
    tensors = tensors_of(sample, (4, 3), device)
    order = torch.tensor([2, 0, 3, 1], device=device)

    def turned(tensors):
        found = sample(
            {n: t[order] if t.shape[:1] == (4,) and n not in ONCE else t for n, t in tensors.items()}
        )
        return found if sample.reduces else found[order.argsort()]

    # Not to the last bit: a sum over all rows is taken in another order.
    torch.testing.assert_close(run(sample, tensors, turned), run(sample, tensors), rtol=1e-13, atol=1e-15)


@EVERY
def test_nothing_looks_at_the_data(sample):
    # Tensors on the meta device have no data: a host sync would raise.
    tensors = {n: t.to("meta") for n, t in tensors_of(sample, (2, 3)).items()}
    result, gradients = run(sample, tensors)
    assert result.shape == sample.result_shape((2, 3))
    assert [g.shape for g in gradients] == [tensors[name].shape for name in sample.gradients]


# The compiler itself makes an object of each autograd.Function, and torch warns of that.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@EVERY
def test_compiles_into_one_graph(sample, device):
    tensors = tensors_of(sample, (2, 3), device)
    expected = run(sample, tensors)
    compiled = torch.compile(lambda arguments: sample(arguments), fullgraph=True, backend="aot_eager")
    # Compiled it is the plain definition, in eager mode it may be a fast path, which adds up in another order.
    torch.testing.assert_close(run(sample, tensors, compiled), expected, rtol=1e-15, atol=1e-15)


def test_a_compiled_function_takes_other_hyper_parameters():
    # The second value makes the compiler treat the number as an input of the graph.
    compiled = torch.compile(ppo_core.clipped_surrogate, fullgraph=True, backend="aot_eager")
    rho, A = torch.tensor([1.6, 0.5], dtype=torch.float64), torch.tensor([2.0, -3.0], dtype=torch.float64)
    for epsilon in (0.1, 0.2, 0.3, 1e-6):
        expected = reference.clipped_surrogate(rho.tolist(), A.tolist(), epsilon=epsilon)
        assert compiled(rho, A, epsilon=epsilon).tolist() == pytest.approx(expected, rel=1e-12)
