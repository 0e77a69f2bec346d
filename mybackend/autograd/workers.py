"""How many threads run the CPU nodes of one backward: `set_cpu_workers()`, `use_cpu_workers()`.

With one worker, the default, CPU nodes run on the thread that called backward. With more, independent branches run at
once, and hooks and nodes written in Python are called from other threads. Gradients are equal to the last bit.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mybackend import _C

__all__ = ["get_cpu_workers", "set_cpu_workers", "use_cpu_workers"]


def get_cpu_workers() -> int:
    """The number of threads for the CPU nodes of a backward that begins now, the calling thread included."""
    return _C.engine_cpu_workers()


def set_cpu_workers(count: int) -> None:
    """Lets `count` threads, the calling one included, run the CPU nodes of every backward that begins from now on.

    Raises ValueError unless `count` is from 1 to 1024.
    """
    _C.engine_set_cpu_workers(count)


@contextmanager
def use_cpu_workers(count: int) -> Iterator[None]:
    """set_cpu_workers() for a `with` block."""
    before = get_cpu_workers()
    set_cpu_workers(count)
    try:
        yield
    finally:
        set_cpu_workers(before)


def from_environment() -> None:
    """Sets what MYBACKEND_ENGINE_CPU_WORKERS asks for; called when mybackend is imported."""
    text = os.environ.get("MYBACKEND_ENGINE_CPU_WORKERS", "")
    if not text:
        return
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ValueError(f"MYBACKEND_ENGINE_CPU_WORKERS={text!r}: expected a number from 1 to 1024")
    set_cpu_workers(int(text))
