"""What is freed, and when: saved tensors, graphs, gradients, on success and on error; graphs of any depth."""

import gc
import resource
import threading
import warnings
import weakref

import pytest
import torch
from autograd_engine.vocabulary import BACKWARD_TWICE, Call, leaf, message

pytestmark = pytest.mark.usefixtures("engine")


class Saving(torch.autograd.Function):
    """Identity that saves a tensor of its own; `ctx.saved` is a weak reference to it."""

    saved = None

    @staticmethod
    def forward(ctx, x):
        kept = x * 2
        ctx.save_for_backward(kept)
        Saving.saved = weakref.ref(kept)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        assert len(ctx.saved_tensors) == 1
        return grad


@pytest.mark.parametrize("retain_graph", [False, True])
def test_saved_tensors_of_a_node_are_freed_before_the_next_node_runs(retain_graph):
    freed = []
    below = Call.apply(leaf(2), lambda grad: freed.append(Saving.saved() is None))
    Saving.apply(below).sum().backward(retain_graph=retain_graph)
    assert freed == [not retain_graph]


def test_the_posthook_of_a_node_still_sees_its_saved_tensors():
    x, seen = leaf(2), []
    y = x.sin()
    z = y.exp()
    below, above = y.grad_fn, z.grad_fn
    above.register_hook(lambda inputs, outputs: seen.append(type(above._saved_result)))
    below.register_prehook(lambda grads: seen.append(message(lambda: above._saved_result)))
    z.sum().backward()
    assert seen == [torch.Tensor, f"RuntimeError: {BACKWARD_TWICE}"]


def test_a_second_backward_needs_retain_graph():
    loss = leaf(2).sin().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert message(loss.backward) == f"RuntimeError: {BACKWARD_TWICE}"


def test_a_graph_that_saved_nothing_may_run_twice():
    x = leaf(2)
    loss = (x + 1).sum()
    loss.backward()
    loss.backward()
    assert x.grad.tolist() == [2, 2]


def test_retain_graph_is_create_graph_unless_said_otherwise():
    x = leaf(2)
    loss = x.sin().sum()
    torch.autograd.grad(loss, x, create_graph=True)
    torch.autograd.grad(loss, x, create_graph=True, retain_graph=False)
    assert message(lambda: torch.autograd.grad(loss, x)) == f"RuntimeError: {BACKWARD_TWICE}"


def test_after_an_error_what_ran_is_freed_and_the_rest_can_still_run():
    ran, a, b = [], leaf(2), leaf(2)

    def fail(grad):
        raise RuntimeError("stop")

    low = Call.apply(a.sin(), lambda grad: ran.append("low"))
    broken = Call.apply(b, fail)
    high = Call.apply(b.cos(), lambda grad: ran.append("high"))
    loss = (low + broken + high).sum()
    assert message(loss.backward) == "RuntimeError: stop"
    assert ran == ["high"]
    assert a.grad is None and b.grad is None
    assert message(loss.backward) == f"RuntimeError: {BACKWARD_TWICE}"
    torch.testing.assert_close(torch.autograd.grad(low.sum(), a)[0], a.detach().cos())


@pytest.mark.parametrize("fails", [False, True])
def test_memory_is_flat_over_many_backwards(fails, long_run):
    def step():
        x = torch.ones(10_000, requires_grad=True)
        y = Call.apply(x.sin(), lambda grad: 1 / 0 if fails else None).exp().sum()
        if fails:
            with pytest.raises(ZeroDivisionError):
                y.backward()
        else:
            y.backward()

    def tensors() -> int:
        gc.collect()
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())

    for _ in range(200):
        step()
    before, peak = tensors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10_000 if long_run else 1000):
        step()
    assert tensors() <= before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 16 << 10  # KiB; a leaked step is 40 KB or more


def test_an_exception_keeps_tensors_alive_no_longer_than_it_lives():
    def fail(grad):
        raise ValueError

    y = leaf(10).sin()
    alive = weakref.ref(y)
    z = Call.apply(y, fail).sum()
    del y
    try:
        z.backward()
    except ValueError as error:
        kept = error
    del z
    gc.collect()
    assert kept.__traceback__ is not None
    del kept
    gc.collect()
    assert alive() is None


def test_grad_inside_backward_leaks_nothing():
    alive = []

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            with torch.enable_grad():
                p = y.detach().clone().requires_grad_()
                alive.append(weakref.ref(p))
                return torch.autograd.grad(p * 2, p, grad)[0]

    (Inner.apply(leaf(4)) ** 2).sum().backward()
    gc.collect()
    assert [reference() for reference in alive] == [None]


def test_create_graph_makes_a_cycle_that_clearing_grad_breaks():
    def alive_after(clear: bool) -> bool:
        x = leaf(2)
        reference = weakref.ref(x)
        with warnings.catch_warnings(action="ignore"):
            x.tanh().sum().backward(create_graph=True)
        cycle = x.grad
        if clear:
            x.grad = None
        del x, cycle
        gc.collect()
        leaked = reference() is not None
        if leaked:
            reference().grad = None
        return leaked

    assert alive_after(clear=False)
    assert not alive_after(clear=True)


@pytest.mark.parametrize("hooked", [False, True])
def test_a_modules_full_backward_hook_under_create_graph_leaks_nothing(hooked):
    def parameters():
        module = torch.nn.Linear(2, 2)
        if hooked:
            module.register_full_backward_hook(lambda module, inputs, outputs: None)
        x = leaf(1, 2)
        with warnings.catch_warnings(action="ignore"):
            module(x).pow(2).sum().backward(create_graph=True)
        for value in (*module.parameters(), x):
            value.grad = None
        return [weakref.ref(parameter) for parameter in module.parameters()]

    references = parameters()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_a_graph_may_be_freed_by_a_hook_while_it_runs():
    x = leaf(2)
    y = x.sin()
    box = [y.exp().sum()]
    y.register_hook(lambda grad: (box.clear(), gc.collect(), None)[2])
    box[0].backward()
    torch.testing.assert_close(x.grad, x.detach().cos() * x.detach().sin().exp())


def test_saved_tensor_hooks_left_while_a_tensor_is_unpacked_are_left_for_that_node_alone():
    hooks, unpacked = [], []

    def unpack(tensor):
        if not unpacked:
            hooks[0].__exit__()
        unpacked.append(tensor)
        return tensor

    hooks.append(torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack))
    v = torch.randn(101, 103, requires_grad=True)
    with hooks[0]:
        x = v * torch.ones(101, 103)
        y = x * x
        y.sum().backward()
    torch.testing.assert_close(v.grad, 2 * v.detach())
    assert len(unpacked) == 3


def deep(nodes: int, x: torch.Tensor) -> torch.Tensor:
    for _ in range(nodes):
        x = x + 1
    return x


def test_a_very_deep_graph_runs_and_is_destroyed(long_run):
    x = leaf(1)
    y = deep(300_000 if long_run else 100_000, x)
    y.sum().backward()
    assert x.grad.item() == 1
    del y


def test_a_long_chain_of_python_nodes_runs_and_is_destroyed(long_run):
    x, ran, length = leaf(1), [], 100_000 if long_run else 20_000
    y = x
    for _ in range(length):
        y = Call.apply(y, ran.append)
    y.sum().backward()
    assert len(ran) == length
    del y


def test_a_deep_graph_runs_and_is_destroyed_in_a_thread_with_a_small_stack():
    x = leaf(1)

    def work():
        y = deep(100_000, x)
        y.sum().backward()
        del y

    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert x.grad.item() == 1
