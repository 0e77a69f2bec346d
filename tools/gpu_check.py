"""`make gpu-check`: on a machine with a GPU, build for it, run the tests under the cuda driver, then the benchmarks.

Uses the Python it is called with and the torch installed there (2.11 or newer); about ten minutes on eight cores. Where
there is no GPU it says so and exits 0. Compares with torch.cuda where that torch has CUDA, else with torch on the CPU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def compute_capability() -> str | None:
    """Of the first GPU, as in "90"; None without one."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    lines = answer.stdout.split()
    return lines[0].replace(".", "") if answer.returncode == 0 and lines else None


def main() -> int:
    capability = compute_capability()
    if capability is None:
        print("gpu-check: no GPU here (nvidia-smi finds none); nothing to check")
        return 0
    import torch

    peer = "cuda" if torch.version.cuda and torch.cuda.is_available() else "cpu"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MYBACKEND_DRIVER": "cuda",
        "MYBACKEND_BUILD_CUDA": "1",
        "MYBACKEND_CUDA_ARCH": capability,
        "MYBACKEND_BUILD_ISA": "v3",
    }
    steps = {
        "build": ["setup.py", "build_ext", "--inplace"],
        "tests": ["-m", "pytest", "-q", "test", "--ignore=test/cpp", "--ignore=test/conformance"],
        "operators": ["benchmarks/operators.py", "--quick", "--peer", peer],
        "training": ["benchmarks/training.py", "--quick", "--peer", peer],
    }
    rows: list[tuple[str, str, float]] = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        code = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=False).returncode
        rows.append((name, "ok" if code == 0 else f"failed ({code})", time.monotonic() - begin))
        if name == "build" and code != 0:
            break
    print(f"\ngpu-check: sm_{capability}, torch {torch.__version__}, peer {peer}")
    for name, state, seconds in rows:
        print(f"  {name:10} {state:12} {seconds:6.0f} s")
    return 0 if all(state == "ok" for _, state, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
