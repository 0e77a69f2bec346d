"""The GPU form of generated kernels gives the same values: run on CPU threads, since CI has no GPU.

The host driver's memory is the CPU's, so a compiled function may run with its kernels replaced: the same text, compiled
as for CUDA with the words of gpu_on_threads/cuda_on_threads.h.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import subprocess
from pathlib import Path
from typing import Any

import custom_template
import pytest
import torch
import torch.nn.functional as F

from mybackend.compile import gemm, runtime, toolchain

HERE = Path(__file__).parent / "gpu_on_threads"
ELEMENTS, ROWS, LANES = range(3)


class Slot(ctypes.Union):
    _fields_ = [("pointer", ctypes.c_void_p), ("integer", ctypes.c_int64), ("real", ctypes.c_double)]


class KernelsOnThreads:
    """Stands for runtime.Kernels: compiles the whole source when it is made."""

    def __init__(self, source: str, folder: Path) -> None:
        # The host's entries, which know how arguments are taken from slots, become launches.
        entries = re.findall(r"(\w+)_run\(const mb_slot.*?\n  \1\(begin, end, (.*)\);\n", source)
        text = ['#include "cuda_on_threads.h"', '#include "kernel.h"', source]
        for name, passed in entries:
            launch = f"cuda_launch(blocks, threads, [=] {{ {name}({passed}); }});"
            text.append(f'extern "C" void {name}_launch(const mb_slot* slots, int blocks, int threads) {{ {launch} }}')
        path = folder / "kernels.cpp"
        path.write_text("\n".join(text))
        command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", "-I", str(HERE)]
        subprocess.run([*command, "-I", str(toolchain.PRELUDE), str(path), "-o", str(folder / "built.so")], check=True)
        self.library = ctypes.CDLL(str(folder / "built.so"))

    def kernel(
        self, name: str, signature: str, items: list[int], work: list[int], form: int, unit: int, can_fail: bool,
        messages: Any,
    ) -> Any:  # fmt: skip
        def call(device: int, *arguments: Any) -> None:
            def product(factors: list[int]) -> int:
                value = 1
                for factor in factors:
                    value *= factor if factor >= 0 else arguments[-1 - factor]
                return value

            slots = (Slot * (1 + len(arguments) + len(messages)))()
            error = (ctypes.c_int64 * 8)()
            slots[0].pointer = ctypes.addressof(error)
            for slot, kind, argument in zip(itertools.islice(slots, 1, None), signature, arguments, strict=False):
                field = {"p": "pointer", "i": "integer", "d": "real"}[kind]
                setattr(slot, field, argument.data_ptr() if kind == "p" else argument)
            # As launch_function of csrc/runtime/cuda_module.cpp.
            threads = {ELEMENTS: 256, LANES: 128, ROWS: min(512, max(32, (product(work) + 3) // 4 + 31) // 32 * 32)}[
                form
            ]
            blocks = product(items) if form == ROWS else -(-product(items) // threads)
            torch.mybackend.synchronize()
            if blocks > 0:
                self.library[f"{name}_launch"](slots, blocks, threads)

        return call


@pytest.fixture
def on_threads(agree, monkeypatch, tmp_path):
    """As `agree`, with the GPU form of the kernels."""
    numbers = itertools.count()
    launched = []

    def load_kernels(source: str) -> KernelsOnThreads:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        launched.append(source)
        return KernelsOnThreads(source, folder)

    monkeypatch.setattr(runtime, "load_kernels", load_kernels)

    def check(*arguments: Any, **options: Any) -> None:
        with torch._inductor.config.patch(force_disable_caches=True):
            agree(*arguments, **options)
        assert launched

    return check


CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def test_pointwise_code(on_threads):
    on_threads(lambda x, y: ((x * y).sigmoid() + x, x.bfloat16()), torch.randn(9, 70), torch.randn(70))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(5, 70), (3, 1000)])
def test_reductions(on_threads, dim, shape):
    def reduced(x):
        return x.sum(dim), x.amax(dim), x.argmin(dim), x.var(dim), (x > 2).any(dim), x.softmax(dim)

    on_threads(reduced, torch.randn(shape), **CLOSE)


def test_accesses_of_16_bytes(on_threads):
    x, b, h = torch.randn(128, 200), torch.randn(160), torch.randn(128, 160).bfloat16()

    def mixed(x, b, h):
        aligned, unaligned = x[:, 8:168], x[:, 1:161]
        return aligned * b + unaligned, (aligned + h).bfloat16(), h > 0

    on_threads(mixed, x, b, h, rtol=1e-2, atol=1e-2)


def test_memory_that_is_changed_in_chunks(on_threads):
    def update(x, y):
        x.mul_(2).add_(y)
        return x + 1

    on_threads(update, torch.randn(20000), torch.randn(20000))


def test_a_norm(on_threads):
    on_threads(lambda x, w: F.layer_norm(x, (70,), w), torch.randn(5, 70), torch.randn(70), **CLOSE)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(3, 33), (2, 700), (4, 64)])
def test_scans(on_threads, dim, shape):
    def scanned(x):
        return x.cumsum(dim), x.cummax(dim), x.softmax(dim).cumsum(dim).sum(dim)

    on_threads(scanned, torch.randn(shape), **CLOSE)


@pytest.mark.parametrize("shape", [(33, 70), (64, 64)])
def test_transpositions(on_threads, shape):
    on_threads(lambda x, y: (x.t() * 2 + y, (x.t() + y).bfloat16()), torch.randn(shape), torch.randn(shape[::-1]))


def test_segments(on_threads):
    xs = [torch.randn(shape) for shape in ((3,), (70, 33), (), (300,), (16, 16))]
    on_threads(lambda *xs: torch._foreach_mul(torch._foreach_add(xs, 1), 2), *xs)


def test_segments_of_every_form(on_threads):
    def independent(x, y):
        return x.sin(), y.softmax(-1), (y * 2).sum(0), x[:50].cos() * 3, y.amax(1), y.cumsum(1), y.t().contiguous() + 1

    x, y = torch.randn(600), torch.randn(30, 40)
    on_threads(independent, x, y, options={"combo_kernels": True}, **CLOSE)


def test_atomics(on_threads):
    on_threads(lambda x, i: torch.zeros(7, 5).to(x.device).index_add(0, i, x), torch.randn(50, 5), torch.arange(50) % 7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_matrix_products(on_threads, monkeypatch, dtype, batch):
    monkeypatch.setattr(gemm, "prefers_template", lambda *_: True)
    tiles = {"TILE_M": 32, "TILE_N": 32, "TILE_K": 16}  # several blocks, and tiles that are not full
    monkeypatch.setattr(gemm, "HOST_TILES", (tiles,))
    a, b, c = (torch.randn(*batch, *size).to(dtype) for size in ((33, 50), (50, 40), (33, 40)))
    tolerance = {"rtol": 2e-2, "atol": 1e-1} if dtype == torch.bfloat16 else CLOSE
    on_threads(lambda a, b, c: (torch.matmul(a, b) + c).relu() * 2, a, b, c, **tolerance)
    on_threads(lambda a, b: torch.matmul(a.mT.contiguous().mT, b.mT.contiguous().mT), a, b, **tolerance)


def test_a_template_of_ones_own(on_threads, own_lowerings):
    custom_template.register()
    on_threads(custom_template.model, torch.randn(5, 16), torch.randn(70, 16), **CLOSE)
