"""The fast path of logits: equal to the plain definitions, taken where it may be, in little memory."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import ppo_core.logit_rows
from ppo_core import checks, entropy, logit_statistics, token_logprobs

CALLS = {
    "token_logprobs": lambda logits, tokens, **options: (token_logprobs(logits, tokens, **options),),
    "entropy": lambda logits, tokens, **options: (entropy(logits, **options),),
    "logit_statistics": logit_statistics,
}
EVERY = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture(params=[1, 2, 5, 6, 100])
def piece(request, monkeypatch):
    """How many rows are taken at a time, with the vocabulary of `arguments`, 7 tokens."""
    monkeypatch.setattr(ppo_core.logit_rows, "CPU_PIECE_ELEMENTS", 7 * request.param + 6)
    monkeypatch.setattr(ppo_core.logit_rows, "PIECE_ELEMENTS", 7 * request.param + 6)
    return request.param


@pytest.fixture
def taken(monkeypatch):
    """Note each time that the fast path is taken."""
    times = []
    fast = ppo_core.logit_rows.statistics_by_rows

    def noted(*arguments, **options):
        times.append(1)
        return fast(*arguments, **options)

    monkeypatch.setattr("ppo_core.entropies.statistics_by_rows", noted)
    return times


def arguments(shape=(2, 3), device="cpu", dtype=torch.float64, vocabulary=7):
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(*shape, vocabulary, generator=generator, dtype=torch.float64)
    tokens = torch.randint(vocabulary, shape, generator=generator)
    return logits.to(device, dtype).requires_grad_(), tokens.to(device)


def run(call, logits, tokens, **options):
    """Return the results, and the gradient of a sum in which every element has a weight of its own."""
    results = torch.stack(list(call(logits, tokens, **options)))
    weights = torch.linspace(-1, 2, results.numel(), dtype=results.dtype, device=results.device)
    (gradient,) = torch.autograd.grad((results * weights.reshape(results.shape)).sum(), logits)
    return [results.detach(), gradient]


def plainly(monkeypatch, *arguments, **options):
    """Do the same by the plain definitions."""
    with monkeypatch.context() as patch:
        patch.setattr(checks, "is_ordinary", lambda *tensors: False)
        return run(*arguments, **options)


def close(found, expected, tolerance=1e-13):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@EVERY
@pytest.mark.parametrize("shape", [(), (11,), (4, 3), (2, 2, 3), (0, 3)], ids=str)
def test_equal_to_the_plain_definition(call, shape, piece, monkeypatch, device, taken):
    logits, tokens = arguments(shape, device)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)).to(device) < 0.6
    none = torch.zeros_like(mask)
    for options in ({}, {"temperature": 0.7}, {"mask": mask}, {"mask": none}, {"mask": ~none}):
        taken.clear()
        found = run(call, logits, tokens, **options)
        assert taken == [1]
        close(found, plainly(monkeypatch, call, logits, tokens, **options))
        assert taken == [1]


@EVERY
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)], ids=str
)
def test_equal_in_every_type(call, dtype, tolerance, piece, monkeypatch, device):
    logits, tokens = arguments((4, 3), device, dtype)
    found, expected = run(call, logits, tokens), plainly(monkeypatch, call, logits, tokens)
    assert [x.dtype for x in found] == [torch.float32, dtype]
    close(found[0], expected[0], 2e-6)
    close(found[1], expected[1], tolerance)


@EVERY
def test_equal_where_logits_are_infinite_or_no_numbers(call, piece, monkeypatch, device):
    logits, tokens = arguments((8,), device, torch.float32)
    logits, tokens = logits.detach(), torch.full_like(tokens, 1)
    logits[0, 0], logits[1, 1], logits[2], logits[3, 2] = -math.inf, -math.inf, -math.inf, math.nan
    logits[4, 2], logits[5, 0], logits[5, 1], logits[6, 1] = math.inf, 1e38, -1e38, 1e4
    mask = torch.tensor([True] * 7 + [False], device=device)
    logits[7] = math.nan
    logits.requires_grad_()
    close(run(call, logits, tokens, mask=mask), plainly(monkeypatch, call, logits, tokens, mask=mask), 1e-6)


@EVERY
@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x[:, :-1],
        lambda x: x[:, 1:3],
        lambda x: x.transpose(0, 1),
        lambda x: x[..., ::2],
        lambda x: x[0, :, ::3],
        lambda x: x[0, 0, ::2],
        lambda x: x[:, :1].expand(3, 5, 7),
    ],
    ids=["slice", "middle", "transposed", "every second token", "one answer", "one place", "expanded"],
)
def test_equal_in_every_layout(call, layout, piece, monkeypatch, device):
    whole, _ = arguments((3, 4), device)
    logits = layout(whole)
    tokens = torch.ones(logits.shape[:-1], dtype=torch.int64, device=device)
    close(run(call, logits, tokens), plainly(monkeypatch, call, logits, tokens))


@EVERY
def test_the_second_derivative_is_the_numerical_one(call, piece, device):
    logits, tokens = arguments((4,), device)
    mask = torch.tensor([True, False, True, True], device=device)
    assert torch.autograd.gradgradcheck(lambda x: tuple(call(x, tokens, temperature=0.8, mask=mask)), logits)


@EVERY
def test_several_gradients_at_once(call, monkeypatch, device):
    logits, tokens = arguments((3,), device)
    found = call(logits, tokens)[-1]
    (rows,) = torch.autograd.grad(
        found, logits, torch.eye(3, dtype=found.dtype, device=device), is_grads_batched=True
    )
    (total,) = torch.autograd.grad(call(logits, tokens)[-1].sum(), logits)
    close(rows.sum(0), total)
    assert (rows[0, 1:] == 0).all() and (rows[0, 0] != 0).all()


# --- where it is taken


@EVERY
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_transforms_and_graphs_take_the_plain_definition(call, device, taken):
    logits, tokens = arguments((3,), device)
    expected = call(logits, tokens)[0].detach()
    assert taken == [1]
    compiled = torch.compile(lambda *x: call(*x)[0], fullgraph=True, backend="aot_eager")
    close(compiled(logits, tokens).detach(), expected)
    many = torch.func.vmap(lambda x: call(x, tokens)[0])(logits.detach().expand(2, 3, 7))
    close(many, expected.expand(2, 3))
    direction = torch.ones_like(logits)
    value, slope = torch.func.jvp(lambda x: call(x, tokens)[0], (logits.detach(),), (direction,))
    close([value, slope], [expected, torch.zeros_like(expected)])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(logits.detach(), direction)
        slope = torch.autograd.forward_ad.unpack_dual(call(dual, tokens)[0]).tangent
    # A shift of all logits changes nothing.
    close(slope, torch.zeros_like(expected))
    assert taken == [1]


@EVERY
def test_tensors_without_data_take_the_plain_definition(call, taken):
    logits, tokens = (x.detach().to("meta") for x in arguments())
    assert call(logits, tokens)[0].shape == (2, 3)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(x.detach()) for x in arguments()]
        assert not checks.is_ordinary(*fake)
    assert taken == []
    assert checks.is_ordinary(torch.zeros(1), None, torch.nn.Parameter(torch.zeros(1)))


# --- memory


class Sizes(TorchDispatchMode):
    """Note the size of every tensor that an operation allocates."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = {
            x.untyped_storage().data_ptr()
            for x in (*args, *(kwargs or {}).values())
            if isinstance(x, torch.Tensor)
        }
        for x in result if isinstance(result, tuple | list) else [result]:
            # A view, and what was changed in place, is no new tensor.
            if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in given:
                self.found.append(x.numel())
        return result


@EVERY
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_of_the_size_of_the_logits_there_is_the_gradient_alone(call, dtype, monkeypatch, device):
    monkeypatch.setattr(ppo_core.logit_rows, "CPU_PIECE_ELEMENTS", 10_000)
    monkeypatch.setattr(ppo_core.logit_rows, "PIECE_ELEMENTS", 10_000)
    logits, tokens = arguments((20, 31), device, dtype, vocabulary=500)
    for x in (logits, logits.detach()[:, :-1].requires_grad_()):
        with Sizes() as sizes:
            run(call, x, tokens[:, : x.shape[1]], temperature=0.5)
        large = [size for size in sizes.found if size > 10_000]
        assert large == [x.numel()]


@pytest.mark.parametrize(("device", "rows", "size"), [("cpu", 2**10, 2**10), ("meta", 2**13, 2**12)])
def test_a_piece_is_2_mib_on_the_cpu_and_64_mib_elsewhere(device, rows, size):
    # In float32 the logits are 4 MiB and 128 MiB; all of them are one number.
    logits = torch.zeros(1, 1, device=device).expand(rows, size)
    parts = [part for part, _ in ppo_core.logit_rows._pieces(logits, None, 1)]
    assert parts == [slice(0, rows // 2), slice(rows // 2, rows)]


def test_a_row_that_is_larger_than_a_piece_is_taken_alone(monkeypatch):
    monkeypatch.setattr(ppo_core.logit_rows, "CPU_PIECE_ELEMENTS", 2)
    parts = [part for part, _ in ppo_core.logit_rows._pieces(torch.zeros(3, 7), None, 1)]
    assert parts == [slice(0, 1), slice(1, 2), slice(2, 3)]
