"""A built site, a browser, and pages that remember what went wrong while they were shown."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from conftest import ROOT

# What the site is made of; some plots on it are those of the benchmarks.
COPIED = ("content", "docs", "ppo_core", "lab", "build_tools", "benchmarks", "mkdocs.yml", "pyproject.toml")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The site, built by the command a user runs, in a copy so that nobody's site/ is touched."""
    project = tmp_path_factory.mktemp("project")
    for name in COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, project / name)
    command = [sys.executable, "-m", "build_tools", "site"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return project / "site"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    spec = importlib.util.spec_from_file_location("find_browser", ROOT / "scripts" / "browser.py")
    finder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(finder)
    path = finder.find()
    if path is None:
        pytest.fail("no Chromium is here; run: python scripts/browser.py")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Shown:
    """A page in the browser, and what it complained about or asked of other hosts."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Shown]]:
    """Opens an address: show(path, width=..., scheme=..., scripts=...)."""
    contexts = []

    def open_(
        address: str | Path, *, width: int = 1280, scheme: str = "light", scripts: bool = True
    ) -> Shown:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        contexts.append(context)
        shown = Shown(context.new_page())

        def complain(message: str) -> None:
            shown.complaints.append(message)

        shown.page.on("console", lambda m: complain(m.text) if m.type in ("error", "warning") else None)
        shown.page.on("pageerror", lambda error: complain(str(error)))
        local = ("file:", "data:", "blob:")
        shown.page.on("request", lambda r: None if r.url.startswith(local) else complain(f"asks {r.url}"))
        shown.page.goto(address if isinstance(address, str) else address.as_uri())
        return shown

    yield open_
    for context in contexts:
        context.close()


def open_all(page: Page) -> None:
    """Opens every block that a reader can open."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
