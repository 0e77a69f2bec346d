"""A writer of build.ninja, and the call of ninja."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codegen.build.config import Config


class NinjaFile:
    """Collects rules and edges; `text()` is the file.

    Paths are written relative to `build`, so that command lines are the same in every checkout and share ccache's results.
    """

    def __init__(self, build: Path) -> None:
        self._build = build
        self._lines: list[str] = ["ninja_required_version = 1.8", ""]

    def rule(self, name: str, command: str, **variables: str) -> None:
        self._lines += [f"rule {name}", f"  command = {command}"]
        self._lines += [f"  {key} = {value}" for key, value in variables.items()]
        self._lines.append("")

    def edge(
        self,
        outputs: Iterable[Path | str],
        rule: str,
        inputs: Iterable[Path | str] = (),
        *,
        implicit: Iterable[Path | str] = (),
        order_only: Iterable[Path | str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        line = f"build {self._paths(outputs)}: {rule} {self._paths(inputs)}"
        if implicit := list(implicit):
            line += f" | {self._paths(implicit)}"
        if order_only := list(order_only):
            line += f" || {self._paths(order_only)}"
        self._lines.append(line)
        self._lines += [f"  {key} = {value}" for key, value in (variables or {}).items()]

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _paths(self, paths: Iterable[Path | str]) -> str:
        relative = (os.path.relpath(path, self._build) if os.path.isabs(path) else str(path) for path in paths)
        return " ".join(path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:") for path in relative)


def run_ninja(config: Config, targets: list[str]) -> None:
    command = [_find_ninja(), "-C", str(config.build), f"-j{config.jobs}", *targets]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit("mybackend: the build failed; the first error is above")


@contextmanager
def build_lock(config: Config) -> Iterator[None]:
    """One build at a time in a build folder: ninja itself does not lock it."""
    config.build.mkdir(exist_ok=True)
    with (config.build / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("mybackend: waiting for another build in this folder", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _find_ninja() -> str:
    beside_python = os.path.dirname(sys.executable)
    ninja = shutil.which("ninja", path=beside_python) or shutil.which("ninja")
    if ninja is None:
        raise SystemExit("mybackend: ninja is not found: pip install ninja")
    return ninja
