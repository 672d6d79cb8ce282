"""Takes the picture in the README from the built site: make site, then python scripts/screenshot.py"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from browser import find

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "site" / "exercises" / "level-2.html"
PICTURE = ROOT / "docs" / "assets" / "screenshot.png"


def main() -> int:
    if not PAGE.exists():
        print("The site is not built; run: make site")
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 1290}, reduced_motion="reduce")
        page.goto(PAGE.as_uri() + "#ex-2-2-solution")
        page.wait_for_timeout(500)
        page.evaluate("document.getElementById('ex-2-2').scrollIntoView()")
        page.add_style_tag(content=".md-top { visibility: hidden }")  # a button that comes and goes
        page.wait_for_timeout(500)
        page.screenshot(path=PICTURE)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
