"""Errors: whatever a node raises reaches the caller as it is, wrong gradients are named, the engine stays usable."""

import traceback

import pytest
import torch
from autograd_engine.vocabulary import Call, calling, leaf, message, nest

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(autouse=True)
def usable_afterwards(engine):
    """After every test here the engine still works and nothing of the failed backward is left behind."""
    yield
    x = leaf(2)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert torch._C._current_graph_task_id() == -1
    assert torch.is_grad_enabled()
    assert torch.autograd.Variable._execution_engine.is_checkpoint_valid()


class Mine(ValueError):
    """An exception type that only the tests know."""


def raising(error: BaseException):
    def act(*_):
        raise error

    return act


def test_the_exception_of_a_node_arrives_itself_with_its_traceback():
    error = Mine("boom", 42)
    with pytest.raises(Mine) as caught:
        Call.apply(leaf(1), raising(error)).sum().backward()
    assert caught.value is error
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-4:] == ["_engine_run_backward", "apply", "backward", "act"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit, Mine])
@pytest.mark.parametrize("place", ["node", "tensor hook", "node prehook", "node posthook", "callback", "131 deep"])
def test_any_exception_from_any_place_arrives_as_itself(kind, place):
    y = leaf(1) * 2
    act = raising(kind("here"))
    if place == "node":
        y = Call.apply(y, act)
    elif place == "tensor hook":
        y.register_hook(act)
    elif place == "node prehook":
        y.grad_fn.register_prehook(act)
    elif place == "node posthook":
        y.grad_fn.register_hook(act)
    elif place == "callback":
        y = Call.apply(y, lambda grad: torch.autograd.Variable._execution_engine.queue_callback(act))
    else:
        y = Call.apply(y, lambda grad: nest(130, act))
    with pytest.raises(kind, match="here"):
        y.sum().backward()


def test_an_error_of_an_unpack_hook_arrives_as_itself():
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, raising(Mine("unpack"))):
        loss = leaf(2).sin().sum()
    assert message(loss.backward) == "Mine: unpack"


def test_the_traceback_of_an_error_two_hundred_backwards_deep_is_whole():
    with pytest.raises(Mine, match="deep") as caught:
        nest(200, raising(Mine("deep")))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names.count("_engine_run_backward") == 200


def test_errors_of_cpp_nodes_are_runtime_errors():
    broken = torch._C._functions.DelayedError("Boom!", 1)(leaf(2))
    assert message(broken.sum().backward) == "RuntimeError: Boom!"


def test_a_saved_value_that_was_overwritten_is_named():
    x = leaf(2)
    y = x.sin()
    with torch.no_grad():
        x.mul_(2)
    assert message(y.sum().backward) == (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [2]] is at version 1; expected version 0 instead. Hint: enable anomaly detection to find "
        "the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )


def test_an_error_in_an_inner_backward_may_be_caught_and_the_outer_one_goes_on():
    x, caught = leaf(2), []
    node = Call.apply(x, lambda grad: caught.append(message(lambda: nest(3, raising(Mine("inner"))))))
    node.sum().backward()
    assert caught == ["Mine: inner"] and x.grad.tolist() == [1, 1]


class Returns(torch.autograd.Function):
    """Copies its first input; its gradients are what `result` says."""

    @staticmethod
    def forward(ctx, result, *inputs):
        ctx.result = result
        return inputs[0].clone()

    @staticmethod
    def backward(ctx, grad):
        result = ctx.result
        return (None, *result) if isinstance(result, tuple) else (None, result)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            (torch.ones(2), torch.ones(2)),
            "function ReturnsBackward returned an incorrect number of gradients (expected 2, got 3)",
        ),
        (
            torch.ones(3),
            "Function ReturnsBackward returned an invalid gradient at index 1 - got [3] but expected shape compatible "
            "with [2]",
        ),
        (
            torch.ones(2, device="meta"),
            "Function ReturnsBackward returned an invalid gradient at index 1 - expected device cpu but got meta",
        ),
        (3, "expected Variable or None (got int)"),
        ("x", "expected Variable or None (got str)"),
    ],
)
def test_a_gradient_that_does_not_fit_its_input_is_refused(result, text):
    assert message(Returns.apply(result, leaf(2)).sum().backward) == f"RuntimeError: {text}"


def test_a_smaller_gradient_is_not_broadcast():
    assert message(Returns.apply(torch.ones(2), leaf(2, 2)).sum().backward) == (
        "RuntimeError: Function ReturnsBackward returned an invalid gradient at index 1 - got [2] but expected shape "
        "compatible with [2, 2]"
    )


def test_too_few_gradients_are_refused_and_spare_nones_allowed():
    assert message(Returns.apply(torch.ones(2), leaf(2), leaf(2)).sum().backward) == (
        "RuntimeError: function ReturnsBackward returned an incorrect number of gradients (expected 3, got 2)"
    )
    x = leaf(2)
    Returns.apply((torch.ones(2), None), x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_roots_and_their_gradients_are_checked():
    a, n = leaf(2), torch.ones(2)
    no_graph = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
    assert message(n.sum().backward) == no_graph
    assert message(lambda: torch.autograd.grad(n.sum(), a)) == no_graph
    assert message(lambda: torch.autograd.backward([a.sum(), n.sum()])) == no_graph.replace("0", "1")
    assert a.grad is None
    assert message((a * 2).backward) == "RuntimeError: grad can be implicitly created only for scalar outputs"
    assert message((a * (1 + 0j)).sum().backward) == (
        "RuntimeError: grad can be implicitly created only for real scalar outputs but got torch.complex64"
    )
    assert message(lambda: (a * 2).backward(torch.ones(3))) == (
        "RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of "
        "torch.Size([2])."
    )
    assert message(lambda: torch.autograd.grad([a.sum(), a.sum()], [a], [None])) == (
        "RuntimeError: got 2 tensors and 1 gradients"
    )
    torch.autograd.backward([])


def test_inputs_are_checked():
    a, n = leaf(2), torch.ones(2)
    assert message(lambda: torch.autograd.grad((a * n).sum(), [n])) == (
        "RuntimeError: One of the differentiated Tensors does not require grad"
    )
    assert message(lambda: (a * n).sum().backward(inputs=[n])) == (
        "RuntimeError: can't retain_grad on Tensor that has requires_grad=False"
    )
    for name, act in {
        "backward": lambda: a.sum().backward(inputs=[]),
        "grad": lambda: torch.autograd.grad(a.sum(), []),
    }.items():
        assert message(act) == f"RuntimeError: `inputs` argument to `{name}()` cannot be empty."


def test_the_raw_entry_checks_its_arguments():
    run = torch.autograd.Variable._execution_engine.run_backward
    x, ones = leaf(2), torch.ones(2)
    assert message(lambda: run(1, 2, 3)) == "TypeError: function missing required argument 'create_graph' (pos 4)"
    cases = {
        "tensors argument is expected to be a tuple, but got list": ([x * 1], (ones,)),
        "element 0 of tensors tuple is neither a Tensor nor a GradientEdge": ((1,), (2,)),
        "element 0 of tensors does not require grad and does not have a grad_fn": ((ones,), (ones,)),
        "element 0 of gradients tuple is None, but the corresponding Tensor requires grad": ((x * 1,), (None,)),
        "element 0 of gradients tuple is not a Tensor or None": ((x * 1,), (3,)),
    }
    for text, (tensors, gradients) in cases.items():
        error = message(lambda tensors=tensors, gradients=gradients: run(tensors, gradients, False, False))
        assert error == f"RuntimeError: {text}"
    assert "grad requires non-empty inputs" in message(lambda: run((), (), False, False))


def test_the_failing_node_stops_the_others():
    ran = []
    low = Call.apply(leaf(1), lambda grad: ran.append("low"))
    high = calling(raising(Mine("stop")))
    assert message((low.sum() + high).backward) == "Mine: stop"
    assert ran == []
