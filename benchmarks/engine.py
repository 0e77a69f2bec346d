"""The autograd engine against PyTorch's own: backward on both, in alternation in one process.

    python benchmarks/engine.py [--case NAME ...] [--rounds N] [--no-device] [--clock wall|cpu]

With one OpenMP thread. A row is the median time of one backward and the median of stock / ours. Only backward is timed;
where it frees the graph, a new one is built before each. Writes benchmarks/results/engine.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from timing import CLOCKS, Comparison, row, synchronize, write

import mybackend.autograd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

Backward = Callable[[], Any]
# What each case should reach, stock time / ours.
TARGETS = {
    "chain of 10,000 empty nodes": 6,
    "10,000 empty nodes, 8 wide": 5,
    "chain of 2,000 small ops": 1.6,
    "recurrent cell, 200 steps": 1.6,
    "MLP, 50 layers of 32": 1.6,
    "transformer, d=64, 4 layers": 1.6,
    "3 nodes": 1.0,
    "grad() of 3 inputs, near": 1.5,
    "grad() of 3 inputs, far": 1.5,
    "2 branches of 40 matmuls, 2 workers": 1.6,
}


def empty_nodes() -> Any:
    from torch.utils.cpp_extension import load

    folder = Path(tempfile.gettempdir()) / "mybackend_empty_nodes"
    folder.mkdir(exist_ok=True)
    return load(
        "mybackend_empty_nodes",
        str(ROOT / "benchmarks/empty_nodes.cpp"),
        extra_cflags=["-O2"],
        build_directory=str(folder),
    )


def run(build: Callable[[], torch.Tensor]) -> Backward:
    """A backward that frees the graph, built anew each time."""
    return build().backward


def chain(length: int) -> torch.Tensor:
    x = torch.ones(8, requires_grad=True)
    y = x
    for _ in range(length // 2):
        y = (y * 1.01).sin()
    return y.sum()


def recurrent(steps: int) -> torch.Tensor:
    torch.manual_seed(0)
    w, u = (torch.randn(16, 16, requires_grad=True) for _ in range(2))
    h, x = torch.zeros(4, 16), torch.randn(4, 16)
    for _ in range(steps):
        h = torch.tanh(h @ w + x @ u)
    return h.sum()


_models: dict[str, torch.nn.Module] = {}


def model(name: str, make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    if name not in _models:
        torch.manual_seed(0)
        _models[name] = make()
    _models[name].zero_grad()
    return _models[name]


def mlp() -> torch.Tensor:
    layers = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(50)]
    return model("mlp", lambda: torch.nn.Sequential(*layers))(torch.ones(8, 32)).sum()


def transformer() -> torch.Tensor:
    def make() -> torch.nn.Module:
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    return model("transformer", make)(torch.ones(2, 8, 64)).sum()


def tiny() -> Backward:
    x = torch.ones(2, requires_grad=True)
    loss = (x * 2).sum()

    def backward() -> None:
        for _ in range(100):
            loss.backward(retain_graph=True)

    return backward


def grad_of(near: bool) -> Backward:
    x = torch.ones(4, requires_grad=True)
    points = [x]
    for _ in range(20_000):
        points.append(points[-1] * 1.0)
    wanted = points[-6:-3] if near else points[:3]
    loss = points[-1].sum()
    times = 200 if near else 1

    def backward() -> None:
        for _ in range(times):
            torch.autograd.grad(loss, wanted, retain_graph=True)

    return backward


def branches() -> Backward:
    """Two branches of 40 products of 512x512 each, whose CPU nodes ours may run on two threads."""
    torch.manual_seed(0)
    ends = []
    for _ in range(2):
        y = torch.randn(512, 512, requires_grad=True) / 512**0.5
        for _ in range(40):
            y = y @ (torch.randn(512, 512) / 512**0.5)
        ends.append(y.sum())
    loss = ends[0] + ends[1]

    def backward() -> None:
        with mybackend.autograd.use_cpu_workers(2):
            loss.backward(retain_graph=True)

    return backward


def cases() -> dict[str, Callable[[], Backward]]:
    nodes = empty_nodes()
    near, far = grad_of(True), grad_of(False)
    few, two = tiny(), branches()
    return {
        "chain of 10,000 empty nodes": lambda: run(lambda: nodes.chain(10_000)),
        "10,000 empty nodes, 8 wide": lambda: run(lambda: nodes.diamonds(10_000, 8)),
        "chain of 2,000 small ops": lambda: run(lambda: chain(2_000)),
        "recurrent cell, 200 steps": lambda: run(lambda: recurrent(200)),
        "MLP, 50 layers of 32": lambda: run(mlp),
        "transformer, d=64, 4 layers": lambda: run(transformer),
        "3 nodes": lambda: few,
        "grad() of 3 inputs, near": lambda: near,
        "grad() of 3 inputs, far": lambda: far,
        "2 branches of 40 matmuls, 2 workers": lambda: two,
    }


def timed(make: Callable[[], Backward], engine: str, device: str, clock: str) -> float:
    """Seconds of one backward on `engine`."""
    with mybackend.autograd.use_engine(engine):
        backward = make()
        synchronize(device)
        began = CLOCKS[clock]()
        backward()
        synchronize(device)
        return CLOCKS[clock]() - began


def compare(make: Callable[[], Backward], rounds: int, device: str, clock: str) -> Comparison:
    pairs = []
    for round_ in range(rounds + 2):
        engines = ["mybackend", "stock"] if round_ % 2 else ["stock", "mybackend"]
        seconds = {engine: timed(make, engine, device, clock) for engine in engines}
        if round_ >= 2:  # the first two warm up
            pairs.append((seconds["mybackend"], seconds["stock"]))
    return Comparison(
        statistics.median(ours for ours, _ in pairs),
        statistics.median(stock for _, stock in pairs),
        statistics.median(stock / ours for ours, stock in pairs),
    )


def training_step(device: str) -> Callable[[], Backward]:
    from gpt import GPT, Config

    torch.manual_seed(0)
    net = GPT(Config()).to(device)
    tokens = torch.randint(256, (16, Config().context + 1)).to(device)

    def make() -> Backward:
        net.zero_grad()
        return net.loss(tokens).backward

    return make


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--no-device", action="store_true", help="leave out the training step on mybackend")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: processor time, on a machine that is busy"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("case", "ours (ms)", "stock (ms)", "stock / ours", "target", title="backward", title_justify="left")
    rows = []
    chosen = [(name, make, "cpu", arguments.rounds) for name, make in cases().items()]
    if not arguments.no_device:
        chosen.append(("GPT on mybackend", training_step("mybackend"), "mybackend", min(arguments.rounds, 11)))
    for name, make, device, rounds in chosen:
        if arguments.case and not any(part in name for part in arguments.case):
            continue
        result = compare(make, rounds, device, arguments.clock)
        rows.append(row(name, result))
        table.add_row(
            name,
            f"{result.ours * 1e3:.3f}",
            f"{result.peer * 1e3:.3f}",
            f"{result.ratio:.2f}",
            str(TARGETS.get(name, "")),
        )
    Console().print(table)
    print(write("engine", "cpu", rows, threads=1, clock=arguments.clock))


if __name__ == "__main__":
    main()
