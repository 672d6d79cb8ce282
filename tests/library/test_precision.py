"""The error of float32 results is at most twice that of plain float32 arithmetic.

What is compared: the twin of each function, once with Python's floats, which is the exact value for this
purpose, and once with every operation of it rounded to float32, which is the plain arithmetic. The twins are
written from the formulas, so that this is what someone gets who types the formula in, with the best
exponentials and logarithms that float32 can hold. Both errors are absolute, and the largest over all elements
of many draws with inputs in float32, bfloat16 and float16: on a single element the plain arithmetic may be
exact by luck, and so may all its sums of numbers that have only the eight binary digits of bfloat16. For the
same reason it is taken to be off by half a step of float32 at least, at the largest result: what is rounded at
the end is off by that.
Two claims are not made here: that small results beside large ones are right to their last digits, and anything
about gradients.
"""

import itertools
import math
import struct
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from .samples import SAMPLES, draw, to_tensors


def rounded(x):
    """Round a float to the nearest one of float32."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


class Single(float):
    """A float that rounds the result of every operation to float32, and what it is combined with before."""

    def __new__(cls, x):
        return super().__new__(cls, rounded(x))


def operator(name):
    plain = getattr(float, name)

    def operate(self, *others):
        return Single(plain(self, *map(rounded, others)))

    return operate


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Single, f"__{_name}__", operator(f"__{_name}__"))
    setattr(Single, f"__r{_name}__", operator(f"__r{_name}__"))
for _name in ("__neg__", "__abs__"):
    setattr(Single, _name, operator(_name))


def one_by_one(numbers):
    """Add in the order given, as a loop does."""
    total = Single(0)
    for x in numbers:
        total = total + x
    return total


def in_single(name):
    return lambda x: Single(getattr(math, name)(rounded(x)))


# What the twins use of `math`.
SINGLE = SimpleNamespace(
    **{
        name: getattr(math, name) for name in ("inf", "nan", "isfinite", "floor", "ceil", "factorial", "prod")
    },
    **{name: in_single(name) for name in ("exp", "log", "log1p", "sqrt")},
    fsum=one_by_one,
)


def elements(x):
    """Make each number of nested lists a Single; truth values and whole numbers stay."""
    if isinstance(x, list | tuple):
        return [elements(part) for part in x]
    return Single(x) if isinstance(x, float) else x


def test_a_single_is_what_float32_is():
    tensors = torch.rand(2, 50) + 0.5
    pairs = [[Single(x) for x in row] for row in tensors.tolist()]
    for operate in (
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: x / y,
        lambda x, y: 0.1 - x * 0.3,
        lambda x, y: -abs(x - 2 * y),
    ):
        expected = operate(*tensors).tolist()
        assert [operate(x, y) for x, y in zip(*pairs, strict=True)] == expected
    with pytest.raises(AttributeError):
        SINGLE.tau  # noqa: B018  what is not rounded must not slip through


@pytest.fixture
def plain_arithmetic(monkeypatch):
    """Call a twin in float32 arithmetic."""

    def call(sample, data):
        with monkeypatch.context() as patch:
            for name, module in sys.modules.items():
                if name.startswith("reference.") and hasattr(module, "math"):
                    patch.setattr(module, "math", SINGLE)
            parameters = {name: elements(x) for name, x in sample.parameters.items()}
            return replace(sample, parameters=parameters).twin({n: elements(x) for n, x in data.items()})

    return call


# The elements of the results in each type.
SHAPE, ELEMENTS = (3, 16), 50


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_the_error_is_at_most_twice_that_of_plain_arithmetic(sample, plain_arithmetic, device):
    ours, plain, largest = 0.0, 0.0, 0.0
    seeds = range(ELEMENTS // math.prod(sample.result_shape(SHAPE)))
    for dtype, seed in itertools.product((torch.float32, torch.bfloat16, torch.float16), seeds):
        tensors = to_tensors(draw(sample, SHAPE, seed), SHAPE, device, dtype, sample=sample)
        # The numbers as they are after rounding to the type of the inputs.
        data = {name: x.tolist() for name, x in tensors.items()}
        exact = torch.tensor(sample.twin(data), dtype=torch.float64, device=device)
        single = torch.tensor(plain_arithmetic(sample, data), dtype=torch.float32, device=device)
        result = sample(tensors)
        assert result.dtype == torch.float32
        ours = max(ours, (result - exact).abs().max().item())
        plain = max(plain, (single - exact).abs().max().item())
        largest = max(largest, exact.abs().max().item())
    half_a_step = torch.finfo(torch.float32).eps / 2 * largest
    assert ours <= 2 * max(plain, half_a_step)
