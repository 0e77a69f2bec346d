"""Several Python threads at once: own graphs, shared leaves, shared graphs; which native threads exist."""

import threading
import time

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf, output

pytestmark = pytest.mark.usefixtures("engine")


def together(count: int, work) -> None:
    """Runs `work(number)` in `count` threads at once and raises what any of them raised."""
    barrier, failures = threading.Barrier(count), []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_with_graphs_of_their_own_get_their_own_gradients():
    def work(number):
        for _ in range(100):
            x = torch.full((50,), float(number), requires_grad=True)
            (x * x).sum().backward()
            assert torch.equal(x.grad, 2 * x.detach())

    together(8, work)


def test_no_gradient_for_a_shared_leaf_is_lost():
    w = torch.zeros(1000, requires_grad=True)
    together(8, lambda number: [(w * 1).sum().backward() for _ in range(200)])
    assert w.grad.unique().tolist() == [1600]


def test_of_threads_that_run_one_graph_at_once_one_wins_and_the_others_say_why():
    for _ in range(50):
        x = torch.ones(2000, requires_grad=True)
        loss = x.sin().exp().sin().sum()
        failures = []

        def work(number, loss=loss, failures=failures):
            try:
                loss.backward()
            except RuntimeError as error:
                failures.append(str(error))

        together(4, work)
        assert len(failures) == 3
        assert all(text.startswith("Trying to backward through the graph a second time") for text in failures)


def test_threads_may_share_a_graph_that_is_retained():
    x = torch.ones(2000, dtype=torch.float64, requires_grad=True)
    loss = x.sin().exp().sum()
    together(4, lambda number: [loss.backward(retain_graph=True) for _ in range(50)])
    value = x.detach()
    torch.testing.assert_close(x.grad, 200 * value.cos() * value.sin().exp())


def test_a_node_written_in_python_may_run_in_several_threads_at_once():
    lock, running, peak = threading.Lock(), [0], [0]

    def act(grad):
        with lock:
            running[0] += 1
            peak[0] = max(peak[0], running[0])
        time.sleep(0.05)
        with lock:
            running[0] -= 1

    loss = Call.apply(leaf(2), act).sum()
    together(4, lambda number: loss.backward(retain_graph=True))
    assert peak[0] > 1


def test_an_error_stays_in_the_thread_whose_backward_failed():
    def work(number):
        def act(grad):
            time.sleep(0.01)
            if number % 2:
                raise ValueError(number)

        x = leaf(2)
        loss = Call.apply(x, act).sum()
        if number % 2:
            with pytest.raises(ValueError, match=str(number)):
                loss.backward()
        else:
            loss.backward()
            assert x.grad.tolist() == [1, 1]

    together(6, work)


def test_a_backward_of_cpu_tensors_starts_no_thread():
    """Upstream's engine starts its device threads with the first backward of any sort where a device exists."""
    code = """
leaf(2).sum().backward()
torch.nn.Linear(30, 30)(torch.randn(4, 30)).sum().backward()
x = torch.ones(2, device="meta", requires_grad=True)
(x * 2).sum().backward()
before = len(native_threads())
for _ in range(3):
    torch.nn.Linear(30, 30)(torch.randn(4, 30)).sum().backward()
print(len(native_threads()) - before, [name for name in native_threads() if "autograd" in name])
"""
    assert output(code, "mybackend") == ["0 []"]


def test_multithreading_is_on_unless_switched_off_and_comes_back():
    seen = []
    loss = Call.apply(leaf(1), lambda grad: seen.append(torch._C._is_multithreading_enabled())).sum()
    loss.backward(retain_graph=True)
    with torch.autograd.set_multithreading_enabled(False):
        loss.backward()
    assert seen == [True, False] and torch._C._is_multithreading_enabled()
