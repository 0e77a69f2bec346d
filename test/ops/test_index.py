"""Indexing, gather/scatter and masks: what torch's CPU gives, errors included."""

import pytest
import torch

from mybackend.testing import cases, check_backward, check_forward

OPERATORS = """
    __getitem__ index_put index_select index_add index_copy index_fill index_reduce.prod index_reduce.mean
    index_reduce.amax index_reduce.amin take put gather scatter scatter_add scatter_reduce.sum scatter_reduce.prod
    scatter_reduce.mean scatter_reduce.amax scatter_reduce.amin masked_fill masked_select masked_scatter nonzero
    nonzero_static argwhere take_along_dim where
"""
NAMES = frozenset(OPERATORS.split())
FLOATS = (torch.float32, torch.float64)
OTHERS = (torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)


@pytest.mark.parametrize("case", list(cases(FLOATS[:1] + OTHERS, NAMES)), ids=str)
def test_an_operator_gives_what_the_cpu_gives(device, case):
    check_forward(case, device, limit=6)


@pytest.mark.parametrize("case", list(cases(FLOATS[1:], NAMES)), ids=str)
def test_an_operator_differentiates_as_on_the_cpu(device, case):
    check_backward(case, device, limit=4)


def both(device, f, *tensors):
    """f on copies of the tensors on the device and on the CPU."""
    ours = f(*[t.clone().to(device) for t in tensors])
    theirs = f(*[t.clone() for t in tensors])
    return ours.cpu(), theirs


X = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
CALLS = {
    "one index": lambda x: x[torch.tensor([1, 0, -1], device=x.device)],
    "an index in the middle": lambda x: x[:, torch.tensor([2, 0], device=x.device)],
    "an index last": lambda x: x[..., torch.tensor([[4, 0], [-1, 2]], device=x.device)],
    "two indices, broadcast": lambda x: x[
        torch.tensor([[0], [1]], device=x.device), torch.tensor([0, 2], device=x.device)
    ],
    "indices apart": lambda x: x[torch.tensor([0, 1], device=x.device), :, torch.tensor([3, 1], device=x.device)],
    "int32 indices": lambda x: x[torch.tensor([1, 0], dtype=torch.int32, device=x.device)],
    "a mask": lambda x: x[x > 30],
    "a mask over two dimensions": lambda x: x[x[..., 0, 0] > 30],
    "an empty index": lambda x: x[torch.empty(0, dtype=torch.long, device=x.device)],
    "a transposed tensor": lambda x: x.transpose(0, 3)[torch.tensor([3, 1], device=x.device)],
    "indices on the CPU": lambda x: x[torch.tensor([1, 0])],
    "channels last": lambda x: x.to(memory_format=torch.channels_last)[torch.tensor([1, 0, 1], device=x.device)],
    "index_select of a strided tensor": lambda x: x[..., ::2].index_select(3, torch.tensor([2, 0], device=x.device)),
    "index_select of a 0-dim tensor": lambda x: x[0, 0, 0, 3].index_select(0, torch.tensor([0], device=x.device)),
    "gather of an expanded tensor": lambda x: (
        x[:1].expand(2, 3, 4, 5).gather(1, torch.tensor([2, 0], device=x.device).view(1, 2, 1, 1).expand(2, 2, 4, 5))
    ),
    "index_put of a scalar by mask": lambda x: x.index_put_((x > 50,), torch.tensor(-1.0)),
    "index_put into rows": lambda x: x.index_put_((torch.tensor([1], device=x.device),), -x[:1]),
    "index_put that accumulates": lambda x: x.index_put_(
        (torch.tensor([0, 1, 0, -1], device=x.device), torch.tensor([2, 1, 2, 1], device=x.device)),
        x[:, :2].reshape(4, 4, 5),
        accumulate=True,
    ),
    "masked_fill with a broadcast mask": lambda x: x.masked_fill(x[0, 0, 0] > 2, -torch.inf),
    "masked_fill of a transposed tensor": lambda x: x.transpose(1, 3).masked_fill_(x.transpose(1, 3) > 7, 0.5),
    "masked_select of a transposed tensor": lambda x: x.transpose(0, 3).masked_select(x.transpose(0, 3) > 60),
    "masked_scatter": lambda x: x.masked_scatter(x > 70, -x),
    "nonzero of a transposed tensor": lambda x: (x.transpose(0, 2) % 3 == 0).nonzero(),
    "nonzero of a 0-dim tensor": lambda x: x[0, 0, 0, 1].nonzero(),
    "nonzero tells -0 from NaN": lambda x: torch.tensor([-0.0, torch.nan, 0.0, torch.inf], device=x.device).nonzero(),
}


@pytest.mark.parametrize("name", CALLS)
def test_indexing_gives_what_the_cpu_gives(device, name):
    ours, theirs = both(device, CALLS[name], X)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(100_003,), (257, 1000), (40, 3, 4096)])
def test_a_mask_over_many_chunks_chooses_in_order(device, shape):
    torch.manual_seed(0)
    x = torch.randn(shape)
    for f in (lambda x: x[x > 0.5], lambda x: (x > 1).nonzero(), lambda x: x.masked_scatter(x < 0, x * 2)):
        ours, theirs = both(device, f, x)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_colliding_elements_are_added_in_order(device, dim, dtype):
    torch.manual_seed(0)
    x, index = torch.zeros(300, 40, 70, dtype=dtype), torch.randint(0, 3, (300, 40, 70))
    source = torch.randn(300, 40, 70).mul(4).to(dtype)
    ours, theirs = both(device, lambda x, i, s: x.scatter_add_(dim, i, s), x, index, source)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("columns", [1, 3, 256, 1000])
def test_accumulation_does_not_depend_on_the_number_of_threads(device, columns):
    torch.manual_seed(0)
    x, index, source = torch.zeros(50, columns), torch.randint(0, 50, (4000,)), torch.randn(4000, columns)
    results = []
    threads = torch.get_num_threads()
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(both(device, lambda x, i, s: x.index_put_((i,), s, accumulate=True), x, index, source)[0])
        results.append(both(device, lambda x, i, s: x.index_add_(0, i, s), x, index, source)[0])
    torch.set_num_threads(threads)
    assert all(torch.equal(results[0], r) for r in results)
    torch.testing.assert_close(results[0], x.index_add(0, index, source))


def rejects(device, f, *tensors):
    """Both sides raise the same exception with the same text; the device works on."""
    with pytest.raises(Exception) as theirs:
        f(*[t.clone() for t in tensors])
    with pytest.raises(type(theirs.value)) as ours:
        f(*[t.clone().to(device) for t in tensors])
        torch.mybackend.synchronize()  # a busy stream reports when it is waited for
    assert torch.ones(2, device=device).cpu().tolist() == [1, 1]
    return str(ours.value).splitlines()[0], str(theirs.value).splitlines()[0]


ERRORS = {
    "index out of range": lambda x, i: x[i + 5],
    "index far below zero": lambda x, i: x[:, i - 9],
    "second index out of range": lambda x, i: x[i, i + 2],
    "too many indices": lambda x, i: x[i, i, i],
    "index of floats": lambda x, i: x[i.float()],
    "mask of another shape": lambda x, i: x[x[:, :2] > 0],
    "gather out of range": lambda x, i: x.gather(0, i.view(1, -1) + 2),
    "gather below zero": lambda x, i: x.gather(1, i.view(1, -1) - 1),
    "scatter out of range": lambda x, i: x.scatter_(0, i.view(1, -1) + 2, 1.0),
    "index_select out of range": lambda x, i: x.index_select(0, i + 4),
    "index_add out of range": lambda x, i: x.index_add_(0, i + 2, x),
    "take out of range": lambda x, i: x.take(i + 20),
    "index_copy out of range": lambda x, i: x.index_copy_(0, i + 2, x),
    "index_put out of range": lambda x, i: x.index_put_((i + 3,), x[0]),
    "index_put of another dtype": lambda x, i: x.index_put_((i,), x.double()),
    "masked_fill by integers": lambda x, i: x.masked_fill(i.view(1, 3), 0.0),
    "masked_select by integers": lambda x, i: x.masked_select(i.view(1, 3)),
    "scatter of another dtype": lambda x, i: x.scatter(0, i.view(1, -1), x.double()),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake_is_reported_as_on_the_cpu(device, name):
    ours, theirs = rejects(device, ERRORS[name], torch.arange(9.0).reshape(3, 3), torch.tensor([0, 1, 2]))
    assert ours.replace("mybackend", "cpu") == theirs.replace("mybackend", "cpu")


def test_indexing_works_on_a_second_device():
    x = X.to("mybackend:1")
    y = x[torch.tensor([1], device="mybackend:1")]
    assert y.device == torch.device("mybackend:1")
    torch.testing.assert_close(y.cpu(), X[1:])
