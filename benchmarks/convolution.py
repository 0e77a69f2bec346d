"""Compiled convolutions of 1 x 1 with their gradients as matrix products, against the library's calls.

    python benchmarks/convolution.py [--threads N] [--seconds S]

Both are compiled by mybackend, in alternation in one process; processor time with one thread, so that a busy machine
matters less. Which are products by default: mybackend/compile/convolution.py.
Writes benchmarks/results/convolution_<driver>.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from unittest import mock

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from timing import compare, row, write

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
]


# Two functions, since Dynamo keeps what it has compiled by a function's code.
def as_product(x: torch.Tensor, weight: torch.Tensor, stride: int) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight, stride=stride))


def as_call(x: torch.Tensor, weight: torch.Tensor, stride: int) -> torch.Tensor:
    return F.relu(F.conv2d(x, weight, stride=stride))


def compiled(
    layer: Callable[..., torch.Tensor], x: torch.Tensor, weight: torch.Tensor, stride: int
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The layer alone and with its gradients, as products or as calls whatever the heuristic says."""
    from mybackend.compile import convolution

    # As within a network whose convolutions make channels_last pay.
    options = {"fx_graph_cache": False, "force_layout_optimization": True}
    function = torch.compile(layer, fullgraph=True, dynamic=False, options=options)

    def forward() -> object:
        with torch.no_grad():
            return function(x, weight, stride)

    def step() -> object:
        result = function(x, weight, stride)
        return torch.autograd.grad(result, (x, weight), torch.ones_like(result))

    most = 1 << 62 if layer is as_product else 0
    with (
        mock.patch.object(convolution, "SMALL_CONVOLUTION", most),
        mock.patch.object(convolution, "prefers", lambda *_: False),
    ):
        forward()
        step()
    return forward, step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.02, help="of each round")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    clock = "cpu" if arguments.threads == 1 else "wall"
    table = Table("convolution", "multiplications", "what", "products (us)", "calls (us)", "calls / products")
    rows = []
    for batch, channels, side, filters, stride in SIZES:
        torch._dynamo.reset()
        where = arguments.device
        x = torch.randn(batch, channels, side, side, device=where).to(memory_format=torch.channels_last)
        weight = torch.randn(filters, channels, 1, 1, device=where, requires_grad=True)
        x.requires_grad_()
        places = batch * len(range(0, side, stride)) ** 2
        name = f"{channels} -> {filters}, {batch} x {side} x {side}, stride {stride}"
        pairs = zip(*(compiled(layer, x, weight, stride) for layer in (as_product, as_call)), strict=True)
        for what, calls in zip(("forward", "with gradients"), pairs, strict=True):
            result = compare(*calls, where, where, arguments.seconds, rounds=9, clock=clock)
            rows.append(row(name, result, multiplications=places * channels * filters, what=what))
            table.add_row(
                name, f"{places * channels * filters:,}", what, f"{result.ours * 1e6:.0f}", f"{result.peer * 1e6:.0f}",
                f"{result.ratio:.2f}",
            )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    name = f"convolution_{mybackend.driver()}"
    console.print(f"written: {write(name, arguments.device, rows, threads=arguments.threads, clock=clock)}")


if __name__ == "__main__":
    main()
