"""The compilers of generated code: the C++ compiler for the host driver, nvcc or NVRTC for a GPU."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mybackend

__all__ = ["PRELUDE", "CompilationError", "Compiler", "compiler", "prelude_hash"]

PRELUDE = Path(__file__).parent / "prelude"
INCLUDE = '#include "kernel.h"\n'


class CompilationError(RuntimeError):
    """The compiler refused generated code. It is a bug of mybackend, unless the compiler itself cannot run."""


@functools.cache
def prelude_hash() -> str:
    digest = hashlib.sha256()
    for header in sorted(PRELUDE.rglob("*.h")):
        digest.update(header.name.encode())
        digest.update(header.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Compiler:
    """A command line: `command` + input and output."""

    command: tuple[str, ...]
    after: tuple[str, ...]  # libraries follow the input
    identity: str  # of the program: a new version of it means new objects
    source_suffix: str
    suffix: str

    def key(self, source: str) -> str:
        text = "\0".join([*self.command, *self.after, self.identity, prelude_hash(), source])
        return hashlib.sha256(text.encode()).hexdigest()

    def compile(self, source: str, target: Path) -> None:
        """Compiles beside the target, then renames: whoever finds the target finds all of it."""
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.stem[:16]}.") as place:
            text, built = Path(place) / f"kernels{self.source_suffix}", Path(place) / "built"
            text.write_text(INCLUDE + source)
            command = [*self.command, str(text), "-o", str(built), *self.after]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            kept = target.with_suffix(self.source_suffix)
            os.replace(text, kept)  # for who reads generated code, and for tools/compile_for_gpu.py
            if result.returncode != 0:
                raise CompilationError(
                    f"mybackend.compile: {self.command[0]} failed on generated code, kept in {kept}. Command:\n"
                    f"{' '.join(command)}\n{result.stderr[:4000]}"
                )
            os.replace(built, target)


@functools.cache
def compiler() -> Compiler:
    """The compiler for the driver in use."""
    return _cuda_compiler() if mybackend.driver() == "cuda" else host_compiler(mybackend.get_device_capability(0)[0])


def host_compiler(isa_level: int) -> Compiler:
    """The C++ compiler with the flags of the host kernel libraries; level 3 or 4 of x86-64, 0 elsewhere."""
    program = _find_program(("CXX",), ("g++", "clang++", "c++"), "C++ compiler")
    isa = {
        3: ["-march=x86-64-v3"],
        4: ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }.get(isa_level, ["-march=native"])
    command = [
        program, "-x", "c++", "-std=c++20", "-O3", "-fPIC", "-shared", "-w", "-fno-math-errno", "-fno-trapping-math",
        "-fopenmp-simd", "-fvisibility=hidden", *isa, "-I", str(PRELUDE),
    ]  # fmt: skip
    if "clang" not in os.path.basename(os.path.realpath(program)):
        # A loop that copies a few dozen elements to the next loop is better left a loop than made a call of memcpy.
        command.append("-fno-tree-loop-distribute-patterns")
    libmvec = isa_level > 0 and _has_libmvec()
    if libmvec:
        command.append("-DMB_LIBMVEC")
    return Compiler(tuple(command), ("-lmvec", "-lm") if libmvec else ("-lm",), _identity(program), ".cpp", ".so")


def _cuda_compiler() -> Compiler:
    major, minor = mybackend.get_device_capability(0)
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    program = _find_program(("NVCC",), ("nvcc", os.path.join(home, "bin", "nvcc")), "nvcc")
    command = (
        program,
        "-x",
        "cu",
        "-std=c++17",
        "-O3",
        "-w",
        "--expt-relaxed-constexpr",
        f"-arch=sm_{major}{minor}",
        "-cubin",
        "-I",
        str(PRELUDE),
    )
    return Compiler(command, (), _identity(program), ".cu", ".cubin")


def _find_program(variables: tuple[str, ...], names: tuple[str, ...], what: str) -> str:
    wanted = next((os.environ[variable] for variable in variables if os.environ.get(variable)), None)
    for name in (wanted,) if wanted else names:
        if found := shutil.which(name):
            return found
    raise CompilationError(
        f"mybackend.compile needs a {what}: '{wanted or names[0]}' is not found. Install one, or set {variables[0]}."
    )


def _identity(program: str) -> str:
    status = os.stat(os.path.realpath(program))
    return f"{os.path.realpath(program)} {status.st_size} {status.st_mtime_ns}"


@functools.cache
def _has_libmvec() -> bool:
    """glibc 2.35 has every function of prelude/maths.h in vector form."""
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (AttributeError, ValueError, OSError):
        return False
    return name == "glibc" and tuple(map(int, version.split(".")[:2])) >= (2, 35)
