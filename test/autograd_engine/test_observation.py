"""What upstream's tools see of a backward: the profiler's events, debug logging, nodes asked from inside."""

import logging

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf
from torch.profiler import ProfilerActivity, profile

pytestmark = pytest.mark.usefixtures("engine")


def test_the_profiler_has_two_events_a_node_under_upstreams_names():
    x = leaf(2)
    with profile(activities=[ProfilerActivity.CPU]) as record:
        (x.sin() * 2).sum().backward()
    names = [event.name for event in record.events() if "Backward" in event.name or "autograd" in event.name]
    evaluate = "autograd::engine::evaluate_function: "
    nodes = ["SumBackward0", "MulBackward0", "SinBackward0", "torch::autograd::AccumulateGrad"]
    assert names == [name for node in nodes for name in (evaluate + node, node)]


def test_the_profiler_links_a_node_to_its_forward_operator():
    x = leaf(2)
    with profile(activities=[ProfilerActivity.CPU]) as record:
        (x.sin() * 2).sum().backward()
    numbers = {event.name: event.sequence_nr for event in record.events() if event.sequence_nr >= 0}
    threads = {event.name: event.fwd_thread for event in record.events() if event.sequence_nr >= 0}
    for forward, backward in {
        "aten::sin": "SinBackward0",
        "aten::mul": "MulBackward0",
        "aten::sum": "SumBackward0",
    }.items():
        assert numbers[forward] == numbers[backward]
        assert threads[forward] == 0 and threads[backward] > 0


def test_debug_logging_names_every_node_in_order():
    lines = []

    class Collect(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    log = torch.autograd.graph.log
    handler, level = Collect(), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        (leaf(2).sin() * 2).sum().backward()
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
    assert [line.split()[1].strip("<") for line in lines] == [
        "SumBackward0",
        "MulBackward0",
        "SinBackward0",
        "AccumulateGrad",
    ]
    assert lines[0].startswith("Executing: <SumBackward0 object at 0x") and lines[0].endswith(
        "with grad_outputs: [f32[]]"
    )


def test_the_current_node_can_be_asked_from_a_node_and_from_its_hooks():
    seen, x = [], leaf(2)
    y = x.sin()
    z = Call.apply(y, lambda grad: seen.append(torch._C._current_autograd_node()))
    y.register_hook(lambda grad: seen.append(torch._C._current_autograd_node()))
    z.sum().backward()
    assert seen == [z.grad_fn, y.grad_fn]
    assert torch._C._current_autograd_node() is None


def test_every_backward_has_an_id_of_its_own():
    ids = []
    for _ in range(2):
        Call.apply(leaf(1), lambda grad: ids.append(torch._C._current_graph_task_id())).sum().backward()
    assert ids[0] >= 0 and ids[1] > ids[0]
    assert torch._C._current_graph_task_id() == -1
