"""Hooks of tensors, nodes and leaves: their order, what they see, what they may return, what changes while they run."""

import threading

import pytest
import torch
from autograd_engine.vocabulary import leaf, message

pytestmark = pytest.mark.usefixtures("engine")


def test_hooks_run_in_a_fixed_order_around_a_node_and_around_a_leaf():
    log, x = [], leaf(2)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: log.append("y node prehook"))
    y.register_hook(lambda grad: log.append(("y tensor hook 1", y.grad)))
    y.register_hook(lambda grad: (log.append("y tensor hook 2"), grad * 10)[1])
    y.grad_fn.register_hook(
        lambda inputs, outputs: log.append(("y node posthook", inputs[0].tolist(), outputs[0].tolist()))
    )
    accumulate = y.grad_fn.next_functions[0][0]
    x.register_hook(lambda grad: log.append("x tensor hook"))
    accumulate.register_prehook(lambda grads: log.append(("x node prehook", x.grad)))
    accumulate.register_hook(lambda inputs, outputs: log.append(("x node posthook", inputs, x.grad.tolist())))
    x.register_post_accumulate_grad_hook(lambda leaf: log.append(("x post-accumulate", leaf.grad.tolist())))
    y.sum().backward()
    assert log == [
        ("y tensor hook 1", None),
        "y tensor hook 2",
        "y node prehook",
        ("y node posthook", [20, 20], [10, 10]),
        "x tensor hook",
        ("x node prehook", None),
        ("x post-accumulate", [20, 20]),
        ("x node posthook", (), [20, 20]),
    ]
    assert y.grad.tolist() == [10, 10], "retain_grad keeps what the tensor hooks made"


def test_a_post_accumulate_hook_is_for_leaves_only():
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (leaf(2) * 1).register_post_accumulate_grad_hook(lambda leaf: None)


def test_a_post_accumulate_hook_may_clear_grad():
    x = leaf(2)
    x.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, "grad", None))
    (x * 1).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (3, "TypeError: expected Variable, but hook returned 'int'"),
        (torch.ones(2), "RuntimeError: Tensor post accumulate grad hooks should return None."),
    ],
)
def test_a_post_accumulate_hook_must_return_none(returned, text):
    x = leaf(2)
    x.register_post_accumulate_grad_hook(lambda leaf: returned)
    assert message((x * 1).sum().backward) == text


def test_when_a_post_accumulate_hook_raises_grad_is_already_there():
    def fail(leaf):
        raise ValueError("post")

    x = leaf(2)
    x.register_post_accumulate_grad_hook(fail)
    assert message((x * 1).sum().backward) == "ValueError: post"
    assert x.grad.tolist() == [1, 1]


WRONG_RETURNS = [
    ("tensor hook", torch.ones(3), "RuntimeError: hook '<lambda>' has changed the size of value"),
    ("tensor hook", 5, "TypeError: expected Variable, but hook returned 'int'"),
    (
        "tensor hook",
        torch.ones(2).double(),
        "RuntimeError: hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
    ),
    ("tensor hook", (torch.ones(2),), "TypeError: expected Variable, but hook returned 'tuple'"),
    (
        "posthook",
        (torch.ones(3),),
        "RuntimeError: hook '<lambda>' has returned an incorrect number of values (got 1, but expected 2)",
    ),
    ("posthook", 5, "TypeError: expected tuple, but hook returned 'int'"),
    ("posthook", (torch.ones(2), torch.ones(2)), "RuntimeError: can't replace a None gradient with a non-None value"),
    ("prehook", (torch.ones(3),), "RuntimeError: hook '<lambda>' has changed the size of value"),
    ("prehook", 5, "TypeError: expected tuple, but hook returned 'int'"),
    (
        "prehook",
        (),
        "RuntimeError: hook '<lambda>' has returned an incorrect number of values (got 0, but expected 1)",
    ),
]


@pytest.mark.parametrize(("kind", "returned", "text"), WRONG_RETURNS)
def test_a_hook_that_returns_something_else_is_refused(kind, returned, text):
    y = leaf(2) * 1
    if kind == "tensor hook":
        y.register_hook(lambda grad: returned)
    elif kind == "prehook":
        y.grad_fn.register_prehook(lambda grads: returned)
    else:
        y.grad_fn.register_hook(lambda inputs, outputs: returned)
    assert message(y.sum().backward) == text


def test_a_node_prehook_may_take_the_gradient_away():
    x = leaf(2)
    y = x * 1
    y.grad_fn.register_prehook(lambda grads: (None,))
    y.sum().backward()
    assert x.grad is None


def test_a_tensor_that_does_not_require_grad_has_no_hooks():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(2).register_hook(lambda grad: grad)


def test_a_hook_removed_by_an_earlier_hook_of_the_same_tensor_still_runs():
    log, y = [], leaf(2) * 1
    later = []

    def first(grad):
        log.append("first")
        later[0].remove()

    y.register_hook(first)
    later.append(y.register_hook(lambda grad: log.append("second")))
    y.sum().backward()
    assert log == ["first", "second"]


def test_a_hook_added_to_a_tensor_whose_node_has_not_run_yet_runs():
    log, x = [], leaf(2)
    y = x.clone()
    z = y * 1
    z.register_hook(lambda grad: (y.register_hook(lambda grad: log.append("added")), None)[1])
    z.sum().backward()
    assert log == ["added"]


def test_hooks_stay_with_the_node_a_tensor_had_when_they_were_registered():
    log, x = [], leaf(2)
    y = x * 1
    y.register_hook(lambda grad: log.append(("before", grad.tolist())))
    y.mul_(3)
    y.register_hook(lambda grad: log.append(("after", grad.tolist())))
    y.retain_grad()
    y.sum().backward()
    assert log == [("after", [1, 1]), ("before", [3, 3])]
    assert y.grad.tolist() == [1, 1]


def test_retained_gradients_add_up_over_backwards_of_a_leaf_alone():
    x = leaf(2)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert y.grad.tolist() == [2, 2] and x.grad.tolist() == [4, 4]


def test_module_hooks_see_the_gradients_of_the_module():
    module, seen = torch.nn.Linear(2, 1, bias=False), []
    module.weight.data.fill_(3)
    module.register_full_backward_pre_hook(lambda module, outputs: seen.append(("pre", outputs[0].tolist())))
    module.register_full_backward_hook(
        lambda module, inputs, outputs: seen.append(("post", inputs[0].tolist(), outputs[0].tolist()))
    )
    module(leaf(1, 2)).sum().backward()
    assert seen == [("pre", [[1]]), ("post", [[3, 3]], [[1]])]


def test_hooks_may_be_added_and_removed_by_another_thread_while_backward_runs():
    x, done = leaf(2), threading.Event()
    y = x.sin()
    loss = y.exp().sum()

    def churn():
        while not done.is_set():
            handles = [y.register_hook(lambda grad: None), y.grad_fn.register_prehook(lambda grads: None)]
            for handle in handles:
                handle.remove()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(300):
            loss.backward(retain_graph=True)
    finally:
        done.set()
        thread.join()
    torch.testing.assert_close(x.grad / 300, x.detach().cos() * x.detach().sin().exp())
