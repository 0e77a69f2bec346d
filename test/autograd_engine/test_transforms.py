"""torch.func, batched gradients, subclasses, fake tensors, and gradients of gradients."""

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf, message
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.function import once_differentiable

pytestmark = pytest.mark.usefixtures("engine")


def test_batched_gradients_are_one_row_each():
    x = torch.arange(3.0, requires_grad=True)
    (rows,) = torch.autograd.grad(x**2, x, torch.eye(3), is_grads_batched=True)
    assert rows.tolist() == [[0, 0, 0], [0, 2, 0], [0, 0, 4]]


def test_hessian_jacobian_and_vmap_of_grad():
    x = torch.arange(3.0)
    assert torch.func.hessian(lambda v: (v**3).sum())(x).diag().tolist() == [0, 6, 12]
    assert torch.equal(torch.func.jacrev(lambda v: v * 2)(x), 2 * torch.eye(3))
    batch = torch.ones(2, 2)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(lambda v: v.sin().sum()))(batch), batch.cos())
    jacobian = torch.autograd.functional.jacobian(lambda v: v.sin(), x, vectorize=True)
    torch.testing.assert_close(jacobian, x.cos().diag())


def test_grad_may_be_called_inside_a_transform_and_a_transform_inside_backward():
    inside = torch.func.grad(lambda v: torch.autograd.grad((v**3).sum(), v, create_graph=True)[0].sum())(torch.ones(2))
    assert inside.tolist() == [6, 6]
    seen = []
    node = Call.apply(
        leaf(2), lambda grad: seen.append(torch.func.grad(lambda v: (v**2).sum())(torch.ones(2)).tolist())
    )
    node.sum().backward()
    assert seen == [[2, 2]]


def test_backward_inside_a_transform_is_refused():
    assert message(lambda: torch.func.grad(lambda v: (v.sum().backward(), v.sum())[1])(torch.ones(2))) == (
        "RuntimeError: backward() called inside a functorch transform. This is not supported, please use "
        "functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
    )


def test_gradients_of_gradients_to_the_third_order():
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    value = x.sin()
    for expected in (x.cos(), -x.sin(), -x.cos()):
        (value,) = torch.autograd.grad(value, x, create_graph=True)
        torch.testing.assert_close(value, expected)


def test_a_function_marked_once_differentiable_cannot_be_differentiated_twice():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(2)
    (gradient,) = torch.autograd.grad(Once.apply(x).pow(2).sum(), x, create_graph=True)
    assert message(gradient.sum().backward) == (
        "RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable"
    )


def test_a_subclass_has_plain_gradients_as_upstream_has_them():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Mine).requires_grad_()
    (x * 2).sum().backward()
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [2, 2]


def test_fake_tensors_have_fake_gradients():
    with FakeTensorMode():
        x = leaf(2)
        (x * 2).sum().backward()
    assert type(x.grad).__name__ == "FakeTensor"


def test_forward_mode_over_reverse_mode_agrees_with_reverse_over_reverse():
    def f(v):
        return (v.sin() * v.exp()).sum()

    x = torch.linspace(0, 1, 4, dtype=torch.float64)
    tangent = torch.ones_like(x)
    _, forward_over_reverse = torch.func.jvp(torch.func.grad(f), (x,), (tangent,))
    torch.testing.assert_close(forward_over_reverse, torch.func.hessian(f)(x) @ tangent)
