"""Trains a small GPT on the Python standard library's sources, on mybackend and on the CPU, and compares the two.

    python examples/train_gpt.py                 the demo
    python examples/train_gpt.py --help          device, steps, compile, engine

Both runs start from the same weights and see the same batches. At the end there are a picture of the two loss curves, a
piece of generated text, and a table: device, operators and how each was served, fallbacks, memory, time.
"""

from __future__ import annotations

import copy
import sysconfig
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
import typer
from gpt import GPT, Config
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from tqdm import tqdm

import mybackend
from mybackend.autograd import use_engine
from mybackend.coverage import served_by

console = Console()


def corpus(limit: int = 4_000_000) -> Tensor:
    """The first `limit` bytes of the standard library's modules in alphabetical order, as uint8."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += path.read_bytes()
        if len(text) >= limit:
            break
    return torch.frombuffer(text[:limit], dtype=torch.uint8)


def batches(text: Tensor, steps: int, batch: int, context: int) -> list[Tensor]:
    """One (batch, context + 1) int64 tensor per step, the same for every device."""
    random = torch.Generator().manual_seed(1)
    starts = torch.randint(len(text) - context - 1, (steps, batch), generator=random)
    return [torch.stack([text[s : s + context + 1] for s in row.tolist()]).long() for row in starts]


class OperatorCounter(TorchDispatchMode):
    """Counts the operators that reach a backend."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if func.namespace == "aten":
            self.calls[func.name().removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))


@dataclass
class Run:
    device: str
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    tokens: int = 0
    peak_memory: int = 0  # bytes

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


def train(model: GPT, data: list[Tensor], device: str, backend: str | None) -> Run:
    """AdamW, linear warm-up over a tenth of the steps, cosine decay; the first step is not timed."""
    run = Run(device)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
    warm_up = max(1, len(data) // 10)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=warm_up),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, len(data) - warm_up)),
        ],
        milestones=[warm_up],
    )
    loss_of = torch.compile(model.loss, backend=backend) if backend else model.loss
    began = time.perf_counter()
    with tqdm(data, desc=f"{device:>10}", unit="step", ncols=100) as bar:
        for step, batch in enumerate(bar):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(batch.to(device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            run.losses.append(loss.item())
            if step == 0:
                began = time.perf_counter()
                continue
            run.tokens += batch[:, 1:].numel()
            run.seconds = time.perf_counter() - began
            bar.set_postfix_str(f"loss {run.losses[-1]:.3f}, {run.tokens_per_second:,.0f} tokens/s")
    if device != "cpu":
        run.peak_memory = torch.get_device_module(device).max_memory_allocated()
    return run


def operators_of_one_step(model: GPT, batch: Tensor, device: str) -> Counter[str]:
    model = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters())
    with OperatorCounter() as counter:
        model.loss(batch.to(device)).backward()
        optimizer.step()
    return counter.calls


def picture(runs: list[Run], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for run, style in zip(runs, ("-", "--"), strict=False):
        axes.plot(run.losses, style, label=f"{run.device} ({run.seconds:.0f} s)", linewidth=1.5)
    axes.set(
        xlabel="step",
        ylabel="loss (nats per byte)",
        title="A GPT learns Python: mybackend and CPU, same weights, same data",
    )
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def summary(runs: list[Run], calls: Counter[str], driver: str, device: str) -> Table:
    table = Table(title="Summary", show_header=False, title_justify="left")
    ours = runs[0]
    table.add_row(
        "device", f"{device}: {torch.get_device_module(device).get_device_name()}" if device != "cpu" else "cpu"
    )
    table.add_row("driver", driver)
    table.add_row("loss, first and last step", f"{ours.losses[0]:.3f} -> {ours.losses[-1]:.3f}")
    served = Counter(served_by(name) for name in calls) if device != "cpu" else Counter()
    table.add_row("operators in one step", f"{len(calls)} kinds, {sum(calls.values())} calls")
    for how, kinds in served.most_common():
        table.add_row(f"  served by {how}", f"{kinds} kinds")
    if device != "cpu":
        table.add_row("fallbacks to CPU", str(sum(torch.mybackend.fallbacks().values())))
        table.add_row("peak memory", f"{ours.peak_memory / 2**20:.1f} MiB")
    table.add_row("time", f"{ours.seconds:.1f} s, {ours.tokens_per_second:,.0f} tokens/s")
    if len(runs) > 1:
        cpu = runs[1]
        table.add_row("time on CPU", f"{cpu.seconds:.1f} s, {cpu.tokens_per_second:,.0f} tokens/s")
        table.add_row("speed against CPU", f"{cpu.seconds / ours.seconds:.2f}x")
        apart = max(abs(a - b) for a, b in zip(ours.losses, cpu.losses, strict=True))
        table.add_row("largest difference in loss", f"{apart:.2e}")
    return table


def main(
    device: Annotated[str, typer.Option(help="Device to train on.")] = "mybackend",
    steps: Annotated[int, typer.Option(min=2, help="Training steps.")] = 150,
    batch: Annotated[int, typer.Option(min=1, help="Sequences in a batch.")] = 16,
    compile: Annotated[str | None, typer.Option(help="torch.compile's backend, e.g. inductor.")] = None,
    engine: Annotated[str, typer.Option(help="Autograd engine: mybackend or stock.")] = "mybackend",
    compare: Annotated[bool, typer.Option(help="Train on the CPU too and compare.")] = True,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("train_gpt.png"),
) -> None:
    """Trains a small GPT on the Python standard library's sources."""
    torch.manual_seed(0)
    config = Config()
    first = GPT(config)
    text = corpus()
    data = batches(text, steps, batch, config.context)
    parameters = sum(p.numel() for p in first.parameters())
    console.print(f"GPT with {parameters / 1e6:.2f} M parameters, {len(text) / 1e6:.1f} MB of Python, {steps} steps")

    with use_engine(engine):
        model = copy.deepcopy(first)
        runs = [train(model, data, device, compile)]
        calls = operators_of_one_step(model, data[0], device)
    if compare and device != "cpu":
        with use_engine("stock"):
            runs.append(train(copy.deepcopy(first), data, "cpu", backend=None))

    prompt = "def main(argv):\n"
    tokens = torch.tensor([list(prompt.encode())], device=device)
    written = bytes(model.eval().generate(tokens, 240)[0].tolist()).decode(errors="replace")
    console.print(Panel(written, title="The model writes Python", title_align="left", highlight=False), markup=False)
    console.print(summary(runs, calls, mybackend.driver() if device != "cpu" else "none", device))
    picture(runs, out)
    console.print(f"Loss curves: {out.resolve()}")


if __name__ == "__main__":
    typer.run(main)
