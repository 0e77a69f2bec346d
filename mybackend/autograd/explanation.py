"""What the backwards of a trace spent their time on, in words."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mybackend.autograd.records import Backward, NodeRun

if TYPE_CHECKING:
    from mybackend.autograd.tracing import Trace

# Nodes whose work is to move or convert a gradient.
COPIES = {"ToCopyBackward0", "torch::autograd::CopyBackwards", "torch::autograd::CopySlices"}
KINDS = 5  # of nodes that are named


def explain(trace: "Trace", slowest: int | None = None) -> str:
    """One paragraph a backward that was called from outside of any other; nested ones are counted into it.

    `slowest` limits the text to that many, slowest first.
    """
    if not trace.backwards:
        return "No backward ran on mybackend's engine while the trace was recorded."
    nodes = defaultdict(list)
    for node in trace.nodes:
        nodes[node.backward].append(node)
    outer = [backward for backward in trace.backwards if backward.depth == 0]
    if slowest is not None:
        outer = sorted(outer, key=lambda backward: -backward.duration)[:slowest]
    paragraphs = []
    for backward in outer:
        inside = [
            inner
            for inner in trace.backwards
            if inner.depth > backward.depth and backward.begin <= inner.begin and inner.end <= backward.end
        ]
        paragraphs.append("\n".join(lines_of(backward, nodes[backward.number], inside)))
    return "\n\n".join(paragraphs)


def milliseconds(nanoseconds: float) -> str:
    value = nanoseconds / 1e6
    return f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms" if value >= 0.1 else f"{nanoseconds / 1e3:.1f} us"


def size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def covered(nodes: Iterable[NodeRun]) -> int:
    """Time in which at least one of the nodes ran."""
    total, reached = 0, 0
    for node in sorted(nodes, key=lambda node: node.begin):
        begin = max(node.begin, reached)
        if node.end > begin:
            total += node.end - begin
            reached = node.end
    return total


def switches(nodes: list[NodeRun]) -> tuple[int, int]:
    """How often a node began on another device than the node begun before it, and how long nothing ran in between."""
    count, gap = 0, 0
    reached = 0
    before: NodeRun | None = None
    for node in sorted(nodes, key=lambda node: node.begin):
        if before is not None and node.device != before.device:
            count += 1
            gap += max(0, node.begin - reached)
        before, reached = node, max(reached, node.end)
    return count, gap


def lines_of(backward: Backward, nodes: list[NodeRun], inside: list[Backward]) -> list[str]:
    duration = max(backward.duration, 1)

    def share(part: float) -> str:
        return f"{100 * part / duration:.0f} %"

    threads, devices = {node.thread for node in nodes}, sorted({node.device for node in nodes})
    running = covered(nodes)
    planning = backward.planned - backward.begin
    # What a node waits for while a node of the same thread runs is order, not delay: only time in which nothing ran
    # was lost to queues.
    between = max(0, duration - planning - running)
    lock, added = sum(node.lock for node in nodes), sum(node.sum for node in nodes)
    sums = sum(node.sums for node in nodes)
    switched, gap = switches(nodes)
    copies = [node for node in nodes if node.name in COPIES]
    copied, moved = sum(node.duration for node in copies), sum(node.bytes for node in copies)

    where = f"{len(threads)} thread{'s' if len(threads) != 1 else ''} and {', '.join(devices) or 'no device'}"
    lines = [
        f"Backward {backward.number}: {milliseconds(backward.duration)}, {len(nodes)} of {backward.nodes} nodes ran, "
        f"on {where}" + ("; it failed." if backward.failed else ".")
    ]
    lines.append(f"  nodes: {milliseconds(running)} ({share(running)})")
    spent: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for node in nodes:
        spent[node.name] += node.duration
        times[node.name] += 1
    for name, time in spent.most_common(KINDS):
        lines.append(f"    {name}: {milliseconds(time)} in {times[name]}, {milliseconds(time / times[name])} each")
    lines.append(f"  planning: {milliseconds(planning)} ({share(planning)}), {backward.edges} edges")
    lines.append(f"  queue: {milliseconds(between)} ({share(between)}) in which no node ran")
    lines.append(f"  device switches: {switched}, with {milliseconds(gap)} ({share(gap)}) between the nodes")
    lines.append(f"  copies: {len(copies)} nodes moved {size(moved)} in {milliseconds(copied)} ({share(copied)})")
    lines.append(f"  sums: {sums} additions of gradients in {milliseconds(added)} ({share(added)})")
    lines.append(f"  locks: {milliseconds(lock)} ({share(lock)}) waiting for a device's seat, a node's lock, the GIL")
    if inside:
        nested = sum(inner.duration for inner in inside if inner.depth == backward.depth + 1)
        lines.append(f"  nested: {len(inside)} backwards inside of nodes took {milliseconds(nested)} ({share(nested)})")
    parts = {
        f"{spent.most_common(1)[0][0]} nodes" if spent else "nodes": spent.most_common(1)[0][1] if spent else 0,
        "planning: a call of grad() with near targets, or fewer small nodes, would help": planning,
        "device switches: keep neighbouring operators on one device": gap,
        "waiting in queues": between - gap,
        "copies between devices and dtypes": copied,
        "adding gradients": added,
        "locks: several threads run the same nodes": lock,
    }
    most, time = max(parts.items(), key=lambda item: item[1])
    lines.append(f"  Most of it ({share(time)}) went into {most}.")
    return lines
