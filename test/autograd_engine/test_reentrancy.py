"""Backward inside backward: any depth, threads every 61 levels, the same graph again inside itself."""

import concurrent.futures
import itertools
import sys
import threading

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf, native_threads, nest

pytestmark = pytest.mark.usefixtures("engine")


def levels_per_thread(levels: int, multithreading: bool = True) -> list[int]:
    """Of a new thread: with a torch built for CUDA, PyTorch's engine counts a level too many on a thread that ours has
    used (docs/engine.md)."""

    def run() -> list[int]:
        threads = []
        with torch.autograd.set_multithreading_enabled(multithreading):
            nest(levels, lambda: None, lambda: threads.append(threading.get_native_id()))
        assert threads[0] == threading.get_native_id()
        return [len(list(group)) for _, group in itertools.groupby(threads)]

    with concurrent.futures.ThreadPoolExecutor(1) as caller:
        return caller.submit(run).result()


def test_a_thread_runs_61_levels_and_hands_the_rest_to_another():
    assert levels_per_thread(61) == [61]
    assert levels_per_thread(62) == [61, 1]
    assert levels_per_thread(131) == [61, 61, 9]


def test_threads_for_deep_levels_are_used_again():
    nest(131, lambda: None, lambda: None)
    before = len(native_threads())
    nest(131, lambda: None, lambda: None)
    assert len(native_threads()) == before


def test_2000_levels_are_run():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        count = itertools.count()
        nest(2000, lambda: None, lambda: next(count))
        assert next(count) == 2000
    finally:
        sys.setrecursionlimit(limit)


def test_levels_are_counted_alike_with_multithreading_off():
    assert levels_per_thread(131, multithreading=False) == [61, 61, 9]


def test_a_graph_runs_inside_its_own_backward():
    x = leaf(2)
    y = x.sin()
    total = y.sum()
    z = Call.apply(y, lambda grad: total.backward(retain_graph=True))
    z.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())


def test_a_node_may_run_inside_itself():
    x, entries = leaf(2), []

    def again(grad):
        entries.append(grad)
        if len(entries) < 5:
            total.backward(retain_graph=True)

    y = Call.apply(x, again)
    total = y.sum()
    total.backward(retain_graph=True)
    assert len(entries) == 5 and x.grad.tolist() == [5, 5]


def test_nested_backwards_accumulate_into_shared_leaves():
    w = leaf(2)

    def node(grad):
        with torch.enable_grad():
            (w * 3).sum().backward()

    Call.apply(w * 2, node).sum().backward()
    assert w.grad.tolist() == [5, 5]


def test_a_second_derivative_is_not_a_nested_backward():
    x, ids = leaf(2), []
    y = Call.apply(x.sin(), lambda grad: ids.append(torch._C._current_graph_task_id()))
    (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    gradient.sum().backward()
    assert len(ids) >= 1 and all(number >= 0 for number in ids)
    assert torch._C._current_graph_task_id() == -1
