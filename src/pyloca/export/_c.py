"""One C99 header: encode, decode, Jacobian and trust, without dependencies and without malloc."""

from __future__ import annotations

import re
import textwrap
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.export._certificate import Certificate
from pyloca.export._numbers import as_dtype, facts_of
from pyloca.predict import LEAK, SOFTPLUS_LINEAR, TIE, Network, Predictor

__all__ = ["CTemplate", "c_prefix", "to_c"]

WIDTH = 118

# Value and slope at u; {f} is the suffix of functions and constants in single precision.
ACTIVATIONS = {
    "tanh": ("tanh{f}(u)", "1 - h[i] * h[i]"),
    "sigmoid": ("0.5{f} + 0.5{f} * tanh{f}(0.5{f} * u)", "h[i] * (1 - h[i])"),
    "softplus": (
        f"u > {SOFTPLUS_LINEAR}{{f}} ? u : log1p{{f}}(exp{{f}}(u))",
        f"u > {SOFTPLUS_LINEAR}{{f}} ? 1 : 0.5{{f}} + 0.5{{f}} * tanh{{f}}(0.5{{f}} * u)",
    ),
    "elu": ("u > 0 ? u : expm1{f}(u)", "u > 0 ? 1 : exp{f}(u)"),
    "leaky_relu": (f"u > 0 ? u : {LEAK}{{f}} * u", f"u > 0 ? 1 : {LEAK}{{f}}"),
}
ACTIVATE = """\
/* Layers of {name}: h becomes its value; slope, unless it is null, its derivative. */
static inline void {p}_{name}_(int n, {p}_real *h, {p}_real *slope) {{
  int i;
  for (i = 0; i < n; i++) {{
    const {p}_real u = h[i];
    h[i] = {value};
    if (slope) slope[i] = {slope};
  }}
}}
"""


class CTemplate(Template):
    """Text with ``@name`` to be filled in: C has many dollars' worth of other signs."""

    delimiter = "@"


def c_prefix(stem: str) -> str:
    """Make an identifier of a file's name.

    Parameters
    ----------
    stem : str

    Returns
    -------
    str

    Examples
    --------
    >>> c_prefix("wifi-2nd floor"), c_prefix("2nd"), c_prefix("été")
    ('wifi_2nd_floor', 'model_2nd', 't')
    """
    name = re.sub(r"[^0-9A-Za-z]+", "_", stem).strip("_")
    return name if name[:1].isalpha() else f"model_{name}".rstrip("_")


def to_c(predictor: Predictor, prefix: str, dtype: str, certificate: Certificate | None = None) -> str:
    """Write the header.

    Parameters
    ----------
    predictor : Predictor
    prefix : str
        What all names begin with, as `c_prefix` makes it.
    dtype : {"float64", "float32"}
    certificate : Certificate, optional
        What the comment at its head says of its parity with PyTorch.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If a number does not fit into `dtype`.
    """
    out = _Header(predictor, prefix, dtype)
    text = CTemplate((files("pyloca.export") / "templates" / "model.h").read_text(encoding="utf-8"))
    return text.substitute(out.parts(), about=_about(predictor, out, certificate))


class _Header:
    """The parts of the template that depend on the model."""

    def __init__(self, predictor: Predictor, prefix: str, dtype: str) -> None:
        self.model, self.p, self.dtype = predictor, prefix, dtype
        self.f = "f" if dtype == "float32" else ""
        self.arrays: dict[str, str] = {}
        self.constants = 0  # numbers in arrays

    def parts(self) -> dict[str, Any]:
        model, p, P = self.model, self.p, self.p.upper()
        encoder, decoder = model.encoder, model.decoder
        scale, scaled, unscaled, row = model.feature_scale, "y[i]", "y[i]", "row[j]"
        if model.is_scaled:
            units = self.array("feature_scale", scale)
            scaled, row = f"y[i] / {units}[i]", f"row[j] / {units}[j]"
            unscaled = f"y[i] * {units}[i]"
            if np.isinf(scale).any():
                used = self.array("decoded_scale", np.where(np.isinf(scale), 0.0, scale))
                unscaled = f"y[i] * {used}[i] + {self.array('decoded_shift', model.feature_shift)}[i]"
        in_shift = self.index("encoder_in_shift", encoder.in_shift)
        in_scale = self.index("encoder_in_scale", encoder.in_scale)
        out_scale = self.index("encoder_out_scale", encoder.out_scale)
        bodies = {
            "encoder_body": self.body("encoder", encoder, "z", standardized=True),
            "decoder_body": self.body("decoder", decoder, "y", standardized=False),
            "slopes_body": self.slopes(encoder),
            "jacobian_body": self.jacobian(encoder),
        }
        self.array("training", model.training)
        self.array("scores", model.scores)
        names = sorted({net.activation for net in (encoder, decoder) if net.bent})
        return bodies | {
            "p": p,
            "P": P,
            "guard": f"PYLOCA_{P}_H",
            "real": "float" if self.f else "double",
            "sqrt": f"sqrt{self.f}",
            "features": model.n_features,
            "coordinates": model.n_components,
            "activations": "\n".join(self.activation(name) for name in names),
            "scaled": scaled,
            "unscaled": unscaled,
            "encoder_in_shift": in_shift,
            "encoder_in_scale": in_scale,
            "row": f"{row} * {out_scale} / {in_scale.replace('[i]', '[j]')}",
            "tie": self.literal(1 - TIE),
            "n_training": len(model.training),
            "n_scores": len(model.scores),
            "round_trip": self.literal(as_dtype(model.usual[0], self.dtype, "the scale of round trips")),
            "gap": self.literal(as_dtype(model.usual[1], self.dtype, "the scale of gaps")),
            "arrays": "\n".join(self.arrays.values()),
        }

    def stack(self) -> int:
        """Count the numbers that functions hold on the stack, at most."""
        hidden = {
            net: [len(bias) for _, bias in getattr(self.model, net).layers[:-1]] or [0]
            for net in ("encoder", "decoder")
        }
        jacobian = sum(hidden["encoder"]) + 6 * max(hidden["encoder"])
        return 2 * self.model.n_features + self.model.n_components + max(jacobian, 2 * max(hidden["decoder"]))

    def literal(self, value: Any) -> str:
        """Write a number such that it is read back exactly."""
        if np.isinf(value):
            return "INFINITY" if self.f else "HUGE_VAL"
        return str(np.float32(value)) + "f" if self.f else repr(float(value))

    def array(self, name: str, values: NDArray[Any]) -> str:
        numbers = as_dtype(values, self.dtype, name).ravel()
        text = textwrap.fill(", ".join(self.literal(value) for value in numbers), WIDTH, break_on_hyphens=False)
        full = f"{self.p}_{name}_"
        if full not in self.arrays:
            self.arrays[full] = f"static const {self.p}_real {full}[{len(numbers)}] = {{\n{text}}};\n"
            self.constants += len(numbers)
        return full

    def index(self, name: str, values: NDArray[Any]) -> str:
        """Write one number, or the i-th of an array."""
        if values.ndim == 0:
            return self.literal(as_dtype(values, self.dtype, name))
        return f"{self.array(name, values)}[i]"

    def activation(self, name: str) -> str:
        value, slope = (part.format(f=self.f) for part in ACTIVATIONS[name])
        return ACTIVATE.format(name=name, p=self.p, value=value, slope=slope)

    def body(self, name: str, net: Network, target: str, *, standardized: bool) -> str:
        """Write the network that maps x, or z before it is standardized, to `target`."""
        p, lines = self.p, ["int i;"]
        if not standardized:
            lines = [f"{p}_real x[{net.n_in}];", "int i;"]
        hidden = [len(bias) for _, bias in net.layers[:-1]]
        lines += [f"{p}_real {side}[{max(hidden[k::2])}];" for k, side in enumerate("ab") if hidden[k::2]]
        if not standardized:
            shift, scale = self.index(f"{name}_in_shift", net.in_shift), self.index(f"{name}_in_scale", net.in_scale)
            lines.append(f"for (i = 0; i < {net.n_in}; i++) x[i] = (z[i] - {shift}) / {scale};")
        source = "x"
        for k, (weight, bias) in enumerate(net.layers):
            out = target if k + 1 == len(net.layers) else "ab"[k % 2]
            weights, biases = self.array(f"{name}_weight_{k}", weight), self.array(f"{name}_bias_{k}", bias)
            rows, columns = weight.shape
            lines.append(f"{p}_affine_({rows}, {columns}, {weights}, {biases}, {source}, {out});")
            if k < len(net.bent):
                lines.append(f"{p}_{net.activation}_({rows}, {out}, 0);")
            source = out
        if net.skip is not None:
            skip = self.array(f"{name}_skip", net.skip)
            lines.append(f"{p}_linear_({net.n_out}, {net.n_in}, {skip}, x, {target});")
        shift, scale = self.index(f"{name}_out_shift", net.out_shift), self.index(f"{name}_out_scale", net.out_scale)
        lines.append(f"for (i = 0; i < {net.n_out}; i++) {target}[i] = {shift} + {scale} * {target}[i];")
        return _indented(lines, 2)

    def slopes(self, net: Network) -> str:
        """Write the encoder once more, with the slopes of its hidden layers kept."""
        p, widths = self.p, [len(bias) for _, bias in net.bent]
        lines = [f"{p}_real slope_{k}[{width}];" for k, width in enumerate(widths)]
        lines += [f"{p}_real {side}[{max(widths[k::2])}];" for k, side in enumerate("ab") if widths[k::2]]
        widest = max((len(bias) for _, bias in net.layers[:-1]), default=0)
        lines += [f"{p}_real {name}[{widest}];" for name in ("g", "back")[: len(net.layers) - 1]]
        lines += [f"{p}_standardize_(y, scaled, x);", f"{p}_encode_(x, z);"]
        source = "x"
        for k, (weight, _) in enumerate(net.bent):
            out, (rows, columns) = "ab"[k % 2], weight.shape
            names = f"{p}_encoder_weight_{k}_, {p}_encoder_bias_{k}_"
            lines.append(f"{p}_affine_({rows}, {columns}, {names}, {source}, {out});")
            lines.append(f"{p}_{net.activation}_({rows}, {out}, slope_{k});")
            source = out
        return _indented(lines, 2)

    def jacobian(self, net: Network) -> str:
        """Write one row of derivatives: the row of the last weight, pulled back layer by layer."""
        p, last = self.p, len(net.layers) - 1
        width = net.layers[-1][0].shape[1]
        start = "row" if last == 0 else "g"
        lines = [f"for (j = 0; j < {width}; j++) {start}[j] = {p}_encoder_weight_{last}_[i * {width} + j];"]
        source = start
        for k in range(last - 1, -1, -1):
            rows, columns = net.layers[k][0].shape
            if k < len(net.bent):
                lines.append(f"for (j = 0; j < {rows}; j++) {source}[j] *= slope_{k}[j];")
            out = "row" if k == 0 else ("back" if source == "g" else "g")
            lines.append(f"{p}_back_({rows}, {columns}, {p}_encoder_weight_{k}_, {source}, {out});")
            source = out
        if net.skip is not None:
            lines.append(
                f"for (j = 0; j < {p.upper()}_FEATURES; j++) row[j] += {p}_encoder_skip_[i * {p.upper()}_FEATURES + j];"
            )
        return _indented(lines, 4)


def _indented(lines: list[str], by: int) -> str:
    return "\n".join(" " * by + line for line in lines)


def _about(predictor: Predictor, header: _Header, certificate: Certificate | None) -> str:
    """Write the comment at the head: what it is, sensors with units, sizes, and how far it is from PyTorch."""
    facts, p = facts_of(predictor), header.p
    names = predictor.feature_names or [f"feature {i}" for i in range(predictor.n_features)]
    units = predictor.units or ("",) * predictor.n_features
    size = 4 if header.f else 8
    lines = [
        f"Coordinates of measurements, written by pyloca {facts['pyloca']}. C99 and C++; needs only math.h (-lm).",
        "",
        f"  {p}_encode, {p}_encode_with_jacobian, {p}_encode_with_trust, {p}_decode; numbers are {p}_real.",
        "  Functions keep nothing between calls and allocate nothing: threads and interrupts may share them.",
        f"  Constants take {header.constants * size:,} bytes, those of functions that are not called nothing; the "
        f"stack at most about {header.stack() * size:,}.",
        "  Do not compile with -ffast-math: NaN would not be found.",
        "",
        f"{facts['features']} features, in this order:",
        *(
            f"  {i}: {_safe(name)}" + (f" ({_safe(unit)})" if unit else "")
            for i, (name, unit) in enumerate(zip(names, units, strict=True))
        ),
        f"{facts['coordinates']} coordinates, {facts['intrinsic_dim']} directions per burst, "
        f"burst_std {facts['burst_std']!r}" + ("" if predictor.burst_std_known else " (estimated: up to one factor)"),
        *(f"WARNING: {_safe(finding)}" for finding in predictor.findings),
        "",
        *([] if certificate is None else [_safe(line) for line in certificate.lines()]),
    ]
    wrapped = [part for line in lines for part in textwrap.wrap(line, WIDTH - 4, subsequent_indent="    ") or [""]]
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in wrapped), " */"])


def _safe(text: str) -> str:
    """Write text for a comment: nothing in it ends the comment, hides what follows or is a trigraph."""
    shown = "".join(sign if sign.isprintable() else f"<U+{ord(sign):04X}>" for sign in text)
    return re.sub(r"\?(?=\?)", "? ", shown.replace("*/", "* /").replace("/*", "/ *"))
