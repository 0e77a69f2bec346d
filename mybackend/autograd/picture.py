"""The picture of a trace, drawn with matplotlib, which is an optional dependency."""

import os
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mybackend.autograd.tracing import Trace

NAMED = 9  # kinds of nodes with a colour of their own


def draw(trace: "Trace", path: str | os.PathLike[str]) -> None:
    """Draws `trace` into the file `path`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError as error:
        raise ImportError("Trace.picture() needs matplotlib: pip install mybackend[trace]") from error

    if not trace.backwards:
        raise ValueError("the trace is empty: no backward ran on mybackend's engine while it was recorded")
    start = min(backward.begin for backward in trace.backwards)
    callers = list(dict.fromkeys(backward.thread for backward in trace.backwards))
    workers = sorted({(node.device, node.thread) for node in trace.nodes if node.thread not in callers})
    rows = {thread: row for row, thread in enumerate([*callers, *dict.fromkeys(thread for _, thread in workers)])}
    names = {thread: f"caller {thread}" for thread in callers} | {
        thread: f"{name} {thread}" for name, thread in workers
    }

    spent: Counter[str] = Counter()
    for node in trace.nodes:
        spent[node.name] += node.duration
    kinds = [name for name, _ in spent.most_common(NAMED)]
    colours = {name: f"C{number}" for number, name in enumerate(kinds)}

    figure = Figure(figsize=(12, 1.6 + 0.7 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for backward in trace.backwards:
        span = ((backward.begin - start) / 1e6, backward.duration / 1e6)
        plan = (span[0], (backward.planned - backward.begin) / 1e6)
        axes.broken_barh([span], (rows[backward.thread] - 0.42, 0.84), facecolors="0.92", edgecolor="0.7")
        axes.broken_barh([plan], (rows[backward.thread] - 0.42, 0.84), facecolors="0.75")
    for name in (*kinds, None):
        for thread, row in rows.items():
            spans = [
                ((node.begin - start) / 1e6, node.duration / 1e6)
                for node in trace.nodes
                if node.thread == thread and (node.name == name or (name is None and node.name not in colours))
            ]
            if spans:
                axes.broken_barh(spans, (row - 0.3, 0.6), facecolors=colours.get(name or "", "0.5"))
    axes.set_yticks(range(len(rows)), [names[thread] for thread in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("ms")
    axes.set_xlim(left=0)
    handles = [Patch(color=colours[name], label=name.removeprefix("torch::autograd::")) for name in kinds]
    handles += [Patch(color="0.5", label="others")] * (len(spent) > len(kinds))
    handles += [Patch(color="0.75", label="plan"), Patch(color="0.92", label="backward")]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize="small", frameon=False)
    figure.savefig(path)
