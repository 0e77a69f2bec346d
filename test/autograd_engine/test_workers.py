"""CPU workers: branches that run at once, with gradients equal to the last bit."""

import threading

import pytest
import torch
from autograd_engine.random_graphs import Recipe, run
from autograd_engine.vocabulary import Call, leaf, message, output, run_process

from mybackend.autograd import get_cpu_workers, set_cpu_workers, use_cpu_workers

pytestmark = pytest.mark.usefixtures("our_engine")


def test_one_thread_runs_cpu_nodes_unless_more_are_asked_for():
    assert get_cpu_workers() == 1
    with use_cpu_workers(3):
        assert get_cpu_workers() == 3
    assert get_cpu_workers() == 1
    with pytest.raises(ValueError, match="cpu_workers: expected a number from 1 to 1024, but got 0"):
        set_cpu_workers(0)


def meeting(count: int):
    """A scalar over `count` branches, each of which waits in its backward until all of them run."""
    barrier, threads = threading.Barrier(count, timeout=30), set()

    def meet(grad):
        barrier.wait()
        threads.add(threading.get_native_id())

    x = leaf(2)
    return x, sum(Call.apply(x, meet).sum() for _ in range(count)), threads


def test_independent_branches_run_at_once():
    x, loss, threads = meeting(3)
    with use_cpu_workers(3):
        loss.backward()
    assert len(threads) == 3 and x.grad.tolist() == [3, 3]


def test_with_multithreading_off_the_calling_thread_runs_all():
    threads = set()
    x = leaf(2)
    loss = sum(Call.apply(x, lambda grad: threads.add(threading.get_native_id())).sum() for _ in range(4))
    with use_cpu_workers(4), torch.autograd.set_multithreading_enabled(False):
        loss.backward()
    assert threads == {threading.get_native_id()}


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("call", ["backward", "grad", "grad twice"])
def test_gradients_are_equal_to_the_last_bit(seed, call):
    features = frozenset({"views", "outputs", "hooks", "checkpoint", "sparse"})
    recipe = Recipe(seed=seed, steps=120, features=features, call=call)
    expected = run(recipe, lambda: None)
    with use_cpu_workers(4):
        ours = run(recipe, lambda: None)
    expected.log = ours.log = []  # the order of hooks is not that of one thread
    assert expected.differences(ours) == []


def test_branches_that_change_views_in_place_run_at_once():
    """Such a node enters the node it wraps into the map of needed nodes, which the other threads read."""
    x = leaf(64)
    branches = [x * number for number in range(200)]
    for branch in branches:
        branch[8:40].mul_(x[8:40])
        branch[4:20].sin_()
    loss = sum(branch.cos().sum() for branch in branches)
    with use_cpu_workers(1):
        expected = torch.autograd.grad(loss, [x], retain_graph=True)
    with use_cpu_workers(4):
        for _ in range(20):
            assert torch.equal(torch.autograd.grad(loss, [x], retain_graph=True)[0], expected[0])


@pytest.mark.parametrize("seed", range(10))
def test_second_derivatives_are_equal_but_for_rounding(seed):
    """The nodes they are made of were made by several threads, each with sequence numbers of its own."""
    recipe = Recipe(seed=seed, steps=120, features=frozenset({"views", "outputs", "checkpoint"}), call="create_graph")
    expected = run(recipe, lambda: None).gradients
    with use_cpu_workers(4):
        ours = run(recipe, lambda: None).gradients
    torch.testing.assert_close(ours, expected)


def test_an_error_in_a_branch_reaches_the_caller():
    def fail(grad):
        raise KeyError("branch")

    x = leaf(2)
    loss = sum(Call.apply(x.sin(), fail if number == 2 else lambda grad: None).sum() for number in range(4))
    with use_cpu_workers(3):
        assert message(loss.backward) == "KeyError: 'branch'"
        x, loss, _ = meeting(2)
        loss.backward()
    assert x.grad.tolist() == [2, 2]


def test_the_environment_chooses_the_number():
    assert output("print(mybackend.autograd.get_cpu_workers())", "mybackend", MYBACKEND_ENGINE_CPU_WORKERS="2") == ["2"]
    done = run_process("", "mybackend", MYBACKEND_ENGINE_CPU_WORKERS="many")
    assert "MYBACKEND_ENGINE_CPU_WORKERS='many': expected a number from 1 to 1024" in done.stderr
