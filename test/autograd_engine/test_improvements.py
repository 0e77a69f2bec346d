"""What our engine does better than upstream's; what both do is in the other files."""

import contextvars
import os
import signal
import threading
import time

import pytest
import torch
from autograd_engine.vocabulary import Call, calling, leaf, message, nest, nodes_of, output, run_process
from torch.autograd.graph import register_multi_grad_hook

pytestmark = pytest.mark.usefixtures("our_engine")


def interrupted_after(delay: float, act) -> float:
    """Sends SIGINT to this process `delay` seconds into `act`, which has to raise it; returns how long `act` ran on."""
    timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        act()
        pytest.fail("the backward ended before the signal was looked at")
    ran = time.monotonic() - start
    timer.join()
    return ran - delay


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's")
def test_ctrl_c_ends_a_backward_of_cpp_nodes_promptly():
    x = torch.randn(300, 300, requires_grad=True)
    y = x
    for _ in range(1000):
        y = y @ x * 0.01
    loss = y.sum()
    assert interrupted_after(0.2, loss.backward) < 0.5
    z = leaf(2)
    (z * 2).sum().backward()
    assert z.grad.tolist() == [2, 2]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's")
def test_ctrl_c_ends_a_backward_that_waits_for_a_device():
    x = torch.ones(2, device="mybackend:0", requires_grad=True)
    loss = Call.apply(x * 2, lambda grad: time.sleep(3)).cpu().sum()
    if torch.mybackend.driver() != "host":
        pytest.skip("written for the host driver")
    late = interrupted_after(0.2, loss.backward)
    assert late < 4
    z = torch.ones(2, device="mybackend:0", requires_grad=True)
    (z * 2).sum().backward()
    assert z.grad.tolist() == [2, 2]


def test_context_variables_reach_every_thread_that_runs_a_node():
    variable, seen = contextvars.ContextVar("variable", default="default"), []
    variable.set("set")
    nest(70, lambda: seen.append(variable.get()))
    x = torch.ones(2, device="mybackend:0", requires_grad=True)
    Call.apply(x, lambda grad: seen.append(variable.get())).cpu().sum().backward()
    assert seen == ["set", "set"]


def test_a_child_forked_after_deep_nesting_works():
    code = """
nest(65, lambda: None)
pid = os.fork()
if pid == 0:
    x = leaf(2)
    (x * 3).sum().backward()
    nest(65, lambda: print(x.grad.tolist(), flush=True))
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
nest(65, lambda: print("parent"))
"""
    assert output(code, "mybackend") == ["[3.0, 3.0]", "parent"]


def test_under_anomaly_mode_the_exception_itself_tells_where_forward_was():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("inside")

    with torch.autograd.detect_anomaly(), pytest.raises(ValueError, match="inside") as caught:
        Fails.apply(leaf(1)).sum().backward()
    (note,) = caught.value.__notes__
    assert "FailsBackward" in note and "Fails.apply(leaf(1))" in note


def test_a_complex_gradient_for_a_real_input_is_named():
    x = leaf(2)
    y = Call.apply(x, lambda grad: grad.to(torch.complex64))
    assert message(y.sum().backward) == (
        "RuntimeError: Function CallBackward returned an invalid gradient at index 0 - expected a real gradient, since "
        "the input it belongs to has dtype Float, but got dtype ComplexFloat. Take its real part in the backward."
    )


def test_a_multi_grad_hook_works_with_grad_of_a_leaf():
    seen, a, b = [], leaf(2), leaf(2)
    register_multi_grad_hook([a, b], lambda grads: seen.append([None if g is None else g.tolist() for g in grads]))
    (gradient,) = torch.autograd.grad((a * b).sum(), [a])
    assert gradient.tolist() == [1, 1]
    assert seen == [[[1, 1], None]]


def test_the_execution_order_can_be_asked_whatever_the_threads():
    x, w, predicted, ran = leaf(2), leaf(2), [], []
    y = x.sin()
    z = (y * w + y).sum()
    root = Call.apply(
        z, lambda grad: predicted.extend(node.name() for node in torch._C._current_graph_task_execution_order())
    )
    for node in nodes_of(root.grad_fn):
        node.register_prehook(lambda grads, node=node: ran.append(node.name()))
    root.backward()
    assert predicted == ran and len(ran) == 7


def test_grad_never_shares_memory_with_a_tensor_the_user_holds():
    held, x = torch.ones(4), leaf(2)
    Call.apply(x, lambda grad: held[:2]).sum().backward()
    x.grad.add_(1)
    assert held.tolist() == [1] * 4


def test_an_exception_in_a_deep_level_leaves_no_thread_behind_that_works_on():
    ran = []

    def fail():
        raise ValueError("deep")

    loss = calling(lambda: ran.append("low")) + calling(lambda: nest(130, fail))
    assert message(loss.backward) == "ValueError: deep"
    time.sleep(0.05)
    assert ran == []


def test_a_node_that_throws_no_exception_type_does_not_end_the_process():
    code = """
from test_cpp_nodes import build
nodes = build()
try:
    nodes.throwing(leaf(2), "int").sum().backward()
except RuntimeError as error:
    print(error)
x = leaf(2); (x * 2).sum().backward(); print(x.grad.tolist())
"""
    done = run_process(code, "mybackend")
    assert done.returncode == 0, done.stderr
    text, gradient = done.stdout.splitlines()
    assert text.endswith("threw something that is not a std::exception") and gradient == "[2.0, 2.0]"
