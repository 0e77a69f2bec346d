"""Nodes and callers written in C++ (nodes.cpp): exceptions of every type, exclusion, native threads, the GIL."""

import threading
from pathlib import Path

import pytest
from autograd_engine.vocabulary import calling, leaf, message
from torch.utils import cpp_extension

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.usefixtures("engine")


def build():
    """Builds nodes.cpp unless it has been built, and imports it."""
    folder = HERE.parents[1] / "build" / "engine_nodes"
    folder.mkdir(parents=True, exist_ok=True)
    return cpp_extension.load(
        "mybackend_engine_nodes",
        [str(HERE / "nodes.cpp")],
        extra_cflags=["-O0", "-w"],
        extra_include_paths=[str(HERE.parents[1])],
        build_directory=str(folder),
    )


@pytest.fixture(scope="module")
def nodes():
    return build()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("runtime_error", "RuntimeError: from C++"),
        ("out_of_range", "RuntimeError: from C++"),
        ("invalid_argument", "RuntimeError: from C++"),
        ("bad_alloc", "RuntimeError: std::bad_alloc"),
        ("IndexError", "IndexError: from C++"),
        ("ValueError", "ValueError: from C++"),
        ("TypeError", "TypeError: from C++"),
        ("NotImplementedError", "NotImplementedError: from C++"),
        ("Error", "RuntimeError: from C++"),
    ],
)
def test_cpp_exceptions_become_python_ones(nodes, kind, text):
    assert message(nodes.throwing(leaf(2), kind).sum().backward) == text


def test_a_cpp_node_is_never_in_two_threads_at_once(nodes):
    loss = nodes.crowded(leaf(2)).sum()
    threads = [threading.Thread(target=lambda: loss.backward(retain_graph=True)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert nodes.most_inside_crowded() == 1


def test_backward_runs_in_a_native_thread_python_nodes_included(nodes):
    seen, x = [], leaf(2)
    loss = calling(lambda: seen.append("ran")) + (x * 2).sum()
    assert nodes.backward_in_native_thread(loss) == ""
    assert seen == ["ran"] and x.grad.tolist() == [2, 2]


def test_an_error_of_a_python_node_reaches_a_native_thread(nodes):
    def fail():
        raise ValueError("boom")

    assert nodes.backward_in_native_thread(calling(fail)) == "python_error: boom"
    leaf(2).sum().backward()


def test_cpp_callers_get_gradients(nodes):
    x = leaf(2)
    (gradient,) = nodes.grad((x * 3).sum(), [x])
    assert gradient.tolist() == [3, 3] and x.grad is None
    nodes.backward_without_gil((x * 2).sum())
    assert x.grad.tolist() == [2, 2]


def test_calling_the_engine_with_the_gil_is_an_error(nodes):
    assert message(lambda: nodes.backward_with_gil(leaf(2).sum())).startswith(
        "RuntimeError: The autograd engine was called while holding the GIL. If you are using the C++ API, the autograd"
    )


def test_a_callback_cannot_be_queued_outside_a_backward(nodes):
    assert message(nodes.queue_callback_outside).startswith(
        "RuntimeError: Final callbacks can only be installed during backward pass."
    )
