"""Look at a built site in Chromium: ``python tools/look.py site``.

Opens some of its pages from the folder, light and dark, as wide as on a desk and on a phone, and searches for a word.
Exits with 1 when a page writes an error to the console, asks the network for anything, scrolls sideways, or has text
beyond the edge. Without Chromium and its driver it says so and exits with 0.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGES = [
    "index.html",
    "start.html",
    "choosing.html",
    "trust.html",
    "results.html",
    "mathematics.html",
    "contributing.html",
    "gallery_table.html",
    "data/table.html",
    "gallery/index.html",
    "gallery/plot_radio.html",
    "api/index.html",
    "api/pyloca.metrics.html",
    "api/generated/pyloca.LOCA.html",
]
SIZES = {"desk": (1400, 900), "phone": (390, 844)}
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--disable-quic"]
WORD = "whitening"

# Text that ends beyond the edge of the window, unless it is part of something that is meant to scroll.
BEYOND = """
const wide = '.highlight, .pst-scrollable-table-container, div.math';
const beyond = (e) => { const box = e.getBoundingClientRect(); return box.width && box.right > innerWidth + 1; };
return [...document.querySelectorAll('article :is(p, dt, dd, li, td, h1, h2)')]
  .filter((e) => beyond(e) && !e.closest(wide)).map((e) => e.textContent.trim().slice(0, 60)).slice(0, 3);
"""


def open_browser(profile: str) -> Any:
    """A Chromium that keeps its logs; None without one on the machine."""
    browser, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not (browser and driver):
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


def complaints(chromium: Any) -> list[str]:
    """Errors on the console and requests to the network since the last look."""
    wrong = [entry["message"] for entry in chromium.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]
    for entry in chromium.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            address = message["params"]["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:", "chrome:")):  # the last: its own empty page
                wrong.append(f"asks for {address}")
    return wrong


def faults(chromium: Any, root: Path, pages: list[str]) -> list[str]:
    """What is wrong with the pages, in words."""
    wrong = []
    for page in pages:
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            for size, (width, height) in SIZES.items():
                screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
                chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
                chromium.get((root / page).resolve().as_uri())
                found = complaints(chromium)
                if chromium.execute_script("return document.documentElement.scrollWidth") > width:
                    found.append("scrolls sideways")
                found += [f"beyond the edge: {text!r}" for text in chromium.execute_script(BEYOND)]
                if chromium.execute_script("return document.documentElement.dataset.theme") not in (scheme, None):
                    found.append("does not follow the scheme of the system")
                wrong += [f"{page}, {scheme}, {size}: {text}" for text in found]
    return wrong


def finds(chromium: Any, root: Path, word: str, seconds: float = 60) -> bool:
    """Whether the search page, opened from the folder, lists pages with a word."""
    from selenium.common.exceptions import TimeoutException
    from selenium.webdriver.support.wait import WebDriverWait

    chromium.get(f"{(root / 'search.html').resolve().as_uri()}?q={word}")
    listed = "return document.querySelectorAll('#search-results li a').length"
    try:
        return bool(WebDriverWait(chromium, seconds).until(lambda page: page.execute_script(listed)))
    except TimeoutException:
        return False


def main() -> int:
    root = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        chromium = open_browser(profile)
        if chromium is None:
            print("no chromium and chromedriver: the pages were not looked at")
            return 0
        try:
            wrong = faults(chromium, root, PAGES)
            if not finds(chromium, root, WORD):
                wrong.append(f"the search finds no page with the word {WORD!r}")
        finally:
            chromium.quit()
    print(f"{len(PAGES)} pages looked at, {len(wrong)} faults", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
