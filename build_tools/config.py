"""The one configuration: `[tool.build_tools]` in the project's pyproject.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build_tools.errors import EXTERNAL


class ConfigError(Exception):
    """The configuration cannot be used; the text says what to write."""


@dataclass(frozen=True)
class Config:
    """What the tools must be told of a project.

    `libraries` maps each module whose public functions content may call to the page that documents it, `figures` names
    the module of figure functions, `report` is the address under which readers report an item, with {id} in it.
    """

    root: Path
    libraries: Mapping[str, str]
    figures: str | None
    report: str | None = None

    @property
    def pages(self) -> Path:
        return self.root / "build" / "pages"

    @property
    def cache(self) -> Path:
        return self.root / "build" / "cache"


def read_config(root: Path) -> Config:
    path = root / "pyproject.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("build_tools")
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such file; run this in the folder that holds pyproject.toml"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}; correct it") from None
    example = 'libraries = {my_library = "library/reference.md"} and figures = "my_library.figures"'
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: the table [tool.build_tools] is missing; write it with {example}")
    unknown = set(table) - {"libraries", "figures", "report"}
    libraries, figures = table.get("libraries", {}), table.get("figures")
    if unknown:
        raise ConfigError(
            f"{path}: [tool.build_tools] has no key {', '.join(sorted(unknown))}; it has libraries, figures and report"
        )
    if not isinstance(libraries, dict) or not all(isinstance(page, str) for page in libraries.values()):
        raise ConfigError(f"{path}: libraries maps modules to pages: {example}")
    if figures is not None and not isinstance(figures, str):
        raise ConfigError(f"{path}: figures names a module: {example}")
    report = table.get("report")
    if report is not None and not (
        isinstance(report, str) and report.startswith(EXTERNAL) and "{id}" in report
    ):
        raise ConfigError(
            f'{path}: report is an address with {{id}} in it, like "https://example.org/new?item={{id}}"'
        )
    return Config(root, libraries, figures, report)
