"""Training steps (forward, backward, AdamW) on mybackend and on torch's CPU, in alternation in one process.

    python benchmarks/training.py [--device mybackend] [--peer cpu] [--quick]

Models: the demo GPT, the residual net and the LSTM of test/models/zoo.py. Writes
benchmarks/results/training_<driver>.json.
Target: at least as fast as the peer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from timing import compare, row, write

import mybackend

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "test" / "models")]

from gpt import GPT, Config  # noqa: E402
from zoo import TASKS, Task, tokens  # noqa: E402

DEMO = Task(
    lambda: GPT(Config()),
    lambda random: (tokens(random, 16, Config().context + 1, 256),),
    lambda model, batch: model.loss(batch[0]),
)
CASES = {"demo gpt": DEMO, "residual net": TASKS["residual_net"], "lstm": TASKS["lstm"], "gru": TASKS["gru"]}


def stepper(task: Task, device: str) -> Callable[[], None]:
    torch.manual_seed(0)
    model = task.model().to(device)
    batch = tuple(t.to(device) for t in task.batch(torch.Generator().manual_seed(0)))
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        task.loss(model, batch).backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--quick", action="store_true", help="one thread count, fewer rounds")
    arguments = parser.parse_args()
    table = Table(
        "model", "threads", "ours (ms)", "peer (ms)", "peer / ours", title="training step", title_justify="left"
    )
    rows = []
    for threads in (torch.get_num_threads(),) if arguments.quick else (1, 2):
        torch.set_num_threads(threads)
        for name, task in CASES.items():
            result = compare(
                stepper(task, arguments.device), stepper(task, arguments.peer), arguments.device, arguments.peer,
                seconds=0.3, rounds=5 if arguments.quick else 11,
            )  # fmt: skip
            rows.append(row(name, result, threads=threads))
            table.add_row(
                name, str(threads), f"{result.ours * 1e3:.2f}", f"{result.peer * 1e3:.2f}", f"{result.ratio:.2f}"
            )
    console = Console(width=120)
    console.print(table)
    console.print(f"written: {write(f'training_{mybackend.driver()}', arguments.device, rows, peer=arguments.peer)}")


if __name__ == "__main__":
    main()
