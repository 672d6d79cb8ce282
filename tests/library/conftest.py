import pytest
import torch


@pytest.fixture(params=["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def device(request):
    """Every device of this machine."""
    return request.param


@pytest.fixture(autouse=True)
def fresh_compiler():
    """Forget what was compiled, so that no test depends on another."""
    yield
    torch._dynamo.reset()
