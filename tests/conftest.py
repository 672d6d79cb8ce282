"""What several test files need: the project itself, its functions, and small projects made of strings."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from build_tools.config import Config, read_config
from build_tools.libraries import LibraryFunction, public_functions

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def config() -> Config:
    """The configuration of this project."""
    return read_config(ROOT)


@pytest.fixture(scope="session")
def functions(config: Config) -> Mapping[str, LibraryFunction]:
    """The functions that this project's content may call."""
    return public_functions(config.libraries, "tests")


@pytest.fixture(scope="session")
def remembering(functions: Mapping[str, LibraryFunction]) -> Mapping[str, LibraryFunction]:
    """The same functions, each working out a call without gradients once; for tests that repeat the whole content."""
    return {name: dataclasses.replace(each, call=_remembering(each.call)) for name, each in functions.items()}


def _remembering(call: Callable) -> Callable:
    results: dict = {}

    def remembered(*arguments, **keywords):
        tensors = [each for each in (*arguments, *keywords.values()) if isinstance(each, torch.Tensor)]
        if any(tensor.requires_grad for tensor in tensors):
            return call(*arguments, **keywords)
        key = repr([_plain(each) for each in (*arguments, *sorted(keywords.items()))])
        if key not in results:
            results[key] = call(*arguments, **keywords)
        return results[key]

    return remembered


def _plain(argument):
    if isinstance(argument, tuple):
        return [_plain(each) for each in argument]
    return argument.tolist() if isinstance(argument, torch.Tensor) else argument


@pytest.fixture
def project(tmp_path: Path, config: Config) -> Callable[[Mapping[str, str | bytes]], Config]:
    """Makes a project whose content is the given files, with this project's libraries and figures."""

    def make(files: Mapping[str, str | bytes]) -> Config:
        (tmp_path / "content").mkdir(exist_ok=True)
        for name, text in files.items():
            path = tmp_path / "content" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Config(tmp_path, config.libraries, config.figures)

    return make
