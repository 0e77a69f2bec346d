"""Policies: in which order nodes that may run do run. What `sequence` does is in test_order.py."""

import weakref

import pytest
import torch
from autograd_engine.random_graphs import Recipe, run
from autograd_engine.test_cpp_nodes import build
from autograd_engine.vocabulary import Call, leaf, message, nodes_of, output, run_process

from mybackend.autograd import get_policy, policies, register_policy, set_policy, use_cpu_workers, use_policy

pytestmark = pytest.mark.usefixtures("our_engine")


def test_policies_are_chosen_by_name_for_a_block_or_for_good():
    assert policies()[:3] == ["sequence", "stable", "memory"]
    assert get_policy() == "sequence"
    with use_policy("memory"):
        assert get_policy() == "memory"
        set_policy("stable")
    assert get_policy() == "sequence"


def test_a_policy_of_another_name_is_refused():
    with pytest.raises(ValueError, match="policy: expected one of 'sequence', 'stable', 'memory'.*, but got 'fast'"):
        set_policy("fast")


def test_stable_accumulates_the_leaves_of_a_node_in_the_order_of_its_inputs():
    order, leaves = [], [leaf(2) for _ in range(8)]
    for number, x in enumerate(leaves):
        x.register_post_accumulate_grad_hook(lambda _, number=number: order.append(number))
    with use_policy("stable"):
        torch.stack(leaves).sum().backward()
    assert order == list(range(8))


class Expand(torch.autograd.Function):
    """The sum of a large value; its backward makes a large gradient, whose life `alive` follows."""

    alive: set = set()
    peak = 0

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        large = grad.expand(ctx.shape).clone()
        Expand.alive.add(id(large))
        weakref.finalize(large, Expand.alive.discard, id(large))
        Expand.peak = max(Expand.peak, len(Expand.alive))
        return large


@pytest.mark.parametrize(("policy", "peak"), [("sequence", 10), ("memory", 1)])
def test_memory_uses_each_large_gradient_up_before_it_makes_the_next(policy, peak):
    small = leaf(1)
    Expand.alive, Expand.peak = set(), 0
    large = [Call.apply(small.expand(1000), lambda grad: grad * 1) for _ in range(10)]
    losses = [Expand.apply(x) for x in large]
    with use_policy(policy):
        sum(losses).backward()
    assert Expand.peak == peak
    assert small.grad.item() == 10_000


@pytest.mark.parametrize("policy", ["stable", "memory"])
@pytest.mark.parametrize("seed", range(20))
def test_gradients_are_those_of_upstreams_order(policy, seed):
    recipe = Recipe(seed=seed, steps=100, features=frozenset({"views", "outputs", "functions", "checkpoint"}))
    expected = run(recipe, lambda: None).gradients
    with use_policy(policy):
        ours = run(recipe, lambda: None).gradients
    torch.testing.assert_close(ours, expected)


def test_the_execution_order_that_can_be_asked_is_that_of_the_policy():
    predicted, ran, x = [], [], leaf(1000)
    later = (x * 2).sum() + x.sin().sum() + x.exp().mean()
    root = Call.apply(later, lambda grad: predicted.extend(torch._C._current_graph_task_execution_order()))
    for node in nodes_of(root.grad_fn):
        node.register_prehook(lambda grads, node=node: ran.append(node))
    with use_policy("stable"):
        root.backward()
    assert predicted == ran


def branches(log: list):
    """A scalar over three branches, made in the order 0, 1, 2, that append their numbers to `log` as they run."""
    x = leaf(2)
    return sum(Call.apply(x * 1, lambda grad, number=number: log.append(number)).sum() for number in range(3))


def test_a_function_can_be_a_policy():
    log, seen = [], []

    def oldest_first(node):
        seen.append(node)
        return 2**64 - 1 - node.sequence

    register_policy("oldest first, in Python", oldest_first)
    assert policies()[-1] == "oldest first, in Python"
    with use_policy("oldest first, in Python"):
        assert get_policy() == "oldest first, in Python"
        branches(log).backward()
    assert log == [0, 1, 2]
    assert seen[-1].sequence == 2**64 - 1 and seen[-1].bytes_in == 8 and seen[-1].arrival == len(seen) - 1


def test_a_policy_can_be_written_in_cpp():
    log = []
    register_policy("oldest first, in C++", build().oldest_first())
    with use_policy("oldest first, in C++"):
        branches(log).backward()
    assert log == [0, 1, 2]


def test_what_a_policy_raises_reaches_the_caller():
    def fail(node):
        raise KeyError("key")

    register_policy("fails", fail)
    register_policy("negative", lambda node: -1)
    register_policy("text", lambda node: "first")
    for name, text in [
        ("fails", "KeyError: 'key'"),
        ("negative", "ValueError: policy 'negative': the key has to be an int from 0 to 2**64 - 1, but got -1"),
        ("text", "ValueError: policy 'text': the key has to be an int from 0 to 2**64 - 1, but got 'first'"),
    ]:
        for workers in (1, 2):
            with use_policy(name), use_cpu_workers(workers):
                assert message(branches([]).backward) == text
    log = []
    branches(log).backward()
    assert log == [2, 1, 0]


def test_a_policy_has_a_name_of_its_own_and_a_key():
    with pytest.raises(ValueError, match="register_policy: there is a policy 'memory' already"):
        register_policy("memory", lambda node: 0)
    with pytest.raises(ValueError, match="register_policy: expected a name, but got ''"):
        register_policy("", lambda node: 0)
    with pytest.raises(TypeError, match="register_policy: key: expected a function or a capsule .* but got int"):
        register_policy("seven", 7)


def test_the_environment_chooses_the_policy():
    assert output("print(mybackend.autograd.get_policy())", "mybackend", MYBACKEND_ENGINE_POLICY="memory") == ["memory"]
    done = run_process("", "mybackend", MYBACKEND_ENGINE_POLICY="fast")
    assert "MYBACKEND_ENGINE_POLICY='fast': expected one of sequence, stable, memory" in done.stderr
