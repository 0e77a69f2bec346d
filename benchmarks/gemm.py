"""Compiled linear layers with their epilogue as one template, against the library's call and a kernel for the rest.

    python benchmarks/gemm.py [--threads N] [--seconds S]

Both are compiled by mybackend, in alternation in one process; processor time, so that a busy machine matters less. What
mybackend/compile/gemm.py prefers without measuring follows from these figures.
Writes benchmarks/results/gemm_<driver>.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from timing import arguments_for_one_device, compare, geometric_mean, row, write

import mybackend

# (rows, depth, columns); what each size stands for
SIZES = {
    (1, 512, 512): "one token",
    (4, 512, 512): "four tokens",
    (8, 512, 512): "eight tokens",
    (16, 16, 16): "tiny",
    (64, 32, 10): "classifier",
    (64, 64, 64): "small",
    (512, 64, 256): "narrow model",
    (2048, 128, 512): "GPT, up",
    (2048, 512, 128): "GPT, down",
    (512, 512, 512): "square",
    (2048, 128, 8): "few columns",
}


# Two functions, since Dynamo keeps what it has compiled by a function's code.
def templated(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.linear(x, w, b))


def called(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.linear(x, w, b))


def compiled(layer: Callable[..., Any], operands: list[torch.Tensor]) -> Callable[[], Any]:
    """The layer compiled with the template, or with the call, whatever the heuristic says."""
    from mybackend.compile import gemm

    function = torch.compile(layer, fullgraph=True, dynamic=False, options={"fx_graph_cache": False})
    original, gemm.prefers_template = gemm.prefers_template, lambda *_: layer is templated
    try:
        function(*operands)
    finally:
        gemm.prefers_template = original
    return lambda: function(*operands)


def main() -> None:
    arguments = arguments_for_one_device(__doc__)
    rows = []
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for (m, k, n), name in SIZES.items():
            torch._dynamo.reset()
            operands = [torch.randn(size, dtype=dtype, device=arguments.device) for size in ((m, k), (n, k), (n,))]
            calls = [compiled(layer, operands) for layer in (templated, called)]
            where, seconds = arguments.device, arguments.seconds
            result = compare(*calls, where, where, seconds, rounds=9, clock=arguments.clock)
            rows.append(row(name, result, size=[m, k, n], dtype=str(dtype).removeprefix("torch.")))
    table = Table("case", "rows x depth x columns", "dtype", "template (us)", "call (us)", "call / template")
    for item in rows:
        table.add_row(
            item["case"], " x ".join(map(str, item["size"])), item["dtype"], f"{item['ours'] * 1e6:.1f}",
            f"{item['peer'] * 1e6:.1f}", f"{item['ratio']:.2f}",
        )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    console.print(f"geometric mean: {geometric_mean([item['ratio'] for item in rows]):.2f}")
    name = f"gemm_{mybackend.driver()}"
    console.print(f"written: {write(name, arguments.device, rows, threads=arguments.threads, clock=arguments.clock)}")


if __name__ == "__main__":
    main()
