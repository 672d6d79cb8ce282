from pathlib import Path

import pytest

from build_tools.config import Config, ConfigError, read_config


@pytest.fixture
def config_of(tmp_path):
    def read(text: str | bytes) -> Config:
        (tmp_path / "pyproject.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_config(tmp_path)

    return read


def test_this_project(config):
    assert dict(config.libraries) == {"ppo_core": "library/reference.md", "lab": "library/lab.md"}
    assert config.figures == "lab.figures"


def test_a_configuration(config_of, tmp_path):
    config = config_of('[tool.build_tools]\nlibraries = {a = "b.md"}\n')

    assert config == Config(tmp_path, {"a": "b.md"}, None)
    assert config.pages == tmp_path / "build" / "pages"
    assert config.cache == tmp_path / "build" / "cache"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table [tool.build_tools] is missing; write it with libraries ="),
        ("[tool]\nbuild_tools = 3", "the table [tool.build_tools] is missing"),
        ("[tool.build_tools]\nlibrary = {}", "has no key library; it has libraries, figures and report"),
        (
            "[tool.build_tools]\nlibraries = ['a']",
            'libraries maps modules to pages: libraries = {my_library = "',
        ),
        ("[tool.build_tools]\nlibraries = {a = 3}", "libraries maps modules to pages"),
        ("[tool.build_tools]\nfigures = 3", "figures names a module"),
        ('[tool.build_tools]\nreport = "https://example.org/new"', "report is an address with {id} in it"),
        ('[tool.build_tools]\nreport = "javascript:x{id}"', "report is an address with {id} in it"),
        ("[tool.build_tools", "correct it"),
        (b"# \xff", "correct it"),
    ],
)
def test_what_is_wrong_with_it(config_of, tmp_path, text, message):
    with pytest.raises(ConfigError) as caught:
        config_of(text)

    assert str(caught.value).startswith(f"{tmp_path / 'pyproject.toml'}: ")
    assert message in str(caught.value)


def test_no_file(tmp_path: Path):
    with pytest.raises(ConfigError, match="run this in the folder that holds pyproject.toml"):
        read_config(tmp_path)
