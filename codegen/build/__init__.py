"""The native build: configuration (config), targets (targets), ninja's file and its run (ninja), installation (here).

    build/build.ninja    written by every build, so that a new source file is found; ninja decides what is out of date
    build/generated/     what codegen.generate wrote: registration shards and their headers
    build/out/           the linked libraries, copied from there into the package
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from codegen.build.config import Config, read_config
from codegen.build.ninja import build_lock, run_ninja
from codegen.build.targets import write_build_file

__all__ = ["build"]


def build(root: Path, package: Path) -> list[Path]:
    """Builds everything and puts the results into `package`; returns the files put there."""
    config = read_config(root)
    print(config.summary(), flush=True)
    with build_lock(config):
        outputs = write_build_file(config)
        run_ninja(config, ["all"])
        installed = [_install(output, package / output.relative_to(config.out)) for output in outputs]
        _remove_stale(package, installed)
        installed += [_install(header, package / "compile" / "prelude" / header.relative_to(root)) for header in _shared(root)]
        info, operators = package / "_build_info.py", package / "_operators.json"
        _write_if_changed(info, _build_info(config))
        _write_if_changed(operators, (config.generated / "operators.json").read_text())
    return [*installed, info, operators]


def _install(source: Path, destination: Path) -> Path:
    """Replaces `destination` in one step: a process that has the old library mapped keeps it."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    if destination.exists() and destination.stat().st_mtime_ns == source.stat().st_mtime_ns:
        return destination
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}")
    shutil.copy2(source, temporary)
    temporary.replace(destination)
    return destination


def _shared(root: Path) -> list[Path]:
    """Headers of kernels that generated code includes too (mybackend/compile/prelude/special.h)."""
    return [root / "csrc" / "kernels" / name for name in ("bessel.h", "error_function.h", "special.h")]


def _remove_stale(package: Path, installed: list[Path]) -> None:
    """Removes libraries of an earlier build with other options, which would be found at run time."""
    for path in [*(package / "lib").glob("*.so"), *package.glob("_C*.so")]:
        if path not in installed:
            path.unlink()


def _build_info(config: Config) -> str:
    return (
        '"""What this build was made from; written by setup.py."""\n\n'
        f"TORCH_VERSION = {config.torch_version!r}\n"
        f"CUDA = {config.nvcc is not None}\n"
        f"CUDA_ARCH = {config.cuda_arch!r}\n"
        f"HOST_ISA = {list(config.host_isa)!r}\n"
        f"COMPILER = {config.compiler_version!r}\n"
    )


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
