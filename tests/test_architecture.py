"""The house: who may import whom, what is public, and that importing does nothing else."""

import ast
import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
import textwrap

import house
import pytest

import pyloca
from helpers import HANG
from pyloca import errors

SOURCE = house.SOURCE


def test_every_module_has_a_floor():
    assert {house.top(path) for path in house.modules()} <= set(house.LEVEL)


def test_imports_point_down_and_only_through_front_doors():
    assert house.faults(house.graph()) == []


def test_a_wrong_import_would_be_seen():
    """Upward, inside a function, for type checkers, through the facade, or of a private module."""
    tree = ast.parse(
        "import pyloca.estimator\nfrom pyloca import LOCA, datasets\ndef f():\n    from pyloca.cli import x\n"
        "if TYPE_CHECKING:\n    from pyloca.bursts._csv import y\nfrom pyloca._atomic import z"
    )
    found = list(house.imports(tree, "geometry"))
    assert [(edge.imported, edge.private) for edge in found] == [
        ("estimator", False),
        ("pyloca", False),
        ("datasets", False),
        ("_atomic", False),
        ("cli", False),
        ("bursts", True),
    ]
    assert len(house.faults(found)) == 5


def test_the_house_is_printed_by_a_command():
    done = subprocess.run([sys.executable, house.__file__], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 against the rules" in done.stdout
    assert len([line for line in done.stdout.splitlines() if " estimator " in line]) == 1


@pytest.mark.parametrize("path", house.modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_unpickles(path):
    """No file that a user opens may run code: not pickle, nor what calls it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert not {"pickle", "joblib", "dill", "shelve", "marshal"} & {name.split(".")[0] for name in names}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
            called = ast.unparse(node.func)
            assert called != "torch.load"
            if called in {"np.load", "numpy.load"}:
                assert any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in node.keywords)


# -- import pyloca ----------------------------------------------------------------------------------------------


def run_fresh(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=HANG
    )


@pytest.mark.slow
def test_import_does_nothing_else():
    """No warning, word, log handler, seed, thread, environment variable or plotting library; not even the CLI."""
    done = run_fresh(
        """
        import logging, os, random, signal, sys, threading, warnings
        import numpy as np
        import scipy.sparse.linalg, sklearn.base, sklearn.utils.validation, tqdm.auto, safetensors.numpy
        import torch

        def state():
            return {
                "handlers": list(logging.getLogger().handlers),
                "level": logging.getLogger().level,
                "seed": torch.initial_seed(),
                "torch": torch.random.get_rng_state().tolist(),
                "numpy": np.random.get_state()[1].tolist(),
                "random": random.getstate(),
                "threads": (torch.get_num_threads(), torch.get_num_interop_threads(), threading.active_count()),
                "dtype": torch.get_default_dtype(),
                "deterministic": torch.are_deterministic_algorithms_enabled(),
                "grad": torch.is_grad_enabled(),
                "print": np.get_printoptions(),
                "errors": np.geterr(),
                "environment": dict(os.environ),
                "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
                "filters": list(warnings.filters),
                "folder": os.getcwd(),
            }

        before, known = state(), set(sys.modules)
        import pyloca
        after = state()
        for name in before:
            assert before[name] == after[name], name
        loggers = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "pyloca"]
        assert all(not logging.getLogger(name).handlers for name in loggers)
        assert not torch.distributed.is_initialized()
        assert "matplotlib" not in sys.modules
        for name in ("pandas", "click", "pyloca.cli", "pyloca.plots", "pyloca.paper.demo", "pyloca.modelfile"):
            assert name not in set(sys.modules) - known, name  # scikit-learn may load pandas by itself
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- names ------------------------------------------------------------------------------------------------------

ALL_MODULES = sorted(
    [
        "pyloca",
        *(found.name for found in pkgutil.walk_packages([str(SOURCE)], "pyloca.") if "__main__" not in found.name),
    ]
)


def ruff_order(name):
    """Constants, then classes, then the rest: what ruff's RUF022 sorts by."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name


@pytest.mark.parametrize("name", ALL_MODULES)
def test_exported_members(name):
    module = importlib.import_module(name)
    exported = module.__all__
    assert exported == sorted(set(exported), key=ruff_order)
    for member in exported:
        assert hasattr(module, member), f"{name}.{member}"
    public = {member for member in exported if not member.startswith("_")}
    for member in public:
        value = getattr(module, member)
        if callable(value) and getattr(value, "__module__", "").startswith("pyloca"):
            assert (value.__doc__ or "").strip(), f"{name}.{member} has no docstring"


def test_the_package_shows_about_a_dozen_names():
    assert len(pyloca.__all__) <= 14
    shown = {name for name in dir(pyloca) if not name.startswith("_")}
    files = {path.stem for path in SOURCE.iterdir()} - {"__init__", "__pycache__"}
    assert set(pyloca.__all__) - {"__version__"} <= shown <= set(pyloca.__all__) | files


@pytest.mark.parametrize(
    "path",
    [
        "pyloca.LOCA",
        "pyloca.LOCA.fit",
        "pyloca.LOCA.fit_transform",
        "pyloca.LOCA.transform",
        "pyloca.LOCA.inverse_transform",
        "pyloca.LOCA.score",
        "pyloca.LOCA.save",
        "pyloca.LOCA.load",
        "pyloca.Bursts",
        "pyloca.BurstStatistics.from_covariances",
        "pyloca.BurstStatistics.from_jacobians",
        "pyloca.metrics.stress",
        "pyloca.metrics.calibrate",
        "pyloca.metrics.trustworthiness",
        "pyloca.metrics.place_errors",
        "pyloca.metrics.RigidMap.apply",
        "pyloca.selection.estimate_burst_std",
        "pyloca.selection.estimate_intrinsic_dim",
        "pyloca.datasets.mushroom",
        "pyloca.datasets.frame",
        "pyloca.datasets.sphere",
        "pyloca.datasets.wifi",
        "pyloca.datasets.bent_sheet",
        "pyloca.baselines.DiffusionMaps",
        "pyloca.baselines.AnisotropicDiffusionMaps",
        "pyloca.baselines.IntrinsicIsomap",
        "pyloca.baselines.RiemannianRelaxation",
        "pyloca.baselines.compare",
        "pyloca.alignment.align",
        "pyloca.report.Page",
        "pyloca.report.explorer",
        "pyloca.report.render",
        "pyloca.report.user_report",
        "pyloca.predict.load",
        "pyloca.export.export",
        "pyloca.errors.PylocaError",
        "pyloca.errors.BurstError",
        "pyloca.errors.ConvergenceError",
        "pyloca.errors.ModelFileError",
        "pyloca.errors.TrustWarning",
        "pyloca.cli.main",
    ],
)
def test_promised_names_exist(path):
    parts = path.split(".")
    value = importlib.import_module(".".join(parts[:2])) if parts[1].islower() else pyloca
    for part in parts[2 if parts[1].islower() else 1 :]:
        value = getattr(value, part)
    assert callable(value)


def test_the_version_is_the_distributions():
    assert pyloca.__version__ == importlib.metadata.version("pyloca")


def test_errors_are_what_callers_expect():
    assert issubclass(errors.BurstError, errors.PylocaError)
    assert issubclass(errors.BurstError, ValueError)
    assert issubclass(errors.ConvergenceError, errors.PylocaError)
    assert issubclass(errors.ConvergenceError, RuntimeError)
    assert issubclass(errors.ModelFileError, errors.PylocaError)
    assert issubclass(errors.ModelFileError, ValueError)
    assert issubclass(errors.TrustWarning, UserWarning)
    assert not issubclass(errors.TrustWarning, errors.PylocaError)


def test_types_are_shipped():
    assert (SOURCE / "py.typed").is_file()
