"""Everything `make lint` checks; `--fix` formats instead (`make format`). The tools are pinned in requirements.txt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ("mybackend", "codegen", "tools", "test", "examples", "benchmarks", "setup.py")
CPP_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}


def main(arguments: list[str]) -> int:
    fix = "--fix" in arguments
    tool = str(Path(sys.executable).parent) + "/"
    python = [name for name in PYTHON if (ROOT / name).exists()]
    files = [file for top in ("csrc", "test") for file in sorted((ROOT / top).rglob("*"))]
    sources = [str(file) for file in files if file.suffix in CPP_SUFFIXES]
    if fix:
        commands = {
            "clang-format": [f"{tool}clang-format", "-i", *sources],
            "ruff check": [f"{tool}ruff", "check", "--quiet", "--fix", *python],
            "ruff format": [f"{tool}ruff", "format", "--quiet", *python],
        }
    else:
        commands = {
            "clang-format": [f"{tool}clang-format", "--dry-run", "--Werror", *sources],
            "ruff check": [f"{tool}ruff", "check", "--quiet", *python],
            "ruff format": [f"{tool}ruff", "format", "--quiet", "--check", *python],
            "mypy": [f"{tool}mypy"],
            "layers": [sys.executable, "tools/check_layers.py"],
        }
    failed = []
    for name, command in commands.items():
        print(f"== {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"lint: {', '.join(failed)} failed" + ("" if fix else "; `make format` repairs what is formatting"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
