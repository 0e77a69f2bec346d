"""torch.compile on mybackend against Inductor on torch's CPU, in alternation in one process.

    python benchmarks/compile.py [--quick] [--only patterns|models|cold] [--case NAME]

patterns  fused pointwise and reduction code from real models, on 1 and 2 threads
models    training steps (forward, backward, AdamW), also against eager mybackend
cold      time of the first call of the GPT with empty caches, each in a process of its own
Writes benchmarks/results/compile_<driver>.json. Targets: geometric mean of the patterns >= 1.0, models >= 1.0 against
Inductor and >= 1.3 against eager mybackend (GPT), cold compilation <= Inductor's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from timing import compare, geometric_mean, row, write

import mybackend

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "test" / "models")]


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def adamw(p: Any, g: Any, m: Any, v: Any) -> Any:
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p * 0.9999 - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v


def rope(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


# name -> (function, arguments)
PATTERNS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "bias gelu": (lambda x, b: F.gelu(x + b), lambda: (randn(512, 1024), randn(1024))),
    "bias gelu tanh": (lambda x, b: F.gelu(x + b, approximate="tanh"), lambda: (randn(512, 1024), randn(1024))),
    "swiglu": (lambda x, y: F.silu(x) * y, lambda: (randn(512, 1024), randn(512, 1024))),
    "residual dropout add": (lambda x, r: F.dropout(x, 0.1) + r, lambda: (randn(512, 1024), randn(512, 1024))),
    "softmax": (lambda x: x.softmax(-1), lambda: (randn(1024, 512),)),
    "masked softmax": (
        lambda x, m: (x * 0.125).masked_fill(m, float("-inf")).softmax(-1),
        lambda: (randn(8, 128, 128), torch.ones(128, 128).triu(1).bool()),
    ),
    "log softmax": (lambda x: x.log_softmax(-1), lambda: (randn(256, 4096),)),
    "cross entropy": (lambda x, t: F.cross_entropy(x, t), lambda: (randn(256, 4096), torch.randint(0, 4096, (256,)))),
    "layer norm": (
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        lambda: (randn(512, 768), randn(768), randn(768)),
    ),
    "residual layer norm": (
        lambda x, r, w, b: F.layer_norm(x + r, (768,), w, b),
        lambda: (randn(512, 768), randn(512, 768), randn(768), randn(768)),
    ),
    "rms norm": (lambda x, w: F.rms_norm(x, (1024,), w), lambda: (randn(512, 1024), randn(1024))),
    "group norm": (lambda x: F.group_norm(x, 8), lambda: (randn(8, 64, 28, 28),)),
    "batch norm relu": (
        lambda x, w, b: F.relu(F.batch_norm(x, None, None, w, b, training=True)),
        lambda: (randn(16, 32, 28, 28), randn(32), randn(32)),
    ),
    "sum of columns": (lambda x: (x * 2).sum(0), lambda: (randn(2048, 768),)),
    "sum of everything": (lambda x: (x * x).sum(), lambda: (randn(1 << 20),)),
    "norm of rows": (lambda x: x / x.norm(dim=-1, keepdim=True), lambda: (randn(1024, 512),)),
    "rotary embedding": (rope, lambda: (randn(8, 128, 8, 64), randn(128, 1, 32), randn(128, 1, 32))),
    "adamw": (adamw, lambda: tuple(randn(1 << 19).abs() for _ in range(4))),
    "sigmoid cross entropy": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y),
        lambda: (randn(1 << 18), torch.rand(1 << 18)),
    ),
    "smooth l1": (lambda x, y: F.smooth_l1_loss(x, y), lambda: (randn(1 << 18), randn(1 << 18))),
    "transpose add": (lambda x, y: x.t() + y, lambda: (randn(768, 512), randn(512, 768))),
    "permute contiguous": (lambda x: (x.permute(0, 2, 1, 3) * 2).contiguous(), lambda: (randn(8, 128, 8, 64),)),
    "embedding add": (
        lambda w, p, i: F.embedding(i, w) + p,
        lambda: (randn(5000, 256), randn(128, 256), torch.randint(0, 5000, (16, 128))),
    ),
    "max pool": (lambda x: F.max_pool2d(x, 2), lambda: (randn(16, 32, 56, 56),)),
    "argmax": (lambda x: x.argmax(-1), lambda: (randn(512, 1024),)),
    "bf16 gelu": (lambda x, b: F.gelu(x + b), lambda: (randn(512, 1024).bfloat16(), randn(1024).bfloat16())),
    "bf16 layer norm": (
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        lambda: (randn(512, 768).bfloat16(), randn(768).bfloat16(), randn(768).bfloat16()),
    ),
}


def moved(arguments: tuple[Any, ...], device: str) -> tuple[Any, ...]:
    return tuple(a.to(device) for a in arguments)


def patterns(device: str, quick: bool, only: str | None) -> list[dict[str, Any]]:
    rows = []
    for threads in (1,) if quick else (1, 2):
        torch.set_num_threads(threads)
        torch._dynamo.reset()
        for name, (function, make) in PATTERNS.items():
            if only is not None and only != name:
                continue
            torch.manual_seed(0)
            theirs = make()
            ours = moved(theirs, device)
            mine, peer = torch.compile(function), torch.compile(function)
            result = compare(
                lambda mine=mine, ours=ours: mine(*ours), lambda peer=peer, theirs=theirs: peer(*theirs), device,
                seconds=0.01 if quick else 0.03, rounds=9 if quick else 15,
            )  # fmt: skip
            rows.append(row(name, result, group="patterns", threads=threads))
    return rows


def stepper(task: Any, device: str, compiled: bool) -> Callable[[], None]:
    torch.manual_seed(0)
    model = task.model().to(device)
    batch = tuple(t.to(device) for t in task.batch(torch.Generator().manual_seed(0)))
    optimizer = torch.optim.AdamW(model.parameters())
    update = torch.compile(optimizer.step) if compiled else optimizer.step
    called = torch.compile(model) if compiled else model

    def step() -> None:
        optimizer.zero_grad()
        task.loss(called, batch).backward()
        update()

    return step


def models(device: str, quick: bool) -> list[dict[str, Any]]:
    from gpt import GPT, Config
    from zoo import TASKS, Task, tokens

    demo = Task(
        lambda: GPT(Config()),
        lambda random: (tokens(random, 16, Config().context + 1, 256),),
        lambda model, batch: F.cross_entropy(model(batch[0][:, :-1]).flatten(0, 1), batch[0][:, 1:].flatten()),
    )
    cases = {"demo gpt": demo, "residual net": TASKS["residual_net"], "lstm": TASKS["lstm"]}
    rows = []
    for threads in (1,) if quick else (1, 2):
        torch.set_num_threads(threads)
        for name, task in cases.items():
            torch._dynamo.reset()
            ours, peer = stepper(task, device, True), stepper(task, "cpu", True)
            eager = stepper(task, device, False)
            for against, other, where in (("inductor", peer, "cpu"), ("eager", eager, device)):
                result = compare(ours, other, device, where, seconds=0.3, rounds=5 if quick else 9)
                rows.append(row(name, result, group=f"step against {against}", threads=threads))
    return rows


COLD = """
import sys, time
sys.path[:0] = {paths!r}
import torch, mybackend
import torch.nn.functional as F
from gpt import GPT, Config
import torch._inductor.compile_fx
torch.manual_seed(0)
model = GPT(Config()).to({device!r})
x = torch.randint(256, (16, Config().context), device={device!r})
began = time.perf_counter()
loss = torch.compile(model)(x).square().mean()
loss.backward()
if {device!r} != "cpu": torch.mybackend.synchronize()
print(time.perf_counter() - began)
"""


def cold(device: str, quick: bool) -> list[dict[str, Any]]:
    times: dict[str, list[float]] = {device: [], "cpu": []}
    for _ in range(1 if quick else 3):
        for where in times:
            with tempfile.TemporaryDirectory() as cache:
                code = COLD.format(paths=[str(ROOT / "examples"), str(ROOT)], device=where)
                environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
                done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, check=True)  # fmt: skip # noqa: E501
                times[where].append(float(done.stdout.split()[-1]))
    ours, peer = (statistics.median(values) for values in times.values())
    return [{"case": "demo gpt", "group": "cold compilation", "ours": ours, "peer": peer, "ratio": peer / ours}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    parser.add_argument("--quick", action="store_true", help="one thread, fewer rounds")
    parser.add_argument("--only", choices=("patterns", "models", "cold"))
    parser.add_argument("--case", help="one pattern")
    arguments = parser.parse_args()
    began = time.perf_counter()
    rows: list[dict[str, Any]] = []
    if arguments.only in (None, "patterns"):
        rows += patterns(arguments.device, arguments.quick, arguments.case)
    if arguments.only in (None, "models"):
        rows += models(arguments.device, arguments.quick)
    if arguments.only in (None, "cold"):
        rows += cold(arguments.device, arguments.quick)
    table = Table("case", "group", "threads", "ours (ms)", "peer (ms)", "peer / ours", title="torch.compile")
    for item in rows:
        table.add_row(
            item["case"], item["group"], str(item.get("threads", "")), f"{item['ours'] * 1e3:.3f}",
            f"{item['peer'] * 1e3:.3f}", f"{item['ratio']:.2f}",
        )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    ratios = [item["ratio"] for item in rows if item["group"] == "patterns"]
    if ratios:
        console.print(f"geometric mean of the patterns: {geometric_mean(ratios):.3f}")
    facts = {"seconds": round(time.perf_counter() - began)}
    if arguments.only is None and arguments.case is None:
        console.print(f"written: {write(f'compile_{mybackend.driver()}', arguments.device, rows, **facts)}")


if __name__ == "__main__":
    main()
