"""Options of the build, read from the environment, and what the machine offers (docs/env_vars.md lists them)."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths, library_paths


@dataclass(frozen=True)
class Config:
    root: Path
    build: Path
    compiler: str
    compiler_version: str
    ccache: str | None
    nvcc: str | None
    cuda_arch: str
    cuda_flags: str
    host_isa: tuple[str, ...]
    jobs: int
    torch_version: str
    torch_include: tuple[str, ...]
    torch_library: str
    python_include: str
    extension_suffix: str
    python: str

    @property
    def generated(self) -> Path:
        return self.build / "generated"

    @property
    def out(self) -> Path:
        return self.build / "out"

    def summary(self) -> str:
        gpu = f"nvcc for {self.cuda_arch} {self.cuda_flags}".rstrip() if self.nvcc else "the GPU half is left out (no nvcc, or MYBACKEND_BUILD_CUDA=0)"
        return f"mybackend: torch {self.torch_version}, {self.compiler_version}, host {','.join(self.host_isa)}; {gpu}"


def read_config(root: Path) -> Config:
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise SystemExit(f"mybackend: no C++ compiler: '{compiler}' is not found (set CXX)")
    return Config(
        root=root,
        build=root / "build",
        compiler=compiler,
        compiler_version=_first_line([compiler, "--version"]),
        ccache=shutil.which("ccache"),
        nvcc=_find_nvcc(),
        cuda_arch=os.environ.get("MYBACKEND_CUDA_ARCH", "80;90+PTX"),
        cuda_flags=os.environ.get("MYBACKEND_CUDA_FLAGS", ""),
        host_isa=_host_isa(),
        jobs=int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1),
        torch_version=torch.__version__,
        torch_include=tuple(include_paths()),
        torch_library=library_paths()[0],
        python_include=sysconfig.get_path("include"),
        extension_suffix=sysconfig.get_config_var("EXT_SUFFIX"),
        python=sys.executable,
    )


def _host_isa() -> tuple[str, ...]:
    if platform.machine() not in ("x86_64", "AMD64"):
        return ("native",)
    names = tuple(os.environ.get("MYBACKEND_BUILD_ISA", "v3,v4").split(","))
    if unknown := set(names) - {"v3", "v4"}:
        raise SystemExit(f"mybackend: MYBACKEND_BUILD_ISA is a list of v3 and v4, got {','.join(sorted(unknown))}")
    return names


def _find_nvcc() -> str | None:
    wanted = os.environ.get("MYBACKEND_BUILD_CUDA")
    if wanted == "0":
        return None
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin"))
    if nvcc is None and wanted == "1":
        raise SystemExit("mybackend: MYBACKEND_BUILD_CUDA=1 but nvcc is not found (set CUDA_HOME or PATH)")
    return nvcc


def _first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
