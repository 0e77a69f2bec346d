"""Activation checkpointing of both kinds, and what upstream refuses."""

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf, message
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

pytestmark = pytest.mark.usefixtures("engine")


def block(x, w):
    return (x @ w).tanh() @ w


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpointed_network_has_the_gradients_of_a_plain_one(use_reentrant):
    torch.manual_seed(0)
    w = torch.randn(8, 8, dtype=torch.float64, requires_grad=True)
    start = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)

    def gradients(wrap):
        x = start
        for _ in range(5):
            x = wrap(x)
        w.grad = start.grad = None
        x.square().sum().backward()
        return w.grad, start.grad

    plain = gradients(lambda x: block(x, w))
    checkpointed = gradients(lambda x: checkpoint(block, x, w, use_reentrant=use_reentrant))
    torch.testing.assert_close(checkpointed, plain)


def test_checkpoints_of_both_kinds_nest():
    x = leaf(3)

    def inner(v):
        return checkpoint(torch.sin, checkpoint(torch.exp, v, use_reentrant=False), use_reentrant=True)

    checkpoint(inner, x, use_reentrant=False).sum().backward()
    value = x.detach()
    torch.testing.assert_close(x.grad, value.exp().cos() * value.exp())


def test_selective_checkpointing_recomputes_what_it_does_not_keep():
    x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)

    def keep_products():
        return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])

    loss = checkpoint(block, x, x, use_reentrant=False, context_fn=keep_products).sum()
    (gradient,) = torch.autograd.grad(loss, x)
    (expected,) = torch.autograd.grad(block(x, x).sum(), x)
    assert torch.equal(gradient, expected)


REENTRANT_TEXT = (
    "RuntimeError: When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
    "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() "
    "without passing the `inputs` argument."
)


def test_reentrant_checkpoints_refuse_partial_backwards():
    x = leaf(2)
    loss = checkpoint(torch.sin, x, use_reentrant=True).sum()
    assert message(lambda: torch.autograd.grad(loss, x)) == REENTRANT_TEXT
    loss = checkpoint(torch.sin, x, use_reentrant=True).sum()
    assert message(lambda: loss.backward(inputs=[x])) == REENTRANT_TEXT
    checkpoint(torch.sin, x, use_reentrant=True).sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos())


def test_whether_checkpoints_may_run_is_known_inside_a_backward():
    valid, seen, x = torch.autograd.Variable._execution_engine.is_checkpoint_valid, [], leaf(1)

    def loss(act=lambda grad: seen.append(valid())):
        return Call.apply(x, act).sum()

    def nested(grad):
        with torch.enable_grad():
            loss().backward()

    assert valid()
    loss().backward()
    torch.autograd.grad(loss(), x)
    loss().backward(inputs=[x])
    torch.autograd.grad(loss(nested), x)
    assert seen == [True, False, False, False]
    assert valid()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_an_error_while_recomputing_arrives_as_itself(use_reentrant):
    calls = []

    def fails_the_second_time(v):
        calls.append(v)
        if len(calls) > 1:
            raise ValueError("recompute")
        return v.sin()

    loss = checkpoint(fails_the_second_time, leaf(2), use_reentrant=use_reentrant).sum()
    assert message(loss.backward) == "ValueError: recompute"


def test_dropout_is_the_same_when_recomputed():
    x = torch.ones(1000, requires_grad=True)
    y = checkpoint(torch.nn.functional.dropout, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
