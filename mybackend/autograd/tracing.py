"""Recording what the engine does: `trace()`, and what can be made of a recording.

with mybackend.autograd.trace() as trace:
    loss.backward()
trace.save("backward.json")      # for chrome://tracing or https://ui.perfetto.dev
trace.picture("backward.png")    # needs matplotlib
print(trace.explain())
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mybackend import _C
from mybackend.autograd.engine import use_engine
from mybackend.autograd.records import Backward, NodeRun

__all__ = ["Trace", "explain", "trace"]


@dataclass
class Trace:
    """The backwards of a block, in the order in which they began, and their nodes, in the order in which they ended."""

    backwards: list[Backward] = field(default_factory=list)
    nodes: list[NodeRun] = field(default_factory=list)

    def events(self) -> list[dict[str, Any]]:
        """The trace in Chrome's Trace Event Format: one row a thread, nodes inside their backwards, arrows where a
        node ran on another thread than the one that called backward."""
        process = os.getpid()
        start = min((backward.begin for backward in self.backwards), default=0)
        rows: dict[int, str] = {}
        events: list[dict[str, Any]] = []

        def complete(name: str, category: str, thread: int, begin: int, end: int, arguments: dict[str, Any]) -> None:
            times = {"ts": (begin - start) / 1000, "dur": (end - begin) / 1000}
            events.append(
                {"name": name, "cat": category, "ph": "X", "pid": process, "tid": thread, **times, "args": arguments}
            )

        for backward in self.backwards:
            rows.setdefault(backward.thread, "caller")
            title = f"backward {backward.number}" + (" (failed)" if backward.failed else "")
            totals = {"nodes": backward.nodes, "edges": backward.edges, "depth": backward.depth}
            complete(title, "backward", backward.thread, backward.begin, backward.end, totals)
            complete("plan", "engine", backward.thread, backward.begin, backward.planned, {})
        callers = {backward.number: backward for backward in self.backwards}
        for number, node in enumerate(self.nodes):
            rows.setdefault(node.thread, f"worker of {node.device}")
            about: dict[str, Any] = {
                "backward": node.backward,
                "sequence number": node.sequence,
                "device": node.device,
                "stream": node.stream,
                "queued us": node.queued / 1000,
                "lock us": node.lock / 1000,
                "sum us": node.sum / 1000,
                "sums": node.sums,
                "bytes": node.bytes,
                "edges": node.edges,
            }
            complete(node.name, node.device, node.thread, node.begin, node.end, about)
            caller = callers.get(node.backward)
            if caller is not None and caller.thread != node.thread:
                arrow = {"cat": "queue", "name": "ready", "id": number, "pid": process}
                ready = min(max(node.ready, caller.begin), caller.end)
                events.append({"ph": "s", "tid": caller.thread, "ts": (ready - start) / 1000, **arrow})
                events.append({"ph": "f", "bp": "e", "tid": node.thread, "ts": (node.begin - start) / 1000, **arrow})
        for thread, name in rows.items():
            events.append(
                {"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": f"{name} {thread}"}}
            )
        return events

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as JSON that chrome://tracing and Perfetto open."""
        Path(path).write_text(json.dumps({"traceEvents": self.events(), "displayTimeUnit": "ns"}))

    def picture(self, path: str | os.PathLike[str]) -> None:
        """Draws the trace: a row a thread, a colour a kind of node; the format follows the suffix (png, svg, pdf).

        Raises ImportError if matplotlib is not installed.
        """
        from mybackend.autograd import picture

        picture.draw(self, path)

    def explain(self, slowest: int | None = None) -> str:
        """Says in words what the backwards spent their time on: all, or the `slowest` ones, slowest first."""
        from mybackend.autograd import explanation

        return explanation.explain(self, slowest)


@contextmanager
def trace() -> Iterator[Trace]:
    """Records every backward that runs on mybackend's engine inside of the block, in all threads.

    Backwards that began before the block are not in the trace, nor is what a backward does after the block. Recording
    costs about a microsecond a node. Tracing enables the engine for the block if it is not enabled.

    Raises RuntimeError if a trace is being recorded already.
    """
    result = Trace()
    with use_engine("mybackend"):
        _C.engine_start_recording()
        try:
            yield result
        finally:
            backwards, nodes = _C.engine_stop_recording()
            result.backwards = sorted(map(_backward, backwards), key=lambda one: one.begin)
            result.nodes = [_node(record) for record in nodes]


def _backward(record: _C.BackwardRecord) -> Backward:
    return Backward(
        number=record.backward,
        depth=record.depth,
        thread=record.thread,
        begin=record.begin_ns,
        planned=record.planned_ns,
        end=record.end_ns,
        nodes=record.nodes,
        edges=record.edges,
        failed=record.failed,
    )


def _node(record: _C.NodeRecord) -> NodeRun:
    return NodeRun(
        backward=record.backward,
        name=record.name,
        sequence=record.sequence,
        ready=record.ready_ns,
        begin=record.start_ns,
        end=record.end_ns,
        lock=record.seat_ns - record.start_ns + record.lock_ns,
        sum=record.sum_ns,
        sums=record.sums,
        bytes=record.bytes,
        edges=record.waited_for,
        thread=record.thread,
        device="cpu" if record.device < 0 else f"mybackend:{record.device}",
        stream=record.stream,
    )


def explain(act: Callable[[], object]) -> str:
    """Calls `act` and says in words what the backwards in it spent their time on.

    >>> print(mybackend.autograd.explain(loss.backward))
    """
    with trace() as recorded:
        act()
    return recorded.explain()
