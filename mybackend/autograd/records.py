"""What a trace of the engine consists of: one record a backward, one record a node that ran.

All times are nanoseconds of one monotonic clock, that of time.monotonic_ns(), so that threads can be compared.
"""

from dataclasses import dataclass

__all__ = ["Backward", "NodeRun"]


@dataclass(frozen=True, slots=True)
class Backward:
    """One call of backward() or grad(), nested ones included."""

    number: int  #: the graph task's id, as torch._C._current_graph_task_id() says inside of it
    depth: int  #: how many backwards enclose it
    thread: int  #: native id of the thread that called
    begin: int
    planned: int  #: when the graph had been visited and the first node could run
    end: int
    nodes: int  #: in the plan, whether they ran or not
    edges: int
    failed: bool

    @property
    def duration(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One node that ran."""

    backward: int  #: number of its Backward
    name: str
    sequence: int  #: the node's sequence number; 2**64 - 1 for leaves
    ready: int  #: when its last gradient had arrived
    begin: int  #: when a thread turned to it
    end: int  #: after its gradients were handed on
    lock: int  #: time it waited for other threads: for the seat of its device, inside the same node, for the GIL
    sum: int  #: time spent on adding its gradients to gradients that had arrived before
    sums: int  #: how many such additions
    bytes: int  #: of the gradients it produced
    edges: int  #: whose gradients it waited for
    thread: int  #: native id of the thread that ran it
    device: str
    stream: int  #: id of the stream it ran on, 0 for the default stream and on the CPU

    @property
    def duration(self) -> int:
        return self.end - self.begin

    @property
    def queued(self) -> int:
        """Nanoseconds between being ready and running."""
        return self.begin - self.ready
