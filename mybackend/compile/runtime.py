"""What generated modules import: compiles the kernels of a graph in the background and makes them callable.

    compiled_kernels = load_kernels(source)
    kernel = compiled_kernels.kernel(name, signature, items, work, form, unit, can_fail, messages)
    kernel(device index, *arguments)

The compiler starts at once and is waited for by the first call, so that it runs beside the compilation of the next
graph. This module imports nothing of Inductor's code generation: on a cache hit no more than this is needed.
"""

from __future__ import annotations

import atexit
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch._C._dynamo.guards import assert_size_stride

import mybackend
from mybackend import _C
from mybackend.compile import cache, toolchain

__all__ = ["Kernels", "compiler_runs", "get_raw_stream", "laid_out", "load_kernels"]

_runs = 0
_pool: ThreadPoolExecutor | None = None
_pool_owner = 0


def compiler_runs() -> int:
    """How many times this process has started a compiler; 0 when everything came from the cache."""
    return _runs


def laid_out(tensor: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    """The tensor if its strides (those of dimensions of one element aside) are `stride`; else a copy that has them.

    Raises AssertionError if its size is not `size`: the operator's meta kernel is wrong then.
    """
    try:
        assert_size_stride(tensor, size, stride)
    except AssertionError:
        if tensor.shape != size:
            raise
        return torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
    return tensor


def _executor() -> ThreadPoolExecutor:
    """One thread per compiler that may run at a time; a forked child has none of its parent's."""
    global _pool, _pool_owner
    if _pool is None or _pool_owner != os.getpid():
        _pool, _pool_owner = ThreadPoolExecutor(os.cpu_count() or 1, "mybackend-compile"), os.getpid()
        atexit.register(_pool.shutdown, wait=False, cancel_futures=True)
    return _pool


def _compile(source: str, compiler: toolchain.Compiler) -> Path:
    global _runs
    target = cache.path_of(compiler.key(source), compiler.suffix)
    if not target.exists():
        _runs += 1
        compiler.compile(source, target)
    return target


class Kernels:
    """The kernels of one graph."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._object: Future[Path] = _executor().submit(_compile, source, toolchain.compiler())

    def path(self) -> str:
        """Waits for the compiler; raises what it says if it fails."""
        return str(self._object.result())

    def kernel(
        self,
        name: str,
        signature: str,
        items: list[int],
        work: list[int],
        form: int,
        unit: int,
        can_fail: bool,
        messages: list[str],
    ) -> Any:
        return _C.CompiledKernel(name, signature, items, work, form, unit, can_fail, messages, self.path)


def load_kernels(source: str) -> Kernels:
    return Kernels(source)


def get_raw_stream(device_index: int) -> int:
    """The driver's handle of the current stream, for code that Inductor writes itself; our kernels need not be told."""
    return mybackend.current_stream(device_index).mybackend_stream
