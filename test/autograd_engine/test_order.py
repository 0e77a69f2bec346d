"""Order: larger sequence number first, leaves before all, a node once and after all its consumers."""

import heapq
import itertools
import random
import threading
import weakref

import pytest
import torch
from autograd_engine.vocabulary import Call, Log, leaf, nodes_of

pytestmark = pytest.mark.usefixtures("engine")


def random_graph(seed: int) -> torch.Tensor:
    """A scalar over some 25 operations on four leaves."""
    draw = random.Random(seed)
    pool = [leaf(2) for _ in range(4)]
    for _ in range(25):
        pool.append(draw.choice(pool) * draw.choice(pool) if draw.random() < 0.7 else draw.choice(pool).sin())
    return sum(value.sum() for value in pool[-3:])


def heap_order(root) -> list:
    """The order of a heap by sequence number over nodes all of whose consumers have run."""
    consumers = dict.fromkeys(nodes_of(root), 0)
    for node in consumers:
        for below, _ in node.next_functions:
            if below is not None:
                consumers[below] += 1
    pushed = itertools.count()
    heap, order = [(-root._sequence_nr(), next(pushed), root)], []
    while heap:
        _, _, node = heapq.heappop(heap)
        order.append(node)
        for below, _ in node.next_functions:
            if below is not None:
                consumers[below] -= 1
                if consumers[below] == 0:
                    heapq.heappush(heap, (-below._sequence_nr(), next(pushed), below))
    return order


def post_accumulate_order(named_parameters, run) -> list:
    """Names of the parameters in the order in which they are accumulated."""
    order = []
    for name, parameter in named_parameters:
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    run()
    return order


def test_of_two_ready_nodes_the_one_made_later_in_forward_runs_first():
    a, order = leaf(2), []
    b, c = a * 2, a * 3
    b.register_hook(lambda grad: order.append("b"))
    c.register_hook(lambda grad: order.append("c"))
    (b + c).sum().backward()
    assert order == ["c", "b"]


@pytest.mark.parametrize("first_seed", range(0, 100, 20))
def test_random_graphs_run_in_the_order_of_a_heap_by_sequence_number(first_seed):
    for seed in range(first_seed, first_seed + 20):
        root, ran = random_graph(seed), []
        for node in nodes_of(root.grad_fn):
            node.register_prehook(lambda grads, node=node, ran=ran: ran.append(node))
        expected = heap_order(root.grad_fn)
        root.backward()

        def inner(nodes):
            return [node for node in nodes if node.name() != "torch::autograd::AccumulateGrad"]

        assert inner(ran) == inner(expected), f"seed {seed}"


@pytest.mark.parametrize(
    ("leaves", "order"),
    [
        (2, [0, 1]),
        (3, [0, 1, 2]),
        (4, [0, 2, 1, 3]),
        (5, [0, 2, 4, 1, 3]),
        (8, [0, 2, 6, 5, 7, 4, 1, 3]),
    ],
)
def test_leaves_made_ready_by_one_node_run_in_the_order_of_a_binary_heap_with_equal_keys(leaves, order):
    parameters = [(index, leaf(2)) for index in range(leaves)]
    stacked = torch.stack([parameter for _, parameter in parameters]).sum()
    assert post_accumulate_order(parameters, stacked.backward) == order


@pytest.mark.parametrize(
    ("module", "shape", "order"),
    [
        (lambda: torch.nn.Linear(2, 2), (1, 2), ["bias", "weight"]),
        (lambda: torch.nn.LayerNorm(2), (1, 2), ["weight", "bias"]),
        (
            lambda: torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(3)]),
            (1, 2),
            ["2.bias", "2.weight", "1.bias", "1.weight", "0.bias", "0.weight"],
        ),
        (
            lambda: torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
            (1, 3, 4),
            [
                "norm2.weight",
                "norm2.bias",
                "linear2.bias",
                "linear2.weight",
                "linear1.bias",
                "linear1.weight",
                "norm1.weight",
                "norm1.bias",
                "self_attn.out_proj.bias",
                "self_attn.out_proj.weight",
                "self_attn.in_proj_bias",
                "self_attn.in_proj_weight",
            ],
        ),
    ],
    ids=["linear", "layer norm", "mlp", "encoder layer"],
)
def test_parameters_of_a_module_are_accumulated_in_upstreams_order(module, shape, order):
    module = module()
    loss = module(torch.ones(shape)).sum()
    assert post_accumulate_order(module.named_parameters(), loss.backward) == order


def test_sequence_numbers_are_per_thread_so_that_what_a_new_thread_made_runs_last():
    order, made, a = [], [], leaf(2)
    for _ in range(50):
        a * 1
    early = Log.apply(a, "main", order)
    thread = threading.Thread(target=lambda: made.append(Log.apply(a, "thread", order)))
    thread.start()
    thread.join()
    assert made[0].grad_fn._sequence_nr() < early.grad_fn._sequence_nr()
    (early + made[0]).sum().backward()
    assert order == ["main", "thread"]


def test_a_nested_backward_runs_whole_and_runs_no_node_of_the_outer_one():
    order, a = [], leaf(2)

    def inner(grad):
        order.append("inner begins")
        with torch.enable_grad():
            Log.apply(Log.apply(leaf(2), "i1", order), "i2", order).sum().backward()
        order.append("inner ends")

    low = Log.apply(a, "outer low", order)
    nested = Call.apply(a, inner)
    high = Log.apply(a, "outer high", order)
    (low + nested + high).sum().backward()
    assert order == ["outer high", "inner begins", "i2", "i1", "inner ends", "outer low"]


def test_a_node_waits_for_all_its_consumers_and_gets_the_sum():
    x, seen = leaf(2), []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    (x * x + x).sum().backward()
    assert seen == [[3.0, 3.0]]


@pytest.mark.parametrize("old", [True, False], ids=["an old node", "a leaf"])
@pytest.mark.parametrize("gap", [0, 5000, 100_000])
def test_a_node_met_again_after_many_others_is_the_same_node(old, gap):
    """Early in the traversal and late, with `gap` nodes of other graphs made between it and the rest of its graph."""
    x, seen = torch.ones(2, dtype=torch.float64, requires_grad=True), []
    y = x.sin() if old else x
    y.register_hook(seen.append)
    for _ in range(gap):
        x + 1
    z = y
    for _ in range(2000):
        z = z * 1.0
    (y + z).sum().backward()
    assert [grad.tolist() for grad in seen] == [[2, 2]]
    assert x.grad.tolist() == ((2 * x.detach().cos()) if old else torch.full((2,), 2.0)).tolist()


def test_a_root_given_twice_and_a_root_inside_anothers_graph_add_up():
    x = leaf()
    y = x * 2
    z = y * 3
    torch.autograd.backward([z, y, z])
    assert x.grad.item() == 6 + 2 + 6


def test_gradients_are_added_in_the_same_order_in_every_run():
    def gradient():
        torch.manual_seed(0)
        x = torch.randn(1000, requires_grad=True)
        sum((x * torch.randn(1000)).sin().sum() for _ in range(40)).backward()
        return x.grad

    first = gradient()
    assert all(torch.equal(first, gradient()) for _ in range(10))


def test_few_gradients_are_alive_at_a_time_in_a_wide_graph():
    class Counting(torch.autograd.Function):
        alive = peak = 0

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            result = grad * 1
            Counting.alive += 1
            Counting.peak = max(Counting.peak, Counting.alive)
            weakref.finalize(result, lambda: setattr(Counting, "alive", Counting.alive - 1))
            return result

    x = leaf(2)
    torch.stack([Counting.apply(Counting.apply(x)) for _ in range(50)]).sum().backward()
    assert Counting.peak == 3


ORDER_WITHOUT_THREADS = (
    "get_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, "
    "e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     torch.autograd.grad(...)\n"
)


def test_the_execution_order_can_be_asked_with_multithreading_off():
    x, w, predicted, ran = leaf(2), leaf(2), [], []
    y = x.sin()
    z = (y * w + y).sum()
    root = Call.apply(
        z, lambda grad: predicted.extend(node.name() for node in torch._C._current_graph_task_execution_order())
    )
    for node in nodes_of(root.grad_fn):
        node.register_prehook(lambda grads, node=node: ran.append(node.name()))
    with torch.autograd.set_multithreading_enabled(False):
        root.backward()
    assert predicted == ran
    leaf_node = "torch::autograd::AccumulateGrad"
    assert ran == ["CallBackward", "SumBackward0", "AddBackward0", "MulBackward0", leaf_node, "SinBackward0", leaf_node]


def test_the_execution_order_cannot_be_asked_outside_backward():
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        torch._C._current_graph_task_execution_order()
