"""How gradients are summed: in buffers between nodes, and into `.grad` of leaves."""

import collections
import warnings

import pytest
import torch
from autograd_engine.vocabulary import leaf, message
from torch.autograd import forward_ad
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.usefixtures("engine")
SIZES = (4, 1000)  # small sums take a way of their own


class Produce(torch.autograd.Function):
    """Identity whose gradient is whatever `make()` returns."""

    @staticmethod
    def forward(ctx, x, make):
        ctx.make = make
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.make(), None


def test_a_fresh_gradient_becomes_grad_without_a_copy():
    x, addresses = leaf(2), []

    def fresh():
        result = torch.ones(2)
        addresses.append(result.data_ptr())
        return result

    Produce.apply(x, fresh).sum().backward()
    assert x.grad.data_ptr() == addresses[0]


def test_a_gradient_somebody_holds_is_copied():
    x, held = leaf(2), torch.ones(2)
    Produce.apply(x, lambda: held).sum().backward()
    x.grad.add_(1)
    assert held.tolist() == [1, 1]


def test_later_gradients_are_added_in_place():
    x = leaf(2)
    (x * 1).sum().backward()
    grad = x.grad
    (x * 5).sum().backward()
    assert x.grad is grad and grad.tolist() == [6, 6]


def test_under_create_graph_gradients_are_added_out_of_place():
    x = leaf(2)
    (x * 1).sum().backward()
    before = x.grad
    with warnings.catch_warnings(action="ignore"):
        (x * x).sum().backward(create_graph=True)
    assert x.grad is not before
    assert before.tolist() == [1, 1] and x.grad.tolist() == [3, 3]
    x.grad = None


def test_a_grad_set_by_the_user_is_added_to():
    x, grad = leaf(2), torch.ones(2)
    x.grad = grad
    (x * 1).sum().backward()
    assert grad.tolist() == [2, 2]


def test_a_leafs_tensor_hook_sees_grad_as_it_was_before():
    x, seen = leaf(2), []
    (x * 1).sum().backward()
    x.register_hook(lambda grad: seen.append((grad.tolist(), x.grad.tolist())))
    (x * 5).sum().backward()
    assert seen == [([5, 5], [1, 1])]


def test_grad_has_the_strides_of_its_tensor():
    x = torch.ones(3, 2, requires_grad=True)
    x.t().contiguous().sum().backward()
    assert x.grad.stride() == (2, 1)
    image = torch.ones(4, 3, 2, 2).to(memory_format=torch.channels_last).requires_grad_()
    (image * 2).sum().backward()
    assert image.grad.stride() == image.stride()


def test_an_expanded_gradient_is_written_out():
    x = leaf(3)
    x.sum().backward()
    assert x.grad.stride() == (1,)


def test_summing_does_not_change_tensors_a_user_holds():
    held = []

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            held.append(torch.ones(2))
            return held[0], held[0]

    x = leaf(2)
    y = x * 1
    Same.apply(y, y).sum().backward()
    assert held[0].tolist() == [1, 1] and x.grad.tolist() == [2, 2]


def test_summing_does_not_change_what_a_hook_kept():
    x, kept = leaf(2), []
    y = x * 1
    z = y.sin() + y.cos() + y
    z.register_hook(kept.append)
    z.sum().backward()
    assert kept[0].tolist() == [1, 1]


def additions(act) -> dict[str, int]:
    with profile(activities=[ProfilerActivity.CPU]) as record:
        act()
    counts = collections.Counter(event.name for event in record.events())
    return {name: counts[name] for name in ("aten::add", "aten::add_") if counts[name]}


def three_hundred_terms(size):
    x = torch.ones(size, requires_grad=True)
    return x, torch.stack([(x * float(i)).sum() for i in range(300)]).sum()


@pytest.mark.parametrize("size", SIZES)
def test_many_terms_are_added_into_one_buffer(size):
    _, loss = three_hundred_terms(size)
    assert additions(loss.backward) == {"aten::add_": 299}


@pytest.mark.parametrize("size", SIZES)
def test_under_create_graph_each_sum_is_a_tensor_of_its_own(size):
    x, loss = three_hundred_terms(size)
    assert additions(lambda: torch.autograd.grad(loss, x, create_graph=True)) == {"aten::add": 299}


@pytest.mark.parametrize("size", SIZES)
def test_a_dispatch_mode_sees_each_sum_out_of_place(size):
    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.counts = collections.Counter()

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            self.counts[str(op)] += 1
            return op(*args, **(kwargs or {}))

    _, loss = three_hundred_terms(size)
    with Count() as mode:
        loss.backward()
    assert mode.counts["aten.add.Tensor"] == 299 and mode.counts["aten.add_.Tensor"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 0), (16, 16), (1, 7, 1), (300,)])
def test_sums_of_every_size_are_those_of_addition(shape, dtype):
    """Whoever else holds the terms."""
    terms = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in range(4)]
    x = torch.zeros(shape, dtype=dtype, requires_grad=True)
    makes = [lambda: terms[0], terms[1].clone, lambda: terms[2], terms[3].clone]
    sum(Produce.apply(x * 1, make) for make in makes).sum().backward()
    copies = [term.clone() for term in terms]
    expected = copies[3] + copies[2] + copies[1] + copies[0]  # nodes made last run first
    assert torch.equal(x.grad, expected) and x.grad.stride() == expected.stride()
    assert all(torch.equal(term, copy) for term, copy in zip(terms, copies, strict=True))


def test_a_gradient_is_cast_to_the_dtype_and_summed_to_the_shape_of_what_it_is_for():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    Produce.apply(x, lambda: torch.ones(3, 2, dtype=torch.float32)).sum().backward()
    assert x.grad.dtype == torch.float64 and x.grad.tolist() == [3, 3]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_a_gradient_of_another_real_dtype_is_cast(dtype):
    x = leaf(2)
    Produce.apply(x, lambda: torch.ones(2, dtype=dtype)).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [1, 1]


def test_grad_dtype_of_a_leaf_is_respected():
    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    x.grad_dtype = torch.float32
    x.float().sum().backward()
    assert x.grad.dtype == torch.float32


def test_grad_must_fit_its_tensor():
    x = leaf(2)
    assert message(lambda: setattr(x, "grad", torch.ones(3))) == (
        "RuntimeError: attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please ensure that the "
        "gradient and the tensor are the same size"
    )


def test_sparse_gradients_stay_sparse_until_a_dense_one_comes():
    table, index = torch.nn.Embedding(4, 2, sparse=True), torch.tensor([1, 1, 2])
    table(index).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad._nnz() == 3
    table(index).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad._nnz() == 6
    (table.weight * 1).sum().backward()
    assert table.weight.grad.layout == torch.strided


def test_sparse_and_dense_gradients_in_one_backward_add_up_to_a_dense_one():
    table, index = torch.nn.Embedding(4, 2, sparse=True), torch.tensor([1, 1, 2])
    (table(index).sum() + (table.weight * 1).sum()).backward()
    assert table.weight.grad.layout == torch.strided
    assert table.weight.grad.tolist() == [[1, 1], [3, 3], [2, 2], [1, 1]]


def test_a_sparse_gradient_of_a_dense_leaf_is_kept_as_it_is():
    x = leaf(2)
    Produce.apply(x, lambda: torch.eye(2)[0].to_sparse()).sum().backward()
    assert x.grad.layout == torch.sparse_coo and x.grad.to_dense().tolist() == [1, 0]


def test_complex_leaves_have_complex_gradients():
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2, 2]


def test_nested_tensors_have_nested_gradients():
    x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, requires_grad=True)
    (x * 2).values().sum().backward()
    assert x.grad.is_nested and x.grad.values().tolist() == [2] * 5


def test_leaves_on_meta_have_gradients_on_meta():
    x = torch.ones(2, device="meta", requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.device.type == "meta" and x.grad.shape == (2,)


def test_sums_of_gradients_keep_their_tangents():
    x, direction = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([1.0, -1.0, 0.5])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, direction)
        (gradient,) = torch.autograd.grad((dual * dual * dual + dual.sin()).sum(), dual)
        tangent = forward_ad.unpack_dual(gradient).tangent
    torch.testing.assert_close(tangent, (6 * x - x.sin()).detach() * direction)
