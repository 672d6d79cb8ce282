"""Finds a Chromium for the browser tests, or installs one. Prints nothing if one is there.

`find()` is what the tests call: the Chromium or Chrome on the PATH, else Playwright's own.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def find() -> str | None:
    """The path of a browser, or None."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None


def install() -> None:
    """Playwright's own Chromium; where its download is closed and this is root on Debian, Debian's."""
    if subprocess.call([sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"]) == 0:
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        subprocess.check_call(["apt-get", "update", "-qq"])
        subprocess.check_call(["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"])


def main() -> int:
    if find():
        return 0
    print("No Chromium is here; installing one for the browser tests ...", flush=True)
    install()
    if find():
        return 0
    print(
        "No Chromium could be installed. Install Chromium or Chrome, so that it is on the PATH, and run this again."
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
