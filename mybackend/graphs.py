"""Graphs: work captured once and replayed, as torch.cuda.graphs.

g = torch.mybackend.Graph()
with torch.mybackend.graph(g):
    y = model(x)
x.copy_(batch); g.replay()
"""

import gc
from types import TracebackType

import torch

from mybackend import _C
from mybackend.device import synchronize
from mybackend.memory import empty_cache
from mybackend.streams import Stream, current_stream

__all__ = ["Graph", "graph", "graph_pool_handle", "is_current_stream_capturing"]

Graph = _C.Graph


def graph_pool_handle() -> tuple[int, int]:
    """A memory pool that several graphs may share, replayed in the order they were captured in."""
    return _C.new_pool_id()


def is_current_stream_capturing() -> bool:
    return _C.is_current_stream_capturing()


class graph:
    """Captures the work of its body into a graph.

    Args:
        mybackend_graph: the Graph that receives it.
        pool: from `graph_pool_handle()` or another graph's `pool()`; a pool of its own by default.
        stream: the stream to capture on; one kept for captures by default.
    """

    _capture_stream: Stream | None = None

    def __init__(
        self, mybackend_graph: _C.Graph, pool: tuple[int, int] | None = None, stream: torch.Stream | None = None
    ) -> None:
        if stream is None:
            if graph._capture_stream is None:
                graph._capture_stream = Stream()
            stream = graph._capture_stream
        self.graph = mybackend_graph
        self.pool = (0, 0) if pool is None else pool
        self.stream = stream

    def __enter__(self) -> None:
        synchronize()
        gc.collect()
        empty_cache()
        before = current_stream()
        self.stream.__enter__()
        try:
            self.stream.wait_stream(before)
            self.graph.capture_begin(self.pool)
        except BaseException as error:
            self.stream.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.graph.capture_end()
        finally:
            self.stream.__exit__(kind, value, trace)
