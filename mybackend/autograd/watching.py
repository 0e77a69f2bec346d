"""The watchdog: says which nodes wait for which edges when a backward makes no progress.

    mybackend.autograd.set_watchdog(30)        # seconds; or MYBACKEND_ENGINE_WATCHDOG=30
    with mybackend.autograd.watchdog(5): ...   # for a block

A Python thread looks at the backwards that run on mybackend's engine. It cannot report while a node keeps the GIL.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mybackend import _C

__all__ = ["set_watchdog", "watchdog"]


def _print(report: str) -> None:
    print(f"mybackend.autograd.watchdog: {report}", file=sys.stderr, flush=True)


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.1f} s"


def describe(backward: _C.RunningBackward, now: int) -> str:
    """What a backward that runs waits for: the nodes that run, those that could, and those that miss gradients."""
    lines = [
        f"Backward {backward.backward}, called by thread {backward.thread}: no progress for "
        f"{_seconds(now - backward.progress_ns)}, {backward.ran} of {backward.nodes} nodes have run."
    ]
    for node in backward.running:
        lines.append(
            f"  running: {node.name} [{node.index}] in thread {node.thread} for {_seconds(now - node.since_ns)}"
        )
    for waiting in backward.waiting:
        label = f"{waiting.name} [{waiting.index}] on {_device(waiting.device)}"
        if waiting.missing == 0:
            lines.append(f"  ready: {label}")
        else:
            more = ", ..." if waiting.missing > len(waiting.edges) else ""
            count = f"{waiting.missing} gradient{'s' if waiting.missing > 1 else ''}"
            lines.append(f"  waiting: {label} for {count}, of {', '.join(waiting.edges)}{more}")
    unnamed = backward.nodes - backward.ran - len(backward.running) - len(backward.waiting)
    if unnamed > 0:
        lines.append(f"  and {unnamed} nodes more")
    return "\n".join(lines)


def _device(index: int) -> str:
    return "cpu" if index < 0 else f"mybackend:{index}"


class _Watchdog:
    """A daemon thread that reports each stall once, until the backward makes progress again."""

    def __init__(self, seconds: float, report: Callable[[str], None]):
        self.seconds, self.report = seconds, report
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, name="mybackend.autograd.watchdog", daemon=True)
        self.thread.start()

    def run(self) -> None:
        reported: set[int] = set()
        while not self.over.wait(self.seconds / 4):
            now = time.monotonic_ns()
            stalled = {
                backward.backward: describe(backward, now)
                for backward in _C.engine_running()
                if now - backward.progress_ns >= self.seconds * 1e9
            }
            for number, text in stalled.items():
                if number not in reported:
                    self.report(text)
            reported = set(stalled)

    def stop(self) -> None:
        self.over.set()
        if self.thread is not threading.current_thread():
            self.thread.join()


_current: _Watchdog | None = None


def set_watchdog(seconds: float | None, report: Callable[[str], None] | None = None) -> None:
    """Reports every backward of this process that makes no progress, that is, starts and ends no node, for `seconds`.

    `report` is called with the text, in the watchdog's thread; by default it is written to stderr. Backwards that run
    already are not watched. None switches the watchdog off. Raises ValueError for a time that is not positive.
    """
    global _current
    if seconds is not None and not seconds > 0:
        raise ValueError(f"set_watchdog: seconds must be positive or None, got {seconds!r}")
    if _current is not None:
        _current.stop()
        _current = None
    _C.engine_set_watched(seconds is not None)
    if seconds is not None:
        _current = _Watchdog(seconds, report or _print)


@contextmanager
def watchdog(seconds: float, report: Callable[[str], None] | None = None) -> Iterator[None]:
    """set_watchdog() for a block; the one before, if there was one, comes back afterwards."""
    before = _current
    set_watchdog(seconds, report)
    try:
        yield
    finally:
        if before is None:
            set_watchdog(None)
        else:
            set_watchdog(before.seconds, before.report)


def start_from_environment() -> None:
    """Starts the watchdog that MYBACKEND_ENGINE_WATCHDOG asks for; called when the engine is first enabled."""
    text = os.environ.get("MYBACKEND_ENGINE_WATCHDOG", "")
    if not text or _current is not None:
        return
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not seconds > 0:
        raise ValueError(f"MYBACKEND_ENGINE_WATCHDOG={text!r}: expected a positive number of seconds")
    set_watchdog(seconds)


def _after_fork_in_child() -> None:
    """The watchdog's thread does not exist in a child; the child gets one of its own."""
    global _current
    if _current is not None:
        seconds, report = _current.seconds, _current.report
        _current = None
        set_watchdog(seconds, report)


os.register_at_fork(after_in_child=_after_fork_in_child)
