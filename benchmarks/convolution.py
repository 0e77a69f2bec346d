"""Compiled convolutions of 1 x 1 with their gradients as matrix products, against calls of the library's convolution.

The products are what this host prefers (templates or calls, see benchmarks/gemm.py), and the library's.

    python benchmarks/convolution.py [--threads N] [--seconds S]

Both are compiled by mybackend, in alternation in one process; processor time with one thread, so that a busy machine
matters less. Which are products by default: mybackend/compile/convolution.py.
Writes benchmarks/results/convolution_<driver>.json.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from timing import arguments_for_one_device, compare, row, write

import mybackend

# (batch, channels, side, filters, stride)
SIZES = [
    (8, 16, 16, 16, 1),
    (8, 16, 32, 32, 2),
    (8, 32, 16, 64, 1),
    (32, 16, 32, 32, 2),
    (8, 64, 16, 64, 1),
    (8, 64, 16, 128, 1),
    (8, 64, 32, 128, 2),
    (8, 128, 16, 128, 1),
    (8, 128, 28, 128, 1),
    (8, 64, 56, 64, 1),
]


# Functions of their own, since Dynamo keeps what it has compiled by a function's code.
def as_product(x: torch.Tensor, weight: torch.Tensor, stride: int) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight, stride=stride))


def as_library_product(x: torch.Tensor, weight: torch.Tensor, stride: int) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight, stride=stride))


def as_call(x: torch.Tensor, weight: torch.Tensor, stride: int) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight, stride=stride))


def compiled(
    layer: Callable[..., torch.Tensor], x: torch.Tensor, weight: torch.Tensor, stride: int
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The layer alone and with its gradients, as products or as calls whatever the heuristic says."""
    from mybackend.compile import convolution, gemm

    # As within a network whose convolutions make channels_last pay.
    options = {"fx_graph_cache": False, "force_layout_optimization": True}
    function = torch.compile(layer, fullgraph=True, dynamic=False, options=options)

    def forward() -> object:
        with torch.no_grad():
            return function(x, weight, stride)

    def step() -> object:
        result = function(x, weight, stride)
        return torch.autograd.grad(result, (x, weight), torch.ones_like(result))

    most = 0 if layer is as_call else 1 << 62
    prefers_template = gemm.prefers_template if layer is as_product else lambda *_: False
    with (
        mock.patch.object(gemm, "prefers_template", prefers_template),
        mock.patch.object(convolution, "SMALL_CONVOLUTION", most),
        mock.patch.object(convolution, "prefers", lambda *_: False),
    ):
        forward()
        step()
    return forward, step


def main() -> None:
    arguments = arguments_for_one_device(__doc__)
    table = Table("convolution", "multiplications", "what", "calls (us)", "calls / products", "... of the library")
    rows = []
    where, seconds, clock = arguments.device, arguments.seconds, arguments.clock
    for batch, channels, side, filters, stride in SIZES:
        torch._dynamo.reset()
        x = torch.randn(batch, channels, side, side, device=where).to(memory_format=torch.channels_last)
        weight = torch.randn(filters, channels, 1, 1, device=where, requires_grad=True)
        x.requires_grad_()
        count = batch * len(range(0, side, stride)) ** 2 * channels * filters
        name = f"{channels} -> {filters}, {batch} x {side} x {side} / {stride}"
        layers = (as_product, as_library_product, as_call)
        ways = zip(*(compiled(layer, x, weight, stride) for layer in layers), strict=True)
        for what, (preferred, library, call) in zip(("forward", "with gradients"), ways, strict=True):
            results = [compare(product, call, where, where, seconds, 9, clock) for product in (preferred, library)]
            for products, result in zip(("preferred", "library"), results, strict=True):
                rows.append(row(name, result, multiplications=count, what=what, products=products))
            ratios = (f"{result.ratio:.2f}" for result in results)
            table.add_row(name, f"{count:,}", what, f"{results[0].peer * 1e6:.0f}", *ratios)
    console = Console(width=120)
    console.print(table)
    name = f"convolution_{mybackend.driver()}"
    console.print(f"written: {write(name, arguments.device, rows, threads=arguments.threads, clock=clock)}")


if __name__ == "__main__":
    main()
