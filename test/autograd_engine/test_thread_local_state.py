"""The state a node runs in: grad mode, autocast, hooks for saved tensors, modes, context variables, warnings."""

import asyncio
import contextvars
import warnings

import pytest
import torch
from autograd_engine.vocabulary import Call, calling, leaf, message, nest, output
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.usefixtures("engine")


def grad_mode_and_autocast():
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")


def test_grad_mode_is_create_graph_and_autocast_that_of_the_call():
    seen = []

    def loss():
        return calling(lambda: seen.append(grad_mode_and_autocast()))

    loss().backward()
    with warnings.catch_warnings(action="ignore"):
        loss().backward(create_graph=True)
    outside = loss()
    with torch.no_grad():
        outside.backward()
    with torch.autocast("cpu"):
        inside = loss()
    inside.backward()
    outside = loss()
    with torch.autocast("cpu"):
        outside.backward()
    assert seen == [(False, False), (True, False), (False, False), (False, False), (False, True)]


def test_threads_of_deep_levels_have_the_callers_grad_mode_and_autocast():
    seen = []
    with torch.autocast("cpu", torch.bfloat16):
        nest(70, lambda: seen.append((*grad_mode_and_autocast(), torch.get_autocast_dtype("cpu"))))
    assert seen == [(False, True, torch.bfloat16)]


def test_what_a_hook_sets_is_not_seen_by_the_next_node_nor_by_the_caller():
    seen, x = [], leaf(2)
    below = Call.apply(x, lambda grad: seen.append(torch.is_grad_enabled()))
    above = below * 1
    above.register_hook(lambda grad: torch.set_grad_enabled(True) and None)
    loss = above.sum()
    with torch.no_grad():
        loss.backward()
        assert not torch.is_grad_enabled()
    assert seen == [False] and torch.is_grad_enabled()


def test_what_is_set_around_a_failing_backward_is_restored():
    def fail():
        torch.set_grad_enabled(True)
        raise ValueError("x")

    with torch.no_grad(), torch.autocast("cpu"):
        with torch.enable_grad():
            loss = calling(fail)
        assert message(loss.backward) == "ValueError: x"
        assert grad_mode_and_autocast() == (False, True)


def test_saved_tensor_hooks_around_create_graph_are_for_what_backward_saves():
    log, x = [], leaf(2)
    y = x.sin().sin().sum()
    hooks = torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: (log.append("pack"), tensor)[1], lambda tensor: (log.append("unpack"), tensor)[1]
    )
    with hooks:
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    assert log == ["pack"] * 5
    log.clear()
    gradient.sum().backward()
    assert log == ["unpack"] * 5


def test_saved_tensors_are_unpacked_when_their_node_runs():
    log, x = [], leaf(2)

    def pack(tensor):
        log.append(f"p{len(log)}")
        return len(log) - 1, tensor

    def unpack(packed):
        log.append(f"u{packed[0]}")
        return packed[1]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x.sin().exp() * x.cos()).sum()
    y.backward()
    assert log == ["p0", "p1", "p2", "p3", "p4", "u3", "u4", "u2", "u1", "u0"]


def test_backward_in_inference_mode_gives_inference_tensors():
    x = leaf(2)
    loss = (x * 2).sum()
    with torch.inference_mode():
        loss.backward()
    assert x.grad.is_inference() and x.grad.tolist() == [2, 2]


def test_a_dispatch_mode_around_backward_sees_its_operators():
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            seen.append(str(op))
            return op(*args, **(kwargs or {}))

    x = leaf(2)
    loss = (x.sin() + x).sum()
    with Watch():
        loss.backward()
    assert seen == [
        "aten.ones_like.default",
        "aten.expand.default",
        "aten.cos.default",
        "aten.mul.Tensor",
        "aten.add.Tensor",
        "aten.detach.default",
    ]


def test_a_function_mode_around_backward_sees_the_call():
    seen = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    loss = leaf(2).sin().sum()
    with Watch():
        torch.autograd.backward(loss)
    assert seen == ["backward"]


def test_context_variables_are_the_callers_and_changes_stay():
    variable = contextvars.ContextVar("variable")
    variable.set("outer")
    seen = []

    def act():
        seen.append(variable.get())
        variable.set("changed")

    calling(act).backward()
    assert seen == ["outer"] and variable.get() == "changed"


def test_tasks_of_an_event_loop_keep_their_own_context_variables():
    variable, seen = contextvars.ContextVar("variable"), []

    async def task(number):
        variable.set(number)
        await asyncio.sleep(0)
        calling(lambda: seen.append(variable.get())).backward()

    async def main():
        await asyncio.gather(*(task(number) for number in range(4)))

    asyncio.run(main())
    assert seen == [0, 1, 2, 3]


def warning_root(seen: list, given: list) -> torch.Tensor:
    """A scalar whose backward warns in C++; hooks after it note how many warnings have arrived."""
    x = leaf(2)
    y = torch.ops.aten._test_warn_in_autograd(x)
    x.register_hook(lambda grad: seen.append(len(given)))
    return y.sum()


def test_warnings_of_cpp_nodes_are_given_at_the_end_by_the_calling_thread():
    seen = []
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        warning_root(seen, given).backward()
    assert seen == [0]
    assert [str(warning.message).split(" (")[0] for warning in given] == ["Warn from backward"]
    assert given[0].category is UserWarning


def test_a_warning_may_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert message(warning_root([], []).backward).startswith("UserWarning: Warn from backward")


def test_warnings_are_given_when_the_backward_fails_too():
    def fail(grad):
        raise ValueError("after the warning")

    below = Call.apply(leaf(2), fail)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        assert message(torch.ops.aten._test_warn_in_autograd(below).sum().backward) == "ValueError: after the warning"
    assert [str(warning.message).split(" (")[0] for warning in given] == ["Warn from backward"]


def test_create_graph_warns_once_in_a_process_about_reference_cycles(engine):
    code = """
import warnings
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    for _ in range(2):
        leaf(2).sin().sum().backward(create_graph=True)
print([str(warning.message)[:77] for warning in given])
"""
    assert output(code, engine) == ["['Using backward() with create_graph=True will create a reference cycle between']"]
