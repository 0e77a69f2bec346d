"""Checks the dependency rule of docs/architecture.md by reading #include and import lines.

device <- kernels <- aten        device <- runtime <- aten, engine        engine/core: std only
bindings see everything; only they (and the engine's Python entry) see pybind or torch's Python side
device and kernels see no torch header but the header-only number types
mybackend/meta does not touch _C; nothing imports mybackend.compile when mybackend is imported
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A layer -> layers it may include; a file belongs to the layer with the longest matching prefix.
LAYERS = {
    "csrc/device": {"csrc/device"},
    "csrc/kernels": {"csrc/device", "csrc/kernels"},
    "csrc/runtime": {"csrc/device", "csrc/runtime"},
    "csrc/aten": {"csrc/device", "csrc/kernels", "csrc/runtime", "csrc/aten", "generated"},
    "csrc/engine/core": {"csrc/engine/core"},
    "csrc/engine": {"csrc/device", "csrc/runtime", "csrc/engine", "csrc/engine/core"},
    "csrc/bindings": {"csrc/device", "csrc/runtime", "csrc/aten", "csrc/engine", "csrc/bindings"},
}
TORCH = re.compile(r"^(ATen|c10|torch|caffe2)/")
PYTHON_SIDE = re.compile(r"^(pybind11/|Python\.h|torch/csrc/(?!autograd/|profiler/)|torch/(extension|python)\.h)")
NUMBER_TYPES = re.compile(r"^(c10/util/(Half|BFloat16|complex|Float8_\w+)\.h|torch/headeronly/)")
NO_TORCH = {"csrc/device", "csrc/kernels", "csrc/engine/core"}
SEES_PYTHON = re.compile(r"^csrc/(bindings/|engine/python_)")


def layer_of(path: str) -> str | None:
    found = [layer for layer in [*LAYERS, "generated"] if path.startswith(layer + "/")]
    return max(found, key=len, default=None)


def problems_of_source(path: str, text: str) -> Iterator[str]:
    layer = layer_of(path)
    if layer is None:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line):
            if why := _forbidden(path, layer, match.group(1)):
                yield f"{path}:{number}: {why}"
        elif "__CUDACC__" in line and layer != "csrc/device" and not line.lstrip().startswith("//"):
            yield f"{path}:{number}: only csrc/device may ask which compiler it is in"


def _forbidden(path: str, layer: str, header: str) -> str | None:
    target = layer_of(header)
    if target is not None and target not in LAYERS[layer]:
        return f"{layer} may not include {header} of {target}"
    numbers = layer != "csrc/engine/core" and NUMBER_TYPES.match(header)
    if layer in NO_TORCH and TORCH.match(header) and not numbers:
        return f"{layer} may not include {header}: no torch headers but the header-only number types"
    if PYTHON_SIDE.match(header) and not SEES_PYTHON.match(path):
        return f"only csrc/bindings and the engine's Python entry may include {header}"
    return None


def problems_of_module(path: str, text: str) -> Iterator[str]:
    tree = ast.parse(text)
    inside = {id(node) for scope in ast.walk(tree) if isinstance(scope, ast.FunctionDef) for node in ast.walk(scope)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            lazy = id(node) in inside
            if path.startswith("mybackend/meta/") and name.startswith("mybackend._C"):
                yield f"{path}:{node.lineno}: mybackend/meta may not use _C"
            elif not lazy and not path.startswith("mybackend/compile/") and name.startswith("mybackend.compile"):
                yield f"{path}:{node.lineno}: mybackend.compile is loaded on the first compile only"
            elif (
                not lazy and not path.startswith("mybackend/compile/") and re.match(r"torch\._(dynamo|inductor)", name)
            ):
                yield f"{path}:{node.lineno}: {name} may not be imported with mybackend"


def main() -> int:
    problems: list[str] = []
    for file in sorted((ROOT / "csrc").rglob("*")):
        if file.suffix in (".h", ".cpp", ".cu", ".cuh"):
            problems += problems_of_source(str(file.relative_to(ROOT)), file.read_text())
    for file in sorted((ROOT / "mybackend").rglob("*.py")):
        problems += problems_of_module(str(file.relative_to(ROOT)), file.read_text())
    print("\n".join(problems) or "layers: the dependency rule holds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
