"""How `make site` builds these pages: nothing is fetched from the network, and every warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "tools")]

import pyloca  # noqa: E402

project = "pyloca"
author = "The pyloca developers"
copyright = "the pyloca developers, MIT licence"
version = release = pyloca.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "gallery_scores",
    "api_pages",
    "house_figure",
    "landing_figure",
    "mathml",
    "number_cells",
]
exclude_patterns = ["_*", "**/GALLERY_HEADER.rst", "sg_execution_times.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
language = "en"

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

default_role = "py:obj"  # `name` in a docstring is a link where the name is known, and code elsewhere
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_xref_param_type = False
maximum_signature_line_length = 100  # beyond this, one parameter per line

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_\w+\.py$",
    "abort_on_example_error": True,
    "capture_repr": (),  # what an example prints is enough
    "image_scrapers": ("gallery_scores.scrape",),
    "reset_modules": ("matplotlib", "gallery_scores.begin"),
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,  # its page loads scripts from the network; gallery_table.md has the seconds
    "within_subsection_order": "ExampleTitleSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = f"pyloca {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = ""
html_context = {"default_mode": "auto"}  # without it the theme writes an error to the console of new visitors
html_theme_options = {
    "github_url": "https://github.com/pyloca/pyloca",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "start": []}  # pages without pages below them
