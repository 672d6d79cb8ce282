"""Compiled to machine code by torch.compile, every function says the same as without it.

The compiler changes the order of sums and joins a product with the sum after it, so that the last digits may
differ: values and gradients are compared to a relative error of 1e-12 in float64.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

from .samples import SAMPLES, run, tensors_of

COMPILER = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
HEADER = Path(sysconfig.get_path("include"), "Python.h")

pytestmark = [
    pytest.mark.skipif(
        shutil.which(COMPILER) is None, reason=f"inductor needs a C++ compiler: no {COMPILER}"
    ),
    pytest.mark.skipif(not HEADER.exists(), reason=f"inductor needs the headers of Python: no {HEADER}"),
    # The compiler makes an object of each autograd.Function, and torch warns of that.
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    # And it imports what torch itself calls deprecated.
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method.*:DeprecationWarning"),
]


def fullest(name, part=None):
    """Return the sample of a function that gives the most arguments."""
    samples = [sample for sample in SAMPLES if (sample.name, sample.part) == (name, part)]
    return max(samples, key=lambda sample: len(sample.tensors) + len(sample.parameters))


def agrees(sample, device):
    tensors = tensors_of(sample, (2, 3), device)
    expected = run(sample, tensors)
    compiled = torch.compile(lambda arguments: sample(arguments), fullgraph=True, backend="inductor")
    torch.testing.assert_close(run(sample, tensors, compiled), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["policy_loss", "kl_k3", "gae", "ppo_objective"])
def test_four_functions_compile(name, device):
    agrees(fullest(name), device)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sample",
    [fullest(*key) for key in dict.fromkeys((sample.name, sample.part) for sample in SAMPLES)],
    ids=str,
)
def test_every_function_compiles(sample, device):
    agrees(sample, device)
