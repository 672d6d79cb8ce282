"""Every kind of page, at two widths, in two schemes, with scripts on and off: it fits, is quiet, asks no other host."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from browser.conftest import SCHEMES, WIDTHS, open_all

# Without preloading: axe would fetch the style sheets again, which a page opened from disk may not.
AXE = {"resultTypes": ["violations"], "preload": False}
PAGES = {
    "home": "index.html",
    "exercise": "exercises/level-2.html",
    "true or false": "question-bank/true-or-false.html",
    "edge cases": "question-bank/edge-cases.html",
    "recall": "question-bank/recall.html",
    "notation": "learn/notation.html",
    "ppo": "learn/ppo.html",
    "glossary": "learn/glossary.html",
    "errata": "errata.html",
    "index": "items.html",
    "topic": "topics/clipping.html",
    "laboratory": "library/lab.html",
    "differences": "library/differences.html",
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_with_all_opened_fits_is_quiet_and_accessible(show, site, name, width, scheme):
    shown = show(site / PAGES[name], width=width, scheme=scheme)
    open_all(shown.page)
    shown.page.wait_for_timeout(100)

    assert shown.complaints == []
    assert shown.overflow() <= 0
    assert shown.page.locator("h1").count() == 1
    assert raw_tex(shown.page) == []
    # Contrast, the slowest rule, rests on the scheme and not on the width.
    rules = {"color-contrast": {"enabled": width == WIDTHS[-1]}}
    results = Axe().run(shown.page, options={**AXE, "rules": rules})
    assert results.violations_count == 0, _report(results)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_is_quiet_without_scripts(show, site, name, width):
    shown = show(site / PAGES[name], width=width, scripts=False)

    assert shown.complaints == []
    assert shown.overflow() <= 0
    assert shown.page.locator("h1").is_visible()


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_with_all_opened(show, site, width):
    # The page for addresses that do not exist names its files from the root of a server.
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    shown = show(pages[0], width=width)
    assert len(pages) > len(PAGES)
    for path in pages:
        shown.page.goto(path.as_uri())
        open_all(shown.page)
        assert shown.overflow() <= 0, path
        assert raw_tex(shown.page) == [], path
    assert shown.complaints == []


def raw_tex(page) -> list[str]:
    """Formulas that were left as they were typed, outside code."""
    text = page.evaluate(
        """() => {
            const copy = document.querySelector("article, body").cloneNode(true);
            copy.querySelectorAll("pre, code, annotation, script").forEach(each => each.remove());
            return copy.textContent;
        }"""
    )
    return re.findall(r"\$[^$\n]*\\\w[^$\n]*\$?", text)


def _report(results) -> str:
    return "\n".join(
        f"{each['id']}: {each['help']}\n"
        + "\n".join(f"    {json.dumps(node['target'])} {node['html'][:120]}" for node in each["nodes"])
        for each in results.response["violations"]
    )


# Each of the checks above can fail.

BAD = """<!doctype html><html lang="en"><title>bad</title><body style="width: 3000px"><h1>x</h1>
<article><p>The ratio $\\rho_t$ is raw.</p></article>
<img src="https://example.invalid/x.png"><script>console.error("broken")</script>
<button></button></body></html>"""


def test_a_page_that_is_too_wide_noisy_and_talkative_is_noticed(show, tmp_path):
    (tmp_path / "bad.html").write_text(BAD, encoding="utf-8")

    shown = show(tmp_path / "bad.html")
    shown.page.wait_for_timeout(100)

    assert shown.overflow() > 1000
    assert "broken" in shown.complaints
    assert raw_tex(shown.page) == [r"$\rho_t$"]
    assert any(complaint.startswith("asks https://example.invalid") for complaint in shown.complaints)
    assert {each["id"] for each in Axe().run(shown.page, options=AXE).response["violations"]} >= {
        "button-name",
        "image-alt",
    }
