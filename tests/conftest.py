"""What several test files need: the project itself, its functions, and small projects made of strings."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

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
