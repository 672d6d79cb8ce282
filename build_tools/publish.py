"""publish: the whole site in one command. Builds beside `site/` and swaps, so that a failed build changes nothing."""

import logging
import os
import shutil
import sys
from pathlib import Path

from build_tools.config import Config
from build_tools.tex import TexError


def publish(config: Config, *, use_cache: bool = True) -> Path | None:
    """Builds `site/` strictly; the page to open, or None where MkDocs refused and said why on the terminal."""
    _quiet()
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr)
    fresh, target = config.root / "build" / "site.new", config.root / "site"
    settings = load_config(str(config.root / "mkdocs.yml"), strict=True, site_dir=str(fresh))
    settings.plugins["build_tools"].config["cache"] = use_cache
    settings.plugins.on_startup(command="build", dirty=False)
    try:
        build(settings)
    except (Abort, TexError) as error:
        # Formulas in docs/ and in docstrings are first looked at here; those of the content were checked before.
        print(error, file=sys.stderr)
        return None
    finally:
        settings.plugins.on_shutdown()
    swap(fresh, target)
    return target / "index.html"


def serve(config: Config) -> None:
    """Shows the site on this machine and rebuilds it when content, docs or a library change."""
    _quiet()
    from mkdocs.commands.serve import serve as mkdocs_serve

    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s", stream=sys.stderr)
    mkdocs_serve(str(config.root / "mkdocs.yml"), livereload=True)


def _quiet() -> None:
    """Theme and plugins advertise their successors on every run unless told not to."""
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    os.environ.setdefault("DISABLE_MKDOCS_2_WARNING", "true")


def swap(fresh: Path, target: Path) -> None:
    """Puts `fresh` in the place of `target`."""
    old = target.with_name(target.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)
