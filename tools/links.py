"""Links of a built site: ``python tools/links.py site``.

Exits with 1 when a page points at a file or an anchor that is not there, or would fetch anything from the network: the
site has to work from a folder, without a connection. Links that a reader may follow to other sites are not opened.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("link", "href"),
}
NOT_FETCHED = {"canonical", "next", "prev", "search", "index", "author"}  # relations of <link> that load nothing


class Page(HTMLParser):
    """Anchors, links and fetched addresses of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if "href" in found and tag == "a":
            self.links.append(found["href"])
        for name, value in found.items():
            if (tag, name) in FETCHED and not set(found.get("rel", "").split()) & NOT_FETCHED:
                self.fetched.append(value)


def faults(root: Path) -> list[str]:
    """What is wrong with the pages below a folder, in words."""
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]  # there: templates of themes
    pages = {path.resolve(): Page(path) for path in files}
    wrong = [] if pages else [f"{root} has no pages"]
    for path, page in pages.items():
        here = path.relative_to(root.resolve())
        for address in page.fetched:
            if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
                wrong.append(f"{here} would fetch {address}")
        for address in page.links + page.fetched:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or address.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{here}: {address} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{here}: {address} has no such anchor")
    return wrong


def main() -> int:
    root = Path(sys.argv[1])
    wrong = sorted(set(faults(root)))
    print(f"{len(list(root.rglob('*.html')))} pages, {len(wrong)} faults", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
