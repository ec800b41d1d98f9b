"""ONNX graphs, node by node: the encoder, the decoder, and the encoder with trust."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from pyloca.export._certificate import Certificate
from pyloca.export._numbers import as_dtype, facts_of
from pyloca.predict import LEAK, SOFTPLUS_LINEAR, TIE, Network, Predictor

__all__ = ["OnnxRunner", "to_onnx"]

Array = NDArray[np.float64]

OPSET, IR = 18, 9  # reductions take their axes as inputs; runtimes from 2023 on read it
KEY = "pyloca"  # of the metadata


def to_onnx(predictor: Predictor, part: str, dtype: str, certificate: Certificate | None = None) -> bytes:
    """Write one graph, with a free number of points.

    Parameters
    ----------
    predictor : Predictor
    part : {"encoder", "decoder", "trust"}
        measurements → coordinates, coordinates → measurements, or measurements → coordinates and trust.
    dtype : {"float64", "float32"}
    certificate : Certificate, optional
        Stored in the metadata, beside names, units and σ.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If a number does not fit into `dtype`.
    """
    graph = _Graph(dtype)
    D, d = predictor.n_features, predictor.n_components
    if part == "decoder":
        y = _network(graph, predictor.decoder, "coordinates", "decoder")
        graph.rename(_unscaled(graph, predictor, y), "measurements")
        ends = {"coordinates": d}, {"measurements": D}
    else:
        y = "measurements"
        if predictor.is_scaled:
            y = graph.add("Div", y, graph.constant(predictor.feature_scale, "feature_scale"))
        graph.rename(_network(graph, predictor.encoder, y, "encoder"), "coordinates")
        ends = {"measurements": D}, {"coordinates": d}
        if part == "trust":
            graph.rename(_trust(graph, predictor, y), "trust")
            ends[1]["trust"] = 0
    model = helper.make_model(
        graph.build(f"pyloca_{part}", *ends),
        producer_name="pyloca",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR,
    )
    facts = facts_of(predictor) | {
        "part": part,
        "dtype": dtype,
        "certificate": None if certificate is None else certificate.to_dict(),
    }
    helper.set_model_props(model, {KEY: json.dumps(facts)})
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, values: NDArray[Any] | float, what: str) -> str:
        """Add numbers, in the type of the graph."""
        return self._keep(as_dtype(values, self.dtype, what), what)

    def axes(self, *axes: int) -> str:
        return self._keep(np.array(axes, dtype=np.int64), "axes")

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = f"{operation.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, list(inputs), [name], name=name, **attributes))
        return name

    def rename(self, name: str, to: str) -> None:
        """Give an output a name of its own."""
        self._nodes.append(helper.make_node("Identity", [name], [to], name=to))

    def build(self, name: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> Any:
        """Return the graph; an end of width 0 has one number per point."""

        def values(side: Mapping[str, int]) -> list[Any]:
            return [
                helper.make_tensor_value_info(end, self.kind, ["points", width] if width else ["points"])
                for end, width in side.items()
            ]

        return helper.make_graph(self._nodes, name, values(inputs), values(outputs), initializer=self._constants)

    def _keep(self, array: NDArray[Any], what: str) -> str:
        name = f"{what.replace(' ', '_')}_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name


def _softplus(graph: _Graph, u: str) -> str:
    end = graph.constant(SOFTPLUS_LINEAR, "end")
    small = graph.add("Exp", graph.add("Min", u, end))
    bent = graph.add("Log", graph.add("Add", small, graph.constant(1.0, "one")))
    return graph.add("Where", graph.add("Greater", u, end), u, bent)


def _elu(graph: _Graph, u: str) -> str:
    zero = graph.constant(0.0, "zero")
    below = graph.add("Sub", graph.add("Exp", graph.add("Min", u, zero)), graph.constant(1.0, "one"))
    return graph.add("Where", graph.add("Greater", u, zero), u, below)


def _leaky_relu(graph: _Graph, u: str) -> str:
    below = graph.add("Mul", u, graph.constant(LEAK, "leak"))
    return graph.add("Where", graph.add("Greater", u, graph.constant(0.0, "zero")), u, below)


# ONNX has all of these as operations; but runtimes compute some in single precision only, and softplus without its end.
ACTIVATIONS: dict[str, Callable[[_Graph, str], str]] = {
    "tanh": lambda graph, u: graph.add("Tanh", u),
    "sigmoid": lambda graph, u: graph.add("Sigmoid", u),
    "softplus": _softplus,
    "elu": _elu,
    "leaky_relu": _leaky_relu,
}


def _network(graph: _Graph, net: Network, y: str, name: str) -> str:
    """Add a network, its scales multiplied into the weights: onnxruntime would fuse them as float32 factors."""
    into, out = net.in_scale, np.reshape(net.out_scale, (-1, 1))
    h = x = graph.add("Sub", y, graph.constant(net.in_shift, f"{name} in_shift"))
    for i, (weight, bias) in enumerate(net.layers):
        if i == 0:
            weight = weight / into
        if i + 1 == len(net.layers):
            weight, bias = out * weight, net.out_scale * bias
        parts = graph.constant(weight, f"{name} weight {i}"), graph.constant(bias, f"{name} bias {i}")
        h = graph.add("Gemm", h, *parts, transB=1)
        if i < len(net.bent):
            h = ACTIVATIONS[net.activation](graph, h)
    if net.skip is not None:
        skip = graph.constant((out * net.skip / into).T, f"{name} skip")
        h = graph.add("Add", h, graph.add("MatMul", x, skip))
    return graph.add("Add", h, graph.constant(net.out_shift, f"{name} out_shift"))


def _unscaled(graph: _Graph, predictor: Predictor, y: str) -> str:
    """Return measurements in the units of the fit; columns that it left out are constant."""
    if not predictor.is_scaled:
        return y
    left_out = np.isinf(predictor.feature_scale)
    y = graph.add("Mul", y, graph.constant(np.where(left_out, 0.0, predictor.feature_scale), "decoded"))
    return graph.add("Add", y, graph.constant(predictor.feature_shift, "decoded_shift")) if left_out.any() else y


def _trust(graph: _Graph, predictor: Predictor, y: str) -> str:
    """Return the rank of the strangeness among those of held-out points; `y` is in units of the feature scale."""

    def length(step: str, axis: int) -> str:
        return graph.add("Sqrt", graph.add("ReduceSumSquare", step, graph.axes(axis), keepdims=0))

    error = length(graph.add("Sub", _network(graph, predictor.decoder, "coordinates", "decoder"), y), 1)
    steps = graph.add("Unsqueeze", "coordinates", graph.axes(1))  # (n, 1, d)
    steps = graph.add("Sub", steps, graph.constant(predictor.training, "training"))  # (n, N, d)
    gap = graph.add("ReduceMin", length(steps, 2), graph.axes(1), keepdims=0)
    units = graph.constant(predictor.usual[0], "round_trip scale"), graph.constant(predictor.usual[1], "gap scale")
    strangeness = graph.add("Max", graph.add("Div", error, units[0]), graph.add("Div", gap, units[1]))
    strangeness = graph.add("Mul", strangeness, graph.constant(1 - TIE, "tie"))
    strangeness = graph.add("Unsqueeze", strangeness, graph.axes(1))  # (n, 1)
    strange = graph.add("GreaterOrEqual", graph.constant(predictor.scores, "scores"), strangeness)
    n = graph.add("ReduceSum", graph.add("Cast", strange, to=graph.kind), graph.axes(1), keepdims=0)
    more = graph.add("Add", n, graph.constant(1.0, "one"))
    return graph.add("Div", more, graph.constant(1.0 + len(predictor.scores), "count"))


class OnnxRunner:
    """The graphs, run by onnxruntime, or by the reference implementation of onnx where that is not installed."""

    def __init__(self, graphs: Mapping[str, bytes]) -> None:
        self.name, start = _runtime()
        self._sessions = {part: start(content) for part, content in graphs.items()}
        first = onnx.load_from_string(graphs["encoder"]).graph.input[0].type.tensor_type.elem_type
        self._dtype = helper.tensor_dtype_to_np_dtype(first)

    def encode(self, Y: Array) -> Array:
        """Run the encoder."""
        return self._run("encoder", Y)[0]

    def decode(self, Z: Array) -> Array:
        """Run the decoder."""
        return self._run("decoder", Z)[0]

    def jacobian(self, Y: Array) -> None:
        """Return None: a graph has no derivatives."""

    def trust(self, Y: Array) -> Array:
        """Run the encoder with trust."""
        return self._run("trust", Y)[1]

    def _run(self, part: str, points: Array) -> list[Array]:
        name = "coordinates" if part == "decoder" else "measurements"
        return [np.asarray(out, dtype=np.float64) for out in self._sessions[part](name, points.astype(self._dtype))]


def _runtime() -> tuple[str, Callable[[bytes], Callable[[str, NDArray[Any]], list[Any]]]]:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        from onnx.reference import ReferenceEvaluator

        def start_reference(content: bytes) -> Callable[[str, NDArray[Any]], list[Any]]:
            evaluator = ReferenceEvaluator(content)
            return lambda name, points: list(evaluator.run(None, {name: points}))

        return f"onnx {onnx.__version__}'s reference implementation", start_reference

    def start(content: bytes) -> Callable[[str, NDArray[Any]], list[Any]]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        return lambda name, points: list(session.run(None, {name: points}))

    return f"onnxruntime {onnxruntime.__version__}", start
