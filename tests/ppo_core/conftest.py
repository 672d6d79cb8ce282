import sys
from pathlib import Path

import pytest
import torch

# tests/reference.py, whichever part of the tests is run.
sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(params=["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def fresh_compiler():
    yield
    torch._dynamo.reset()
