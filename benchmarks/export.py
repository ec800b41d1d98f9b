"""Exports against PyTorch on all data sets, the time of one point, and what importing `pyloca.predict` costs."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Row, run_rows
from benchmarks.shapes.decoder import spot_pictures
from benchmarks.startup import processor_seconds
from pyloca import LOCA, Bursts, TrustWarning, datasets
from pyloca.bursts import from_image
from pyloca.export import export
from pyloca.export._c import to_c
from pyloca.export._certificate import certify, training_points
from pyloca.export._compiled import CompiledHeader
from pyloca.modelfile import model_to_bytes
from pyloca.paper.experiments import flatten
from pyloca.predict import Network, Predictor, load, predictor_from_bytes

BAR = 1e-12  # largest difference in float64
COMPILERS = ("gcc", "clang")
KINDS = ("onnx", "numpy", *COMPILERS)
APART = ("jacobian", "trust")  # which are told apart
SEEDS = (0, 1, 2)
MICROSECONDS, CALLS, C_CALLS = 200.0, 1000, 20_000
IMPORT, IMPORTS = 3.0, 15
MEGABYTES, MANY = 150.0, 10_000_000


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("export", "exports", ROWS, seeds, only)


# -- the same numbers -------------------------------------------------------------------------------------------------


def _named(name: str, **options: Any) -> Callable[[int], tuple[Bursts, int, float]]:
    def make(seed: int) -> tuple[Bursts, int, float]:
        data = getattr(datasets, name)(random_state=seed, **options)
        return data.bursts, data.n_components, data.burst_std

    return make


def _sheet(seed: int) -> tuple[Bursts, int, float]:
    photo = datasets.bent_sheet(random_state=seed)
    return from_image(photo.image, flatten.FULL.threshold), 2, photo.burst_std


def _camera(seed: int) -> tuple[Bursts, int, float]:
    """500 bursts of pictures of a spot, 45 × 45 pixels."""
    random = np.random.RandomState(seed)
    places = random.uniform(size=(500, 1, 2)) + 0.01 * random.standard_normal((500, 30, 2))
    return Bursts(spot_pictures(45, 0.12)(places)), 2, 0.01


def _fit(make: Callable[[int], tuple[Bursts, int, float]], seed: int) -> tuple[LOCA, Bursts]:
    bursts, d, burst_std = make(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(d, burst_std=burst_std, random_state=seed).fit(bursts), bursts


def _parity(make: Callable[[int], tuple[Bursts, int, float]], seed: int) -> dict[str, Any]:
    model, bursts = _fit(make, seed)
    predictor = predictor_from_bytes(model_to_bytes(model), "memory")
    facts: dict[str, Any] = {"widest layer": predictor.decoder.widest}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # of trust in float32, which is printed
        for dtype in ("float64", "float32"):
            certificates = {
                name: export(model, Path(folder, f"model{suffix}"), dtype=dtype, data=bursts)
                for name, suffix in (("onnx", ".onnx"), ("numpy", ".safetensors"))
            }
            text = to_c(predictor, "model", dtype)
            for compiler in COMPILERS:
                with CompiledHeader(text, predictor, "model", dtype, compiler) as program:
                    certificates[compiler] = certify(model, program, "c", dtype, bursts)
            facts[f"header, kB, {dtype}"] = len(text) / 1000
            for name, certificate in certificates.items():
                parts = {part: max(pair) for part, pair in certificate.differences.items()}
                facts |= {f"{name}, {dtype}, {part}": value for part, value in parts.items() if part in APART}
                facts[f"{name}, {dtype}"] = max(value for part, value in parts.items() if part not in APART)
    own = facts["jacobian of torch itself"] = _own_error(model, predictor, bursts)
    exact = [facts[f"{name}, float64"] for name in KINDS] + [facts[f"{name}, float64, trust"] for name in KINDS]
    jacobian = facts["jacobian"] = max(facts[f"{name}, float64, jacobian"] for name in KINDS if name != "onnx")
    return {"value": max(exact), "ok": max(exact) <= BAR and jacobian <= max(BAR, 2 * own)} | facts


def _own_error(model: LOCA, predictor: Predictor, bursts: Bursts) -> float:
    """Error of PyTorch's own Jacobian, against one in extended precision: no export can be nearer to it."""

    def wide(part: Any) -> Any:
        return part if part is None or isinstance(part, str) else np.asarray(part, dtype=np.longdouble)

    net = predictor.encoder
    layers = {name: [(wide(w), wide(b)) for w, b in getattr(net, name)] for name in ("bent", "flat")}
    exact = Network(**{name: wide(part) for name, part in net._asdict().items() if name not in layers}, **layers)
    Y, _, _ = training_points(model, bursts)
    scaled = wide(Y) / predictor.feature_scale
    expected = exact.jacobian(scaled) / predictor.feature_scale
    size = np.abs(expected).max(axis=(0, 1))
    error = np.abs(model.encode_with_jacobian(Y)[1] - expected) / np.where(size > 0, size, 1)
    return float(error.max())


# -- speed ------------------------------------------------------------------------------------------------------------


def _one_point(task: str, seed: int) -> dict[str, Any]:
    """Processor microseconds of one point, in a service that was started once."""
    model, bursts = _fit(_named("wifi"), seed)
    with tempfile.TemporaryDirectory() as folder:
        predictor = load(model.save(Path(folder, "wifi.safetensors")))
    point = bursts[0][0] if task != "decode" else model.embedding_[0]
    call = getattr(predictor, task)
    call(point)
    start = time.process_time()
    for _ in range(CALLS):
        call(point)
    return {"value": 1e6 * (time.process_time() - start) / CALLS}


def _one_point_in_c(task: str, seed: int) -> dict[str, Any]:
    """The same in C with gcc -O2, in both precisions; the program's reading and writing is in it."""
    model, bursts = _fit(_named("wifi"), seed)
    predictor = predictor_from_bytes(model_to_bytes(model), "memory")
    points = np.resize(bursts[0][0], (C_CALLS, predictor.n_features))
    facts = {}
    for dtype in ("float64", "float32"):
        with CompiledHeader(to_c(predictor, "model", dtype), predictor, "model", dtype, "gcc") as program:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            getattr(program, task)(points)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        facts[dtype] = 1e6 * seconds / C_CALLS
    return {"value": facts["float64"]} | facts


def _import(_seed: int) -> dict[str, Any]:
    """Processor time of the import over that of NumPy; turn by turn, the first turn fills caches."""
    names = ("numpy", "pyloca.predict")
    turns = [{name: processor_seconds("-c", f"import {name}") for name in names} for _ in range(IMPORTS + 1)][1:]
    seconds = {name: statistics.median(turn[name] for turn in turns) for name in names}
    return {"value": seconds["pyloca.predict"] / seconds["numpy"]} | seconds


def _memory(seed: int) -> dict[str, Any]:
    """Memory beside input and output, at its peak."""
    model, _ = _fit(_named("mushroom", n_bursts=300, n_points=50), seed)
    predictor = predictor_from_bytes(model_to_bytes(model), "memory")
    points = np.resize(predictor.decode(predictor.training), (MANY, 2))
    tracemalloc.start()
    found = predictor.encode(points)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"value": (peak - found.nbytes) / 1e6}


DATA: dict[str, Callable[[int], tuple[Bursts, int, float]]] = {
    "mushroom": _named("mushroom"),
    "frame": _named("frame"),
    "sphere": _named("sphere"),
    "wifi": _named("wifi"),
    "muller_brown": _named("muller_brown"),
    "double_well": _named("double_well"),
    "thermal_surface": _named("thermal_surface"),
    "bent_sheet": _sheet,
    "camera, D = 2,025": _camera,
}
ROWS: tuple[Row, ...] = (
    *(
        Row(name, BAR, "of coordinates, measurements, trust", partial(_parity, make), 1.0, SEEDS)
        for name, make in DATA.items()
    ),
    *(
        Row(f"one point, {task}", MICROSECONDS, "processor µs", partial(_one_point, task), 1.0, (0,))
        for task in ("encode", "decode", "encode_with_jacobian", "trust")
    ),
    *(
        Row(f"one point in C, {task}", MICROSECONDS, "processor µs", partial(_one_point_in_c, task), 1.0, (0,))
        for task in ("encode", "jacobian", "trust")
    ),
    Row("import pyloca.predict", IMPORT, "× import numpy", _import, 1.0, (0,)),
    Row("10⁷ points, encode", MEGABYTES, "MB beside input and output", _memory, 1.0, (0,)),
)
