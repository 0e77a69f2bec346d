"""Callbacks queued during backward (`queue_callback`): when they run, in which state, what their errors do."""

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf, message

pytestmark = pytest.mark.usefixtures("engine")


def queue(callback) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def backward_queueing(*callbacks) -> None:
    """A backward whose node queues the callbacks."""
    Call.apply(leaf(2), lambda grad: [queue(callback) for callback in callbacks] and None).sum().backward()


def test_callbacks_run_in_order_after_all_nodes_and_may_queue_more():
    log, x = [], leaf(2)
    x.register_post_accumulate_grad_hook(lambda leaf: log.append("accumulated"))

    def first():
        log.append("first")
        queue(lambda: log.append("queued by first"))

    Call.apply(x, lambda grad: (queue(first), queue(lambda: log.append("second")), None)[2]).sum().backward()
    assert log == ["accumulated", "first", "second", "queued by first"]


def test_callbacks_belong_to_the_backward_that_queued_them():
    log, x = [], leaf(2)
    x.register_post_accumulate_grad_hook(lambda leaf: log.append("outer accumulated"))

    def node(grad):
        queue(lambda: log.append("outer callback"))
        with torch.enable_grad():
            backward_queueing(lambda: log.append("inner callback"))
        log.append("inner returned")

    Call.apply(x, node).sum().backward()
    assert log == ["inner callback", "inner returned", "outer accumulated", "outer callback"]


def test_callbacks_can_be_queued_during_backward_only():
    assert message(lambda: queue(lambda: None)) == (
        "RuntimeError: Final callbacks can only be installed during backward pass."
    )


def test_a_callback_that_raises_ends_the_backward_and_the_callbacks_after_it():
    log = []

    def fail():
        raise KeyError("callback")

    assert message(lambda: backward_queueing(fail, lambda: log.append("later"))) == "KeyError: 'callback'"
    assert log == []


def test_no_callback_runs_after_a_node_failed():
    log = []

    def node(grad):
        queue(lambda: log.append("callback"))
        raise ValueError("node")

    assert message(Call.apply(leaf(2), node).sum().backward) == "ValueError: node"
    assert log == []


def test_a_callback_runs_without_grad_mode_in_the_callers_autocast_inside_the_graph_task():
    seen = []

    def callback():
        seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch._C._current_graph_task_id() >= 0))

    with torch.autocast("cpu"):
        backward_queueing(callback)
    assert seen == [(False, True, True)]


def test_a_callback_may_run_a_backward():
    x = leaf(2)

    def callback():
        with torch.enable_grad():
            (x * 2).sum().backward()

    backward_queueing(callback)
    assert x.grad.tolist() == [2, 2]


def test_callbacks_run_for_grad_too():
    log, x = [], leaf(2)
    torch.autograd.grad(Call.apply(x, lambda grad: queue(lambda: log.append("ran"))).sum(), x)
    assert log == ["ran"]
