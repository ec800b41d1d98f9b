"""What is said of a release in several places is the same everywhere, and holds on a package index too."""

import re
import tomllib
from pathlib import Path

import jinja2
import yaml

import pyloca

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# What conda reads once it has filled in the template.
RECIPE = yaml.safe_load(jinja2.Template((ROOT / "recipe" / "meta.yaml").read_text()).render(PYTHON="python"))
CONDA_NAMES = {"torch": "pytorch"}


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]
    assert pyloca.__version__ == version == CITATION["version"]
    assert RECIPE["package"] == {"name": "pyloca", "version": version}


def test_the_newest_release_has_one_date():
    newest = re.search(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest[1] == CITATION["version"]
    assert newest[2] == str(CITATION["date-released"])


def test_the_citation_has_what_its_format_asks_for():
    assert {"cff-version", "message", "title", "authors"} <= set(CITATION)
    assert CITATION["cff-version"] == "1.2.0" and CITATION["license"] == PROJECT["project"]["license"]
    assert CITATION["preferred-citation"]["doi"] in (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")


def test_the_recipe_asks_for_what_the_package_asks_for():
    def spaced(wanted):
        name, bounds = re.fullmatch(r"([\w-]+)(.*)", wanted).groups()
        return f"{CONDA_NAMES.get(name, name)} {bounds}"

    project = PROJECT["project"]
    python = f"python {project['requires-python']}"
    assert RECIPE["requirements"]["run"] == [python, *map(spaced, project["dependencies"])]
    assert RECIPE["requirements"]["host"] == [python, "pip", *map(spaced, PROJECT["build-system"]["requires"])]
    assert RECIPE["build"]["entry_points"] == [f"{name} = {target}" for name, target in project["scripts"].items()]


def test_no_link_of_the_readme_is_relative_on_a_package_index():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith("https://")] == []
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures and all(target.startswith("https://raw.githubusercontent.com/") for target in pictures)
