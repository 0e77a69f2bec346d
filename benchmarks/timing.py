"""Timing two things in alternation in one process, so that whatever else the machine does hits both alike."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

RESULTS = Path(__file__).parent / "results"
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}  # cpu: for one thread on a machine that is busy


@dataclass(frozen=True)
class Comparison:
    """Medians over rounds, in seconds per call; `ratio` is the median of peer time / our time per round (1: equal)."""

    ours: float
    peer: float
    ratio: float


def arguments_for_one_device(description: str | None) -> argparse.Namespace:
    """--device, --threads (which are set) and --seconds of a round, and `clock`: the processor's with one thread."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.02, help="of each round")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.clock = "cpu" if arguments.threads == 1 else "wall"
    return arguments


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def seconds_per_call(call: Callable[[], Any], repeat: int, device: str, clock: str = "wall") -> float:
    synchronize(device)
    began = CLOCKS[clock]()
    for _ in range(repeat):
        call()
    synchronize(device)
    return (CLOCKS[clock]() - began) / repeat


def repeats_for(call: Callable[[], Any], device: str, seconds: float, clock: str = "wall") -> int:
    """How many calls take about `seconds`."""
    call()
    once = seconds_per_call(call, 3, device, clock)
    return max(1, int(seconds / max(once, 1e-7)))


def compare(
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    device: str,
    peer_device: str = "cpu",
    seconds: float = 0.02,
    rounds: int = 15,
    clock: str = "wall",
) -> Comparison:
    """Alternates rounds of both, each of about `seconds`."""
    repeat = repeats_for(ours, device, seconds, clock)
    repeat_peer = repeats_for(peer, peer_device, seconds, clock)
    pairs = []
    for round_ in range(rounds):
        if round_ % 2:
            b = seconds_per_call(peer, repeat_peer, peer_device, clock)
            a = seconds_per_call(ours, repeat, device, clock)
        else:
            a = seconds_per_call(ours, repeat, device, clock)
            b = seconds_per_call(peer, repeat_peer, peer_device, clock)
        pairs.append((a, b))
    return Comparison(
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(b / a for a, b in pairs),
    )


def geometric_mean(values: list[float]) -> float:
    return statistics.geometric_mean(values)


def write(name: str, device: str, rows: list[dict[str, Any]], **facts: Any) -> Path:
    """Writes benchmarks/results/<name>.json: the machine, the versions and the rows."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    about = {
        "torch": torch.__version__,
        "device": device,
        "device_name": torch.get_device_module(device).get_device_name() if device != "cpu" else platform.processor(),
        "cores": torch.multiprocessing.cpu_count(),
        **facts,
    }
    path.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    return path


def row(case: str, comparison: Comparison, **facts: Any) -> dict[str, Any]:
    return {"case": case, **facts, **{key: float(f"{value:.4g}") for key, value in asdict(comparison).items()}}
