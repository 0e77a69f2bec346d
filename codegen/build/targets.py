"""What is built, from which files (found by globbing), with which flags.

    libmybackend.so            device (core part), runtime, engine, aten, generated shards   links libtorch_cpu, libc10
    _C.<abi>.so                bindings                                                       links libmybackend, libtorch_python
    libmb_kernels_host_*.so    csrc/kernels by the C++ compiler, once per ISA level           links nothing of ours
    libmb_driver_cuda.so       csrc/kernels and csrc/device/*_cuda.cpp by nvcc                static CUDA runtime
"""

from __future__ import annotations

import shlex
from pathlib import Path

from codegen.build.config import Config
from codegen.build.ninja import NinjaFile

ISA_FLAGS = {
    "v3": "-march=x86-64-v3",
    "v4": "-march=x86-64-v4 -mprefer-vector-width=512",
    "native": "-march=native",
}
WARNINGS = "-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-unknown-pragmas"
# The kernels' flags keep NaN and infinity right; never -ffast-math.
KERNEL_FLAGS = "-O3 -fno-math-errno -fno-trapping-math -fopenmp-simd -fvisibility=hidden"
# Code that is generic in its number compares unsigned ones with zero (186); some members serve the host alone (177).
NVCC_SILENT = "177,186"
SHARDS = 4


def write_build_file(config: Config) -> list[Path]:
    """Writes build/build.ninja; returns the libraries it makes, as paths under `config.out`."""
    plan = _Plan(config)
    libraries = [plan.core(), *(plan.host_kernels(isa) for isa in config.host_isa)]
    if config.nvcc:
        libraries.append(plan.cuda_driver())
    libraries.append(plan.bindings(core=libraries[0]))
    plan.ninja.edge(["all"], "phony", [*libraries, plan.stub_check(core=libraries[0])])
    (config.build / "build.ninja").write_text(plan.ninja.text())
    return libraries


class _Plan:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.ninja = NinjaFile(config.build)
        launcher = f"{config.ccache} " if config.ccache else ""
        cxx = f"{launcher}{config.compiler}"
        self.ninja.rule(
            "cxx",
            f"{cxx} -MMD -MF $out.d $flags -c $in -o $out",
            depfile="$out.d",
            deps="gcc",
            description="C++ $out",
        )
        self.ninja.rule("link", f"{config.compiler} -shared $in -o $out $flags", description="link $out")
        if config.nvcc:
            self.ninja.rule(
                "nvcc",
                f"{launcher}{config.nvcc} -MMD -MF $out.d $flags -c $in -o $out",
                depfile="$out.d",
                deps="gcc",
                description="nvcc $out",
            )
            self.ninja.rule(
                "nvlink", f"{config.nvcc} -shared -cudart static $in -o $out $flags", description="link $out"
            )
        self.generated = self._generate()

    def core(self) -> Path:
        config = self.config
        sources = [
            source
            for pattern in ("device/*.cpp", "runtime/**/*.cpp", "engine/**/*.cpp", "aten/**/*.cpp")
            for source in self._sources(pattern)
            if not source.name.endswith("_cuda.cpp") and source.name != "kernel_library_host.cpp"
        ]
        sources += [path for path in self.generated if path.suffix == ".cpp"]
        flags = f"{self._torch_flags()} {self._includes()}"
        # at::parallel_for is a template: it uses threads only where OpenMP is on.
        parallel = config.root / "csrc" / "runtime" / "parallel.cpp"
        objects = self._compile("cxx", [source for source in sources if source != parallel], "core", flags)
        objects += self._compile("cxx", [parallel], "core", f"{flags} -fopenmp")
        # Functions of ours bind to themselves: looking thousands of them up by name would slow every `import torch`.
        link = f"{self._torch_link()} -ltorch_cpu -lc10 {self._openmp()} -ldl -lpthread -Wl,--no-undefined"
        link += " -Wl,-Bsymbolic-functions"
        return self._link("link", config.out / "lib" / "libmybackend.so", objects, link)

    def bindings(self, core: Path) -> Path:
        config = self.config
        flags = f"{self._torch_flags()} {self._includes()} -isystem {config.python_include} -fvisibility=hidden"
        objects = self._compile("cxx", self._sources("bindings/*.cpp"), "bindings", flags)
        link = f"{self._torch_link()} -L{core.parent} -lmybackend -ltorch_python -ltorch_cpu -lc10 '-Wl,-rpath,$$ORIGIN/lib'"
        output = config.out / f"_C{config.extension_suffix}"
        return self._link("link", output, objects, link, implicit=[core])

    def host_kernels(self, isa: str) -> Path:
        sources = [*self._sources("kernels/**/*.cu"), *self._sources("device/kernel_library_host.cpp")]
        flags = f"-x c++ -std=c++20 -fPIC {KERNEL_FLAGS} {ISA_FLAGS[isa]} {WARNINGS} {self._includes()}"
        objects = self._compile("cxx", sources, f"kernels_{isa}", flags)
        output = self.config.out / "lib" / f"libmb_kernels_host_{isa}.so"
        libm = "-lmvec -lm" if isa != "native" else "-lm"
        return self._link("link", output, objects, f"{libm} -Wl,--no-undefined -Wl,-Bsymbolic")

    def cuda_driver(self) -> Path:
        sources = [*self._sources("kernels/**/*.cu"), *self._sources("device/*_cuda.cpp")]
        flags = (
            "-x cu -std=c++20 -O3 --expt-relaxed-constexpr --extended-lambda -Xcompiler -fPIC,-fvisibility=hidden "
            f"-diag-suppress {NVCC_SILENT} -Xfatbin -compress-all {_gencode(self.config.cuda_arch)} "
            f"{self.config.cuda_flags} {self._includes()}"
        )
        objects = self._compile("nvcc", sources, "cuda", flags)
        output = self.config.out / "lib" / "libmb_driver_cuda.so"
        return self._link("nvlink", output, objects, "-ldl -lpthread -Xlinker --no-undefined")

    def _generate(self) -> list[Path]:
        """The generator's edge; its outputs are the shards and the headers that csrc/aten includes."""
        root, out = self.config.root, self.config.generated
        tables = self._sources("aten/operators/*.yaml")
        self.ninja.rule(
            "generate",
            f"PYTHONPATH=.. {self.config.python} -m codegen.generate --root .. --out generated --shards {SHARDS}",
            description="generate registrations from csrc/aten/operators/*.yaml",
            restat="1",
        )
        headers = [out / f"{table.stem}.h" for table in tables]
        shards = [out / f"register_{index}.cpp" for index in range(SHARDS)]
        data = [out / "operators.json", out / "stubs.txt"]
        scripts = [*(root / "codegen").glob("*.py")]
        self.ninja.edge([*headers, *shards, *data], "generate", tables, implicit=scripts)
        return [*headers, *shards]

    def stub_check(self, core: Path) -> Path:
        """After linking: every stub that an operator is served by is filled (codegen/check_stubs.py)."""
        table, stamp = self.config.generated / "stubs.txt", Path("stubs.checked")
        self.ninja.rule(
            "check_stubs",
            f"PYTHONPATH=.. {self.config.python} -m codegen.check_stubs $in $out",
            description="check that every stub is filled",
        )
        self.ninja.edge([stamp], "check_stubs", [core, table])
        return stamp

    def _sources(self, pattern: str) -> list[Path]:
        return sorted((self.config.root / "csrc").glob(pattern))

    def _compile(self, rule: str, sources: list[Path], group: str, flags: str) -> list[Path]:
        headers = [path for path in self.generated if path.suffix == ".h"]
        objects = []
        for source in sources:
            base = self.config.generated if source.is_relative_to(self.config.generated) else self.config.root / "csrc"
            output = Path("obj") / group / source.relative_to(base).with_suffix(".o")
            self.ninja.edge([output], rule, [source], order_only=headers, variables={"flags": flags})
            objects.append(output)
        return objects

    def _link(self, rule: str, output: Path, objects: list[Path], flags: str, implicit: list[Path] | None = None) -> Path:
        self.ninja.edge([output], rule, objects, implicit=implicit or (), variables={"flags": flags})
        return output

    def _torch_flags(self) -> str:
        version = shlex.quote(f'-DMB_TORCH_VERSION="{self.config.torch_version}"')
        return f"-std=c++20 -O2 -g0 -fPIC {WARNINGS} {version}"

    def _torch_link(self) -> str:
        """No run path to torch: `import torch` has loaded its libraries before ours are opened."""
        return f"-L{self.config.torch_library}"

    def _openmp(self) -> str:
        """The OpenMP library that comes with torch, so that threads are shared; the compiler's where none does."""
        bundled = sorted(Path(self.config.torch_library).glob("libgomp*.so*"))
        return f"-l:{bundled[0].name}" if bundled else "-fopenmp"

    def _includes(self) -> str:
        system = " ".join(f"-isystem {path}" for path in self.config.torch_include)
        return f"-I.. -I. {system}"


def _gencode(architectures: str) -> str:
    """nvcc's option for a list like "80;90+PTX".

    Nothing in csrc/kernels asks for more than the first architecture of a list: atomics of 16-bit types are a
    compare-and-swap, and there is no asynchronous copy or tensor core. So one virtual architecture, the lowest, is translated
    once and assembled for each of the list; a front end and an optimiser for each would take a quarter longer and give the
    same code. "+PTX" keeps that virtual architecture in the library, for GPUs newer than the list.
    """
    names = architectures.split(";")
    numbers = [name.removesuffix("+PTX") for name in names]
    lowest = min(numbers, key=lambda number: int(number.rstrip("af")))
    code = [f"sm_{number}" for number in numbers]
    if any(name.endswith("+PTX") for name in names):
        code.append(f"compute_{lowest}")
    return f"-gencode 'arch=compute_{lowest},code=[{','.join(code)}]'"
