"""The fast paths of losses per token: they are taken where they may be, and equal the plain definition.

The definition has tests of its own, against numbers by hand and a twin in plain Python; here it is the twin.
"""

import math

import pytest
import torch

from ppo_core import aggregate, checks, masking, policy, policy_loss

from .ordinary import batch, calls_of, definition

NAN, INF = math.nan, math.inf
OPTIONS = (
    {},
    {"epsilon_high": 0.3},
    {"dual_clip": 3.0},
    {"log_bound": 0.5},
    {"epsilon_high": 1.5, "dual_clip": 1.1, "log_bound": 20},
)


def gradient_of(loss, *inputs):
    return torch.autograd.grad(loss, inputs, allow_unused=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (7, 33)], ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_policy_loss_is_the_definition(masked, shape, dtype, options, monkeypatch):
    new, old, A, mask = batch(shape, dtype)
    mask = mask if masked else None
    found = policy_loss(new, old, A, epsilon=0.2, mask=mask, **options)
    with definition(monkeypatch):
        expected = policy_loss(new, old, A, epsilon=0.2, mask=mask, **options)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    weights = torch.linspace(-1, 2, new.numel(), dtype=found.dtype).reshape(shape)
    (slope,), (expected_slope,) = (
        gradient_of((found * weights).sum(), new),
        gradient_of((expected * weights).sum(), new),
    )
    torch.testing.assert_close(slope, expected_slope, rtol=4 * torch.finfo(dtype).eps, atol=0)


def test_policy_loss_on_the_edges_of_the_band(monkeypatch):
    # The ratio next to each edge on both sides, and on it: the slope must be that of the right side.
    edges = torch.tensor([0.8, 1.2, 3.0], dtype=torch.float64)
    rho = torch.cat([edges.nextafter(torch.tensor(x, dtype=torch.float64)) for x in (0, 9)] + [edges])
    for A in (1.0, -1.0, 1e-3, -7.3):
        new = rho.log().requires_grad_()
        arguments = (new, torch.zeros_like(rho), torch.full_like(rho, A))
        found = policy_loss(*arguments, epsilon=0.2, dual_clip=3)
        with definition(monkeypatch):
            expected = policy_loss(*arguments, epsilon=0.2, dual_clip=3)
        assert torch.equal(found, expected)
        (slope,), (expected_slope,) = gradient_of(found.sum(), new), gradient_of(expected.sum(), new)
        torch.testing.assert_close(slope, expected_slope, rtol=1e-15, atol=0)
        assert 0 < (slope == 0).sum() < len(slope)


def test_policy_loss_of_transposed_and_expanded_tensors(monkeypatch):
    new, old, A, mask = batch((5, 7), torch.float64)
    arguments = (new.T, old.T, A[0, 0].expand(7, 5))
    found = policy_loss(*arguments, epsilon=0.2, mask=mask.T)
    with definition(monkeypatch):
        expected = policy_loss(*arguments, epsilon=0.2, mask=mask.T)
    assert torch.equal(found, expected)
    torch.testing.assert_close(gradient_of(found.sum(), new), gradient_of(expected.sum(), new))


def test_policy_loss_has_its_second_derivative(monkeypatch):
    # -rho A has itself as slope at every order, and 0 where it is clipped.
    new, old = (
        torch.tensor([1.5, 1.5, 0.5], dtype=torch.float64).log().requires_grad_(),
        torch.zeros(3).double(),
    )
    loss = policy_loss(new, old, torch.tensor([1.0, -1.0, 2.0]).double(), epsilon=0.2).sum()
    (first,) = torch.autograd.grad(loss, new, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), new, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), new)
    for order in (first, second, third):
        assert order.tolist() == pytest.approx([0, 1.5, -1], rel=1e-15)


def test_what_is_not_counted_is_not_looked_at():
    new = torch.tensor([0.1, NAN, INF, -INF, 0.1]).requires_grad_()
    old, A = torch.tensor([0.0, 0.0, 0.0, -INF, NAN]), torch.tensor([1.0, 1.0, INF, NAN, 1.0])
    mask = torch.tensor([True, False, False, False, False])
    loss = policy_loss(new, old, A, epsilon=0.2, mask=mask)
    assert loss.tolist() == pytest.approx([-math.exp(0.1), 0, 0, 0, 0])
    # A gradient that comes in under the mask is dropped, even where it is not a number.
    loss.backward(torch.tensor([1.0, NAN, INF, NAN, NAN]))
    assert new.grad.tolist() == pytest.approx([-math.exp(0.1), 0, 0, 0, 0])


@pytest.mark.parametrize("place", range(3))
def test_a_nan_that_counts_surfaces_in_loss_and_gradient(place):
    tensors = [torch.zeros(2), torch.zeros(2), torch.ones(2)]
    tensors[place][1] = NAN
    new = tensors[0].requires_grad_()
    loss = policy_loss(*tensors, epsilon=0.2)
    loss.sum().backward()
    assert loss.isnan().tolist() == new.grad.isnan().tolist() == [False, True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_counted_keeps_every_bit_or_none(dtype, monkeypatch):
    numbers = torch.tensor([1.5, -0.0, -2.25, INF, -INF, NAN, 6e-8], dtype=dtype)
    x = numbers.repeat(2, 1).requires_grad_()
    mask = torch.stack([torch.ones(7), torch.zeros(7)]).bool()
    for given in (mask, mask[:, :1]):
        found = masking.counted(x, given)
        with definition(monkeypatch):
            expected = masking.counted(x, given)
        integers = masking.INTEGERS[dtype.itemsize]
        assert torch.equal(found.view(integers), expected.view(integers))
        assert found[1].view(integers).tolist() == [0] * 7
        grad = torch.full_like(x, NAN)
        grad[0] = 3
        (slope,) = torch.autograd.grad(found, x, grad)
        assert slope.tolist() == [[3] * 7, [0] * 7]


def test_counted_has_a_gradient_of_its_gradient():
    x = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, False])
    assert torch.autograd.gradgradcheck(lambda x: masking.counted(x, mask) ** 3, x)


# Torch itself scripts something when it first differentiates forward, and warns that it should not.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_the_fast_paths_are_taken_and_not_where_they_may_not(monkeypatch):
    calls = calls_of(monkeypatch, policy, "clipped_losses_and_slopes")
    new, old, A, mask = batch((2, 3), torch.float32)
    policy_loss(new, old, A, epsilon=0.2, mask=mask)
    assert len(calls) == 1
    # Two types are one type in the definition only.
    policy_loss(new, old.double(), A, epsilon=0.2, mask=mask)
    policy_loss(*(x.to("meta") for x in (new, old, A)), epsilon=0.2, mask=mask.to("meta"))
    torch.func.vmap(lambda *x: policy_loss(*x, epsilon=0.2))(new, old, A)
    torch.func.jvp(lambda x: policy_loss(x, old, A, epsilon=0.2), (new,), (old,))
    torch.func.grad(lambda x: policy_loss(x, old, A, epsilon=0.2).sum())(new)
    assert len(calls) == 1


# Torch itself scripts something when it first differentiates forward, and warns that it should not.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_transformations_of_functions_see_the_definition():
    new, old, A, mask = batch((2, 3), torch.float64)
    expected = policy_loss(new, old, A, epsilon=0.2, mask=mask)
    each = torch.func.vmap(lambda n, o, a, m: policy_loss(n, o, a, epsilon=0.2, mask=m))(new, old, A, mask)
    torch.testing.assert_close(each, expected)
    total = torch.func.grad(lambda x: policy_loss(x, old, A, epsilon=0.2, mask=mask).sum())(new)
    torch.testing.assert_close((total,), torch.autograd.grad(expected.sum(), new))
    tangents = torch.ones_like(new)
    _, moved = torch.func.jvp(lambda x: policy_loss(x, old, A, epsilon=0.2, mask=mask), (new,), (tangents,))
    torch.testing.assert_close(moved, total)


class Sub(torch.Tensor):
    pass


def test_what_is_ordinary():
    x = torch.zeros(2)
    assert checks.is_ordinary(x, torch.nn.Parameter(x), torch.ones(3))
    assert checks.is_ordinary(x, None, x.double(), x.bool())
    assert checks.of_one_type(x, x + 1) and not checks.of_one_type(x, x.double())
    assert not checks.is_ordinary(x.as_subclass(Sub))
    assert not checks.is_ordinary(x.to("meta"))
    inside = []
    torch.func.vmap(lambda y: inside.append(checks.is_ordinary(y)) or y)(x)
    with torch.autograd.forward_ad.dual_level():
        inside.append(checks.is_ordinary(x))
    assert inside == [False, False]


# The compiler itself makes an object of each autograd.Function, and torch warns of that.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_a_compiled_loss_is_the_definition_too():
    new, old, A, mask = batch((4, 9), torch.float64)

    def loss(new):
        return aggregate(policy_loss(new, old, A, epsilon=0.2, mask=mask), mask, mode="token_mean")

    leaf = new.detach().clone().requires_grad_()
    found = torch.compile(loss, backend="aot_eager", fullgraph=True)(leaf)
    torch.testing.assert_close(found, loss(new))
    torch.testing.assert_close(torch.autograd.grad(found, leaf), torch.autograd.grad(loss(new), new))
