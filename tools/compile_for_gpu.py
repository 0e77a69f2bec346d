"""Compiles generated kernels for a GPU with nvcc: all sources of ours that torch.compile left in a cache folder.

    python tools/compile_for_gpu.py FOLDER [--arch sm_80,sm_90]

No GPU is needed: the result (PTX) is thrown away. Exits with 1 and the compiler's words if a source is refused.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PRELUDE = Path(__file__).resolve().parent.parent / "mybackend" / "compile" / "prelude"


def compile_for_gpu(source: Path, arch: str = "sm_80") -> str | None:
    """What nvcc says against a source; None if it compiles."""
    command = [
        "nvcc",
        "-x",
        "cu",
        "-std=c++17",
        "-w",
        "--expt-relaxed-constexpr",
        f"-arch={arch}",
        "-ptx",
        "-I",
        str(PRELUDE),
        str(source),
    ]
    result = subprocess.run([*command, "-o", os.devnull], capture_output=True, text=True, check=False)
    return None if result.returncode == 0 else f"{source} ({arch}):\n{result.stderr[:3000]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="sm_80,sm_90")
    arguments = parser.parse_args()
    # Beside ours, Inductor keeps those of its own CPU backend in the cache.
    sources = sorted(path for path in arguments.folder.rglob("*.cpp") if path.parent.name == "mybackend")
    work = [(source, arch) for source in sources for arch in arguments.arch.split(",")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = [said for said in pool.map(lambda item: compile_for_gpu(*item), work) if said]
    print("\n".join(refused), end="")
    print(f"{len(work) - len(refused)} of {len(work)} compilations of {len(sources)} sources succeeded")
    return 1 if refused or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
