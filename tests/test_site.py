"""The site: every public name is in the reference, code blocks run, links are checked; `make site` does the rest."""

import importlib
import pkgutil
import re
from pathlib import Path

import house
import links
import look
import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Pages whose code blocks run here, in one namespace per page; test_docs.py and others run those of the remaining pages.
PAGES = ["index.md", "start.md", "choosing.md", *sorted(f"data/{path.name}" for path in (DOCS / "data").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def reference():
    """The extension of the site that writes the reference; it needs Sphinx, of which only its lists are used here."""
    source = (DOCS / "_ext" / "api_pages.py").read_text(encoding="utf-8")
    found = {}
    for name in ("USED", "INSIDE"):
        exec(re.search(rf"^{name} = \[.*?^\]", source, flags=re.DOTALL | re.MULTILINE)[0], found)
    return found["USED"] + found["INSIDE"]


def public_modules():
    """All modules that a user can import, except the shell and the single experiments, which EXPERIMENTS lists."""
    for found in pkgutil.walk_packages([str(house.SOURCE)], "pyloca."):
        if "._" not in found.name and not found.name.startswith(("pyloca.cli", "pyloca.paper.experiments.")):
            yield found.name


def test_every_public_name_is_in_the_reference():
    listed = reference()
    assert len(listed) == len(set(listed))
    shown = {id(getattr(importlib.import_module(name), each)) for name in listed for each in _names(name)}
    for name in public_modules():
        if name not in listed:  # its names must be those of a module that is listed
            missing = [each for each in _names(name) if id(getattr(importlib.import_module(name), each)) not in shown]
            assert not missing, f"{name}: {missing}; enter the module in docs/_ext/api_pages.py"


def _names(module):
    return importlib.import_module(module).__all__


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks or page == "data/index.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_links_between_pages_resolve():
    """Of the pages in subfolders; test_docs.py looks at the others, and tools/links.py at the built site."""
    for page in sorted((DOCS / "data").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


def test_the_gallery_has_eleven_short_examples():
    assert len(EXAMPLES) == 11
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 80, example.name
        assert "**Physics.**" in text and "scores" in text
        compile(text, example.name, "exec")


def test_broken_links_and_remote_files_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#there"></a><a href="#top"></a><a href="https://example.org"></a>'
        '<a href="missing.html"></a><a href="b.html#nowhere"></a><script src="https://cdn.example/x.js"></script>'
        '<link rel="canonical" href="https://example.org/a.html"><img src="no.png">',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>', encoding="utf-8")
    assert sorted(links.faults(tmp_path)) == [
        "a.html would fetch https://cdn.example/x.js",
        "a.html: b.html#nowhere has no such anchor",
        "a.html: missing.html is not there",
        "a.html: no.png is not there",
    ]
    assert links.faults(tmp_path / "empty") == [f"{tmp_path / 'empty'} has no pages"]


@pytest.mark.slow
def test_pages_are_looked_at_in_a_browser(tmp_path):
    chromium = look.open_browser(str(tmp_path / "profile"))
    if chromium is None:
        pytest.skip("no chromium and chromedriver: THE LOOK AT THE SITE WAS NOT TESTED")
    head = '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
    pages = {
        "good.html": "<article><p>short</p></article>",
        "loud.html": "<script>console.error('broken')</script>",
        "asks.html": '<img src="https://nowhere.invalid/a.png">',
        "cut.html": '<article style="overflow: hidden"><p style="width: 900px">too wide for a phone</p></article>',
        "wide.html": '<div style="width: 900px">too wide for a phone</div>',
        "search.html": '<div id="search-results"></div>',
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(f"<!doctype html>{head}{text}", encoding="utf-8")
    try:
        found = {name: look.faults(chromium, tmp_path, [name]) for name in pages}
        assert not look.finds(chromium, tmp_path, "word", seconds=1)
    finally:
        chromium.quit()
    assert found.pop("good.html") == found.pop("search.html") == []
    assert len(found["loud.html"]) == 4 and all("broken" in text for text in found["loud.html"])
    assert any("asks for https://nowhere.invalid/a.png" in text for text in found["asks.html"])
    assert found["cut.html"] == [
        f"cut.html, {scheme}, phone: beyond the edge: 'too wide for a phone'" for scheme in ("light", "dark")
    ]
    assert found["wide.html"] == [f"wide.html, {scheme}, phone: scrolls sideways" for scheme in ("light", "dark")]
