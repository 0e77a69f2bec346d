"""Traces: what is recorded, how it is exported, and what explain() says of it."""

import json
import re

import pytest
import torch
from autograd_engine.vocabulary import Call, calling, leaf, nest

from mybackend.autograd import Trace, explain, trace
from mybackend.autograd.records import Backward, NodeRun

MS = 1_000_000


def backward(number=0, begin=0, planned=1 * MS, end=10 * MS, **changes) -> Backward:
    fields = {"depth": 0, "thread": 1, "nodes": 3, "edges": 2, "failed": False} | changes
    return Backward(number=number, begin=begin, planned=planned, end=end, **fields)


def node(name, begin, end, **changes) -> NodeRun:
    fields = {"backward": 0, "sequence": 1, "ready": begin, "lock": 0, "sum": 0, "sums": 0, "bytes": 0, "edges": 1}
    fields |= {"thread": 1, "device": "cpu", "stream": 0} | changes
    return NodeRun(name=name, begin=begin, end=end, **fields)


@pytest.fixture
def two_threads() -> Trace:
    """One backward of 10 ms: 1 ms of planning, two nodes on the caller, then one on a device's worker."""
    return Trace(
        [backward()],
        [
            node("MulBackward0", 1 * MS, 3 * MS),
            node("ToCopyBackward0", 3 * MS, 4 * MS, bytes=2048),
            node("SinBackward0", 6 * MS, 9 * MS, ready=4 * MS, thread=2, device="mybackend:0", lock=MS, sum=MS, sums=2),
        ],
    )


def test_a_trace_has_every_node_with_its_times_in_order():
    x = leaf(2)
    with trace() as recorded:
        (x.sin() * 2).sum().backward()
    (one,) = recorded.backwards
    names = ["SumBackward0", "MulBackward0", "SinBackward0", "torch::autograd::AccumulateGrad"]
    assert [node.name for node in recorded.nodes] == names
    assert (one.depth, one.nodes, one.edges, one.failed) == (0, 4, 3, False)
    assert [node.edges for node in recorded.nodes] == [1, 1, 1, 1]
    times = [one.begin, one.planned]
    for node in recorded.nodes:
        assert node.backward == one.number and node.thread == one.thread and node.device == "cpu"
        assert one.planned <= node.ready <= node.begin
        times += [node.begin, node.end]
    assert [*times, one.end] == sorted([*times, one.end])


def test_a_trace_says_where_bytes_and_sums_are():
    x = torch.ones(1000, requires_grad=True)
    with trace() as recorded:
        torch.stack([(x * k).sum() for k in range(5)]).sum().backward()
    products = [node for node in recorded.nodes if node.name == "MulBackward0"]
    assert [node.bytes for node in products] == [4000] * 5
    assert sum(node.sums for node in recorded.nodes) == 4
    assert all((node.sum > 0) == (node.sums > 0) for node in recorded.nodes)


def test_nested_backwards_are_told_by_their_depth():
    with trace() as recorded:
        nest(3, lambda: None)
    assert [one.depth for one in recorded.backwards] == [0, 1, 2]


def test_a_failed_backward_is_in_the_trace():
    def fail():
        raise ValueError

    with trace() as recorded, pytest.raises(ValueError):
        calling(fail).backward()
    assert [one.failed for one in recorded.backwards] == [True]


def test_nodes_of_devices_and_streams_are_told_apart():
    x = torch.ones(4, device="mybackend:1", requires_grad=True)
    with trace() as recorded:
        (x * 2).cpu().sum().backward()
    devices = {node.name: node.device for node in recorded.nodes}
    assert devices["MulBackward0"] == "mybackend:1" and devices["SumBackward0"] == "cpu"


def test_nothing_is_recorded_outside_the_block():
    leaf(2).sum().backward()
    with trace() as recorded:
        pass
    leaf(2).sum().backward()
    assert recorded.backwards == [] and recorded.nodes == []


def test_one_trace_is_recorded_at_a_time_and_an_error_ends_it():
    with (
        trace(),
        pytest.raises(RuntimeError, match="being recorded already"),
        trace(),
    ):
        pass
    with pytest.raises(ZeroDivisionError), trace():
        raise ZeroDivisionError
    with trace() as recorded:
        leaf(2).sum().backward()
    assert len(recorded.backwards) == 1


def test_gradients_and_order_are_those_of_a_run_without_a_trace():
    x, order = leaf(2), []
    low, high = Call.apply(x, lambda grad: order.append("low")), Call.apply(x, lambda grad: order.append("high"))
    with trace():
        (low * 2 + high * 3).sum().backward()
    assert order == ["high", "low"] and x.grad.tolist() == [5, 5]


def test_a_chrome_trace_has_a_row_a_thread_and_an_arrow_from_caller_to_worker(two_threads, tmp_path):
    two_threads.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [(event["name"], event["tid"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
    assert spans == [
        ("backward 0", 1, 0, 10_000),
        ("plan", 1, 0, 1000),
        ("MulBackward0", 1, 1000, 2000),
        ("ToCopyBackward0", 1, 3000, 1000),
        ("SinBackward0", 2, 6000, 3000),
    ]
    arrows = [(event["ph"], event["tid"], event["ts"]) for event in events if event["ph"] in "sf"]
    assert arrows == [("s", 1, 4000), ("f", 2, 6000)]
    rows = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert rows == {1: "caller 1", 2: "worker of mybackend:0 2"}


def test_a_picture_is_drawn_in_the_format_of_the_suffix(two_threads, tmp_path):
    pytest.importorskip("matplotlib")
    two_threads.picture(tmp_path / "trace.png")
    two_threads.picture(tmp_path / "trace.svg")
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "trace.svg").read_text()


def test_an_empty_trace_has_no_picture(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="the trace is empty"):
        Trace().picture(tmp_path / "trace.png")


def test_explain_accounts_for_nodes_planning_queues_switches_copies_sums_and_locks(two_threads):
    assert two_threads.explain().splitlines() == [
        "Backward 0: 10.0 ms, 3 of 3 nodes ran, on 2 threads and cpu, mybackend:0.",
        "  nodes: 6.00 ms (60 %)",
        "    SinBackward0: 3.00 ms in 1, 3.00 ms each",
        "    MulBackward0: 2.00 ms in 1, 2.00 ms each",
        "    ToCopyBackward0: 1.00 ms in 1, 1.00 ms each",
        "  planning: 1.00 ms (10 %), 2 edges",
        "  queue: 3.00 ms (30 %) in which no node ran",
        "  device switches: 1, with 2.00 ms (20 %) between the nodes",
        "  copies: 1 nodes moved 2.0 KiB in 1.00 ms (10 %)",
        "  sums: 2 additions of gradients in 1.00 ms (10 %)",
        "  locks: 1.00 ms (10 %) waiting for a device's seat, a node's lock, the GIL",
        "  Most of it (30 %) went into SinBackward0 nodes.",
    ]


def test_explain_names_what_dominates():
    waiting = Trace(
        [backward()], [node("A", 1 * MS, 2 * MS), node("A", 9 * MS, 10 * MS, device="mybackend:0", thread=2)]
    )
    assert waiting.explain().endswith("went into device switches: keep neighbouring operators on one device.")
    planning = Trace([backward(planned=9 * MS)], [node("A", 9 * MS, 10 * MS)])
    assert "went into planning" in planning.explain()


def test_explain_counts_nested_backwards_into_the_outer_one():
    outer, inner = backward(), backward(number=1, begin=2 * MS, planned=2 * MS, end=4 * MS, depth=1)
    text = Trace([outer, inner], [node("CallBackward", 1 * MS, 9 * MS)]).explain()
    assert "nested: 1 backwards inside of nodes took 2.00 ms (20 %)" in text
    assert "Backward 1:" not in text


def test_explain_runs_a_backward_and_says_if_none_ran():
    assert "AccumulateGrad" in explain(leaf(2).sum().backward)
    assert explain(lambda: None) == "No backward ran on mybackend's engine while the trace was recorded."


SCRIPT = """
import sys, torch
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
print(sys.argv[1:], __name__)
sys.exit(3)
"""


def test_the_command_line_runs_a_script_and_writes_its_trace(tmp_path, capsys):
    from mybackend.__main__ import main

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    written = tmp_path / "trace.json"
    assert main(["trace", "--output", str(written), str(script), "one", "--two"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "['one', '--two'] __main__\n"
    assert re.match(r"Backward \d+: [\d.]+ [mu]s, 3 of 3 nodes ran, on 1 thread and cpu\.", printed.err)
    names = {event["name"] for event in json.loads(written.read_text())["traceEvents"]}
    assert {"MulBackward0", "SumBackward0", "plan"} <= names
