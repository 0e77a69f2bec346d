"""Anomaly mode: NaN is found, and the failing node is traced to its forward call and to what made it."""

import warnings

import pytest
import torch
from autograd_engine.vocabulary import leaf, message

pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
]


class Scale(torch.autograd.Function):
    """Identity whose gradient is multiplied by `factor`."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


NAN = "RuntimeError: Function 'ScaleBackward' returned nan values in its 0th output."


def failing(act) -> tuple[str, list[str]]:
    """The error of `act`, and the warnings it gave."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        error = message(act)
    return error, [str(warning.message) for warning in given]


def test_nan_is_an_error_that_points_to_the_forward_call():
    with torch.autograd.detect_anomaly():
        error, (warning,) = failing(lambda: Scale.apply(leaf(1), float("nan")).sum().backward())
    assert error == NAN
    assert warning.startswith(
        "Error detected in ScaleBackward. Traceback of forward call that caused the error:\n  File "
    )
    assert "Scale.apply(leaf(1)" in warning


def test_a_graph_made_without_anomaly_mode_says_so():
    loss = Scale.apply(leaf(1), float("nan")).sum()
    with torch.autograd.detect_anomaly():
        error, (warning,) = failing(loss.backward)
    assert error == NAN
    assert warning.startswith(
        "Error detected in ScaleBackward. No forward pass information available. Enable detect anomaly during forward "
        "pass for more information."
    )


@pytest.mark.parametrize(("factor", "check_nan"), [(float("inf"), True), (float("nan"), False)])
def test_infinity_passes_and_so_does_nan_when_it_is_not_looked_for(factor, check_nan):
    x = leaf(1)
    with torch.autograd.detect_anomaly(check_nan=check_nan):
        Scale.apply(x, factor).sum().backward()
    assert not x.grad.isfinite().any()


def test_any_error_of_a_node_is_traced():
    def fail(grad):
        raise ValueError("own")

    class Fails(Scale):
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("own")

    with torch.autograd.detect_anomaly():
        error, (warning,) = failing(lambda: Fails.apply(leaf(1), 1).sum().backward())
    assert error == "ValueError: own"
    assert warning.startswith("Error detected in FailsBackward. Traceback of forward call")


def test_a_node_made_by_a_backward_is_traced_to_the_forward_of_that_backward_too():
    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return Scale.apply(grad * x, float("nan"))

    def double_backward():
        x = torch.ones(1, requires_grad=True)
        (gradient,) = torch.autograd.grad(Outer.apply(x).sum(), x, create_graph=True)
        gradient.sum().backward()

    with torch.autograd.detect_anomaly():
        error, given = failing(double_backward)
    assert error == NAN
    assert given[0].startswith("Error detected in ScaleBackward. Traceback of forward call that caused the error:")
    assert given[1].startswith(
        "\n\nPrevious calculation was induced by OuterBackward. Traceback of forward call that induced the previous "
        "calculation:\n  File "
    )
    assert "Outer.apply(x)" in given[1]


def test_parents_are_traced_over_three_orders():
    def third_order():
        x = torch.tensor(1.0, requires_grad=True)
        y = torch.tensor(1e-20, requires_grad=True)
        z = ((x * y) / (x * y)) ** 2
        for _ in range(4):
            (z,) = torch.autograd.grad(z, (y,), create_graph=True)

    with torch.autograd.detect_anomaly():
        error, given = failing(third_order)
    assert "returned nan values" in error
    assert given[0].startswith("Error detected in ")


def test_enabling_warns_that_it_is_slow():
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            pass
    assert "Anomaly Detection has been enabled" in str(given[0].message)
