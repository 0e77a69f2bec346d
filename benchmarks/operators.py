"""Operators on mybackend and on torch's CPU, in one process: time of a small call, throughput of a large one.

    python benchmarks/operators.py [--device mybackend] [--peer cpu] [--quick] [--only PATTERN] [--clock wall|cpu]

Writes benchmarks/results/operators_<driver>.json. Targets: small calls at most 1.2x of the peer's time; large ones at
least as fast in the geometric mean and none below 0.7x.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from timing import CLOCKS, compare, geometric_mean, row, write

import mybackend

Maker = Callable[[str, torch.dtype], Callable[[], Any]]


def unary(function: Callable[..., Any], *shape: int, **kwargs: Any) -> Maker:
    def make(device: str, dtype: torch.dtype) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.rand(shape).add_(0.1).to(dtype).to(device)
        return partial(function, x, **kwargs)

    return make


def binary(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Maker:
    def make(device: str, dtype: torch.dtype) -> Callable[[], Any]:
        torch.manual_seed(0)
        arguments = [torch.rand(shape).add_(0.1).to(dtype).to(device) for shape in shapes]
        return partial(function, *arguments)

    return make


def layer_norm(rows: int, width: int) -> Maker:
    def make(device: str, dtype: torch.dtype) -> Callable[[], Any]:
        torch.manual_seed(0)
        x, weight, bias = (torch.rand(s).to(dtype).to(device) for s in ((rows, width), (width,), (width,)))
        return partial(F.layer_norm, x, (width,), weight, bias)

    return make


def indexed(function: Callable[[torch.Tensor, torch.Tensor], Any], rows: int, width: int, picks: int) -> Maker:
    def make(device: str, dtype: torch.dtype) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.rand(rows, width).to(dtype).to(device)
        index = torch.randint(rows, (picks,)).to(device)
        return partial(function, x, index)

    return make


def transposed_copy(device: str, dtype: torch.dtype) -> Callable[[], Any]:
    x = torch.rand(2048, 2048).to(dtype).to(device)
    return lambda: x.t().contiguous()


def cast(device: str, dtype: torch.dtype) -> Callable[[], Any]:
    x = torch.rand(1 << 22).to(dtype).to(device)
    to = torch.float64 if dtype == torch.float32 else torch.float32
    return lambda: x.to(to)


M = 1 << 20
SMALL: dict[str, Callable[[int], Maker]] = {
    "add": lambda n: binary(torch.add, (n, n), (n, n)),
    "mul": lambda n: binary(torch.mul, (n, n), (n, n)),
    "sum": lambda n: unary(torch.sum, n, n),
    "mm": lambda n: binary(torch.mm, (n, n), (n, n)),
    "layer_norm": lambda n: layer_norm(n, n),
    "softmax": lambda n: unary(torch.softmax, n, n, dim=-1),
}
LARGE: dict[str, Maker] = {
    "add 4M": binary(torch.add, (4 * M,), (4 * M,)),
    "add 16M": binary(torch.add, (16 * M,), (16 * M,)),
    "mul 1M": binary(torch.mul, (M,), (M,)),
    "div 4M": binary(torch.div, (4 * M,), (4 * M,)),
    "add bias 8192x512": binary(torch.add, (8192, 512), (512,)),
    "mul scalar 4M": unary(torch.mul, 4 * M, other=2.5),
    "exp 4M": unary(torch.exp, 4 * M),
    "log 4M": unary(torch.log, 4 * M),
    "tanh 4M": unary(torch.tanh, 4 * M),
    "sigmoid 4M": unary(torch.sigmoid, 4 * M),
    "sqrt 4M": unary(torch.sqrt, 4 * M),
    "rsqrt 4M": unary(torch.rsqrt, 4 * M),
    "sin 4M": unary(torch.sin, 4 * M),
    "relu 4M": unary(torch.relu, 4 * M),
    "gelu 4M": unary(F.gelu, 4 * M),
    "gelu tanh 4M": unary(F.gelu, 4 * M, approximate="tanh"),
    "silu 4M": unary(F.silu, 4 * M),
    "pow 1M": binary(torch.pow, (M,), (M,)),
    "where 4M": binary(lambda a, b: torch.where(a > b, a, b), (4 * M,), (4 * M,)),
    "clamp 4M": unary(torch.clamp, 4 * M, min=0.3, max=0.6),
    "maximum 4M": binary(torch.maximum, (4 * M,), (4 * M,)),
    "addcmul 4M": binary(torch.addcmul, (4 * M,), (4 * M,), (4 * M,)),
    "sum 4M": unary(torch.sum, 4 * M),
    "sum dim -1 4096x1024": unary(torch.sum, 4096, 1024, dim=-1),
    "sum dim 0 4096x1024": unary(torch.sum, 4096, 1024, dim=0),
    "mean 4M": unary(torch.mean, 4 * M),
    "amax dim -1 4096x1024": unary(torch.amax, 4096, 1024, dim=-1),
    "argmax dim -1 4096x1024": unary(torch.argmax, 4096, 1024, dim=-1),
    "var dim -1 4096x1024": unary(torch.var, 4096, 1024, dim=-1),
    "cumsum dim -1 4096x1024": unary(torch.cumsum, 4096, 1024, dim=-1),
    "softmax 4096x1024": unary(torch.softmax, 4096, 1024, dim=-1),
    "log_softmax 4096x1024": unary(torch.log_softmax, 4096, 1024, dim=-1),
    "layer_norm 8192x512": layer_norm(8192, 512),
    "cat 4 x 1M": binary(lambda *t: torch.cat(t), *[(1024, 1024)] * 4),
    "index_select 32768 of 4096x256": indexed(lambda x, i: x.index_select(0, i), 4096, 256, 32768),
    "gather 4096x1024": unary(lambda x: x.gather(1, torch.zeros_like(x, dtype=torch.int64)), 4096, 1024),
    "topk 64 of 1024x4096": unary(torch.topk, 1024, 4096, k=64),
    "sort 1024x1024": unary(torch.sort, 1024, 1024),
    "transposed copy 2048x2048": transposed_copy,
    "cast 4M": cast,
    "mm 512": binary(torch.mm, (512, 512), (512, 512)),
    "max_pool2d 16x32x64x64": unary(F.max_pool2d, 16, 32, 64, 64, kernel_size=2),
}


def measure(
    cases: dict[str, Maker],
    dtypes: tuple[torch.dtype, ...],
    device: str,
    peer: str,
    threads: int,
    rounds: int,
    clock: str = "wall",
) -> list[dict[str, Any]]:
    torch.set_num_threads(threads)
    rows = []
    for name, make in cases.items():
        for dtype in dtypes:
            kind = str(dtype).removeprefix("torch.")
            result = compare(make(device, dtype), make(peer, dtype), device, peer, rounds=rounds, clock=clock)
            rows.append(row(name, result, dtype=kind, threads=threads))
    return rows


def show(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    table = Table(
        "case", "dtype", "threads", "ours (us)", "peer (us)", "peer / ours", title=title, title_justify="left"
    )
    for r in rows:
        style = "red" if r["ratio"] < 0.7 else None
        table.add_row(
            r["case"],
            r["dtype"],
            str(r["threads"]),
            f"{r['ours'] * 1e6:.2f}",
            f"{r['peer'] * 1e6:.2f}",
            f"{r['ratio']:.2f}",
            style=style,
        )
    console.print(table)
    ratios = [row["ratio"] for row in rows]
    console.print(f"{title}: geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--quick", action="store_true", help="float32, one thread count, fewer rounds")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: time of the processor, one thread")
    arguments = parser.parse_args()
    rounds = 7 if arguments.quick else 15
    counts = (1,) if arguments.clock == "cpu" else (torch.get_num_threads(),) if arguments.quick else (1, 2)
    dtypes = (torch.float32,) if arguments.quick else (torch.float32, torch.bfloat16, torch.float64)
    small = {f"{name} {n}x{n}": make(n) for name, make in SMALL.items() for n in (8, 64) if arguments.only in name}
    large = {name: make for name, make in LARGE.items() if arguments.only in name}
    console = Console(width=120)
    rows: list[dict[str, Any]] = []
    for title, cases, kinds in (("small", small, (torch.float32,)), ("large", large, dtypes)):
        part = [
            r
            for n in counts
            for r in measure(cases, kinds, arguments.device, arguments.peer, n, rounds, arguments.clock)
        ]
        if part:
            show(console, title, part)
            rows += [{"group": title, **r} for r in part]
    if not arguments.only:
        name = f"operators_{mybackend.driver()}" + ("_cpu_time" if arguments.clock == "cpu" else "")
        console.print(f"written: {write(name, arguments.device, rows, peer=arguments.peer, clock=arguments.clock)}")


if __name__ == "__main__":
    main()
