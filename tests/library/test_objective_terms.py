"""The fast path of the whole objective, and calculations in pieces: they equal the plain definition.

The definition has tests of its own, against numbers by hand and a twin in plain Python; here it is the twin.
"""

import math

import pytest
import torch

from ppo_core import approximate_kl, clip_fractions, objectives, pieces, ppo_objective

from .ordinary import batch, calls_of, definition


def objective(tensors, mask, mode="token_mean", **options):
    return ppo_objective(
        *tensors, mask, epsilon=0.2, value_coef=0.5, entropy_coef=0.03, beta=0.1, mode=mode, **options
    )


def seven(shape, dtype):
    new, old, A, mask = batch(shape, dtype)
    new = new.detach().clamp(-30, 30).requires_grad_()
    draw = torch.Generator().manual_seed(1)
    values, returns, ref, entropies = torch.randn(4, *shape, generator=draw, dtype=torch.float64).to(dtype)
    return (new, old, ref, A, values.requires_grad_(), returns, entropies.requires_grad_()), mask


@pytest.mark.parametrize("piece", [1, 7, 2**18])
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("token_mean", {}),
        ("token_mean", {"denominator": torch.tensor(40), "dual_clip": 3.0}),
        ("sequence_mean_token_sum", {"epsilon_high": 0.5}),
        ("sequence_mean_token_mean", {}),
        ("constant", {"denominator": 12.5}),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_the_objective_is_the_definition(dtype, mode, options, piece, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", piece)
    tensors, mask = seven((3, 11), dtype)
    leaves = (tensors[0], tensors[4], tensors[6])
    found = objective(tensors, mask, mode, **options)
    with definition(monkeypatch):
        expected = objective(tensors, mask, mode, **options)
    exact = {"rtol": 1e-12 if dtype == torch.float64 else 2e-6, "atol": 1e-7}
    torch.testing.assert_close(tuple(found), tuple(expected), **exact)
    # Each term alone, and two of them at once.
    chosen = [lambda terms, i=i: terms[i] for i in range(5)] + [lambda terms: terms.kl * 2 - terms.policy]
    for term in chosen:
        gradients = torch.autograd.grad(term(found), leaves, retain_graph=True, materialize_grads=True)
        definitions = torch.autograd.grad(term(expected), leaves, retain_graph=True, materialize_grads=True)
        bounds = {"rtol": 1e-3, "atol": 1e-6} if dtype == torch.float16 else exact
        torch.testing.assert_close(gradients, definitions, **bounds)


def test_the_objective_goes_back_twice_with_one_result():
    tensors, mask = seven((3, 11), torch.float32)
    leaves = (tensors[0], tensors[4], tensors[6])
    loss = objective(tensors, mask).loss
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    kept = [x.clone() for x in first]
    second = torch.autograd.grad(loss, leaves)
    assert all(map(torch.equal, first, kept))
    assert all(map(torch.equal, first, second))


def test_the_objective_has_its_second_derivative(monkeypatch):
    tensors, mask = seven((2, 5), torch.float64)
    leaves = (tensors[0], tensors[4])

    def second():
        gradients = torch.autograd.grad(objective(tensors, mask).loss, leaves, create_graph=True)
        return torch.autograd.grad(sum((g**2).sum() for g in gradients), leaves)

    found = second()
    with definition(monkeypatch):
        torch.testing.assert_close(found, second(), rtol=1e-12, atol=1e-15)


def test_the_objective_where_only_some_tensors_want_a_gradient():
    tensors, mask = seven((2, 5), torch.float64)
    whole = torch.autograd.grad(objective(tensors, mask).loss, tensors[4])
    alone = [x.detach() for x in tensors]
    alone[4].requires_grad_()
    assert torch.equal(torch.autograd.grad(objective(alone, mask).loss, alone[4])[0], whole[0])
    with torch.no_grad():
        assert not objective(tensors, mask).loss.requires_grad


def test_the_objective_of_nothing_is_nothing():
    tensors, mask = seven((2, 0), torch.float32)
    assert [term.item() for term in objective(tensors, mask)] == [0] * 5
    tensors, mask = seven((2, 3), torch.float32)
    terms = objective(tensors, torch.zeros_like(mask))
    assert [term.item() for term in terms] == [0] * 5
    assert not any(x.any() for x in torch.autograd.grad(terms.loss, (tensors[0], tensors[4], tensors[6])))


@pytest.mark.parametrize("piece", [1, 4, 2**18])
def test_diagnostics_in_pieces(piece, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", piece)
    rho = torch.tensor([1.5, 1.5, 0.5, 0.5, 4.0, 1.0, 9.0]).double()
    A = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0]).double()
    mask = torch.tensor([True] * 6 + [False])
    shares = clip_fractions(rho.log(), torch.zeros(7).double(), A, mask, epsilon=0.2, dual_clip=3)
    assert [share.item() for share in shares] == pytest.approx([1 / 6, 1 / 6, 1 / 6])
    expected = sum(r - 1 - math.log(r) for r in rho[:6].tolist()) / 6
    assert approximate_kl(rho.log(), torch.zeros(7).double(), mask).item() == pytest.approx(expected)


def test_the_objective_takes_its_fast_path_where_all_tokens_weigh_the_same(monkeypatch):
    calls = calls_of(monkeypatch, objectives, "terms_in_pieces")
    tensors, mask = seven((2, 3), torch.float32)
    objective(tensors, mask)
    assert len(calls) == 1
    # Where a token weighs what its sequence leaves it, each has a weight of its own. Of two types the definition
    # alone makes one.
    objective(tensors, mask, "sequence_mean_token_mean")
    objective((*tensors[:5], tensors[5].double(), tensors[6]), mask)
    assert len(calls) == 1


def test_several_gradients_of_the_objective_at_once():
    tensors, mask = seven((2, 3), torch.float64)
    terms = torch.stack(tuple(objective(tensors, mask)))
    one_by_one = [
        torch.autograd.grad(term, tensors[0], retain_graph=True, materialize_grads=True)[0] for term in terms
    ]
    (together,) = torch.autograd.grad(terms, tensors[0], torch.eye(5).double(), is_grads_batched=True)
    torch.testing.assert_close(together, torch.stack(one_by_one), rtol=1e-12, atol=1e-15)
