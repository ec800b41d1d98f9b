"""The tables of docs/export.md."""

from __future__ import annotations

from benchmarks.docs._results import load, number

__all__ = ["export_tables"]


def export_tables() -> str:
    """Exports against PyTorch, and what serving costs."""
    rows = load("export")["rows"]
    ran = {name: row for name, row in rows.items() if "widest layer" in row["runs"][0]}
    lines = [
        "`python -m benchmarks export`, worst of seeds "
        + f"{', '.join(map(str, next(iter(ran.values()))['seed_list']))}. Differences from PyTorch, of coordinates and "
        "measurements; trust is the same in float64. The bar in float64 is 1e-12. Jacobians have columns of their own: "
        "the worst of NumPy, gcc and clang, and the error of PyTorch's own Jacobian against one in extended precision. "
        "Where the encoder is nearly singular, as in a few places of `frame`, both are above the bar.",
        "",
        "| data | ONNX | NumPy | C, gcc | C, clang | Jacobians | PyTorch's own error "
        "| float32: ONNX | NumPy | C | trust in C | header, kB |",
        "|---" * 12 + "|",
    ]
    exact = ("onnx", "numpy", "gcc", "clang")
    keys = [*(f"{name}, float64" for name in exact), "jacobian", "jacobian of torch itself"]
    keys += [*(f"{name}, float32" for name in exact[:3]), "gcc, float32, trust"]
    for name, row in ran.items():
        assert all(run[f"{kind}, float64, trust"] == 0 for run in row["runs"] for kind in exact), name
        cells = [number(max(run[key] for run in row["runs"])) for key in keys]
        size = max(run["header, kB, float64"] for run in row["runs"])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {size:.0f} |")
    lines += [
        "",
        "| serving (one point of `wifi`: `pyloca.predict`, or C in float64) | measured | bar |",
        "|---|---|---|",
    ]
    for name, row in rows.items():
        if name not in ran:
            lines.append(f"| {name} | {row['worst']:.3g} {row['what']} | {row['bar']:g} |")
    return "\n".join(lines)
