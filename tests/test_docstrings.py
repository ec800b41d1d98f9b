"""Public names are documented as numpydoc asks: every parameter by name, what is returned, and an example."""

import importlib
import inspect
import re

import pytest

from pyloca.errors import PylocaError

PACKAGES = (
    "alignment",
    "baselines",
    "bursts",
    "checks",
    "datasets",
    "diagnostics",
    "errors",
    "estimator",
    "export",
    "findings",
    "geometry",
    "inspection",
    "matching",
    "metrics",
    "modelfile",
    "networks",
    "objectives",
    "paper.demo",
    "paper.experiments",
    "paper.reproduce",
    "plots",
    "predict",
    "report",
    "selection",
    "solvers",
    "thresholds",
)
PUBLIC = [
    pytest.param(member, id=f"{package}.{name}")
    for package in PACKAGES
    for module in [importlib.import_module(f"pyloca.{package}")]
    for name in module.__all__
    for member in [getattr(module, name)]
    if getattr(member, "__module__", "").startswith(f"pyloca.{package}")
    and (inspect.isroutine(member) or inspect.isclass(member))
]


def sections(text):
    """Split a docstring into its sections, by title."""
    parts = re.split(r"\n(\w[\w ]*)\n-{3,}\n", "\n" + inspect.cleandoc(text))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def missing(function, text):
    """List what the docstring of a function lacks."""
    found = sections(text)
    listed = set()
    for line in found.get("Parameters", "").splitlines():
        if line and not line.startswith(" "):
            listed |= {name.strip().lstrip("*") for name in line.split(":")[0].split(",")}
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    lacking = [f"parameter {name}" for name in names if name not in listed]
    returned = str(signature.return_annotation)
    if returned != "None" and not {"Returns", "Yields"} & set(found):
        lacking.append("Returns")
    return lacking


def has_example(member):
    """Whether it has an example, or points at the function that returns it, which has one: ``See `fuse`.``"""
    text = sections(member.__doc__).get("Examples", "")
    if pointer := re.fullmatch(r"See `(\w+)`\.", text.strip()):
        package = importlib.import_module(re.sub(r"\._\w+$", "", member.__module__))
        text = sections(getattr(package, pointer[1]).__doc__).get("Examples", "")
    return ">>>" in text


def _is_ours(function):
    return (getattr(function, "__module__", None) or "").startswith("pyloca.")


@pytest.mark.parametrize("member", PUBLIC)
def test_public_names_are_documented(member):
    assert has_example(member), "no example, and no `See` with the name of a function that has one"
    if inspect.isroutine(member):
        lacking = missing(inspect.unwrap(member), member.__doc__)
        assert not lacking, lacking
        return
    for name, method in inspect.getmembers(member, inspect.isroutine):
        if not name.startswith("_") and _is_ours(method):
            lacking = missing(method, method.__doc__)
            assert not lacking, f"{name}: {lacking}"


@pytest.mark.parametrize("member", [each for each in PUBLIC if inspect.isclass(each.values[0])])
def test_public_classes_list_their_attributes_or_parameters(member):
    inherited = issubclass(member, PylocaError) and "__init__" not in vars(member)
    if (inherited or not _is_ours(inspect.getattr_static(member, "__init__"))) and not hasattr(
        member, "__dataclass_fields__"
    ):
        return  # it is built as its base class is, which documents that
    fields = getattr(member, "__dataclass_fields__", {})
    names = list(fields) or list(inspect.signature(member).parameters)
    found = sections(member.__doc__)
    text = found.get("Attributes", "") + found.get("Parameters", "")
    lacking = [name for name in names if not re.search(rf"\b{name}\b", text)]
    assert not lacking, lacking
