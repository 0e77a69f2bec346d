"""Many threads, many processes, deep graphs: right results and no deadlock. Seconds in CI, a minute with
MYBACKEND_ENGINE_TESTS=long."""

import random
import threading
import time

import pytest
import torch
from autograd_engine.vocabulary import Call, Log, leaf, nest, output

pytestmark = pytest.mark.usefixtures("our_engine")
THREADS = 8


@pytest.fixture
def seconds(long_run) -> float:
    return 60 if long_run else 3


class Workload:
    """Backwards of every sort over own and shared graphs on several devices; each checks its own gradients."""

    def __init__(self, devices: list[str]):
        self.devices = devices
        self.shared_leaf = torch.zeros(64, dtype=torch.float64, requires_grad=True)
        self.shared_value = torch.ones(64, dtype=torch.float64, requires_grad=True)
        self.shared_graph = self.shared_value.sin().exp().sum()
        self.added = [0] * THREADS

    def own_graph(self, number: int, draw: random.Random) -> None:
        x = torch.full((16,), float(number), device=draw.choice(self.devices), requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.cpu().unique().tolist() == [2 * number]

    def several_devices(self, number: int, draw: random.Random) -> None:
        leaves = [torch.ones(16, device=device, requires_grad=True) for device in self.devices]
        total = sum((x * (k + 1)).cpu() for k, x in enumerate(leaves))
        total.to(draw.choice(self.devices)).sum().backward()
        for k, x in enumerate(leaves):
            assert x.grad.cpu().unique().tolist() == [k + 1]

    def into_shared_leaf(self, number: int, draw: random.Random) -> None:
        (self.shared_leaf * 1).sum().backward()
        self.added[number] += 1

    def over_shared_graph(self, number: int, draw: random.Random) -> None:
        (gradient,) = torch.autograd.grad(self.shared_graph, self.shared_value, retain_graph=True)
        value = self.shared_value.detach()
        torch.testing.assert_close(gradient, value.cos() * value.sin().exp())

    def nested(self, number: int, draw: random.Random) -> None:
        reached = []
        nest(draw.choice([2, 5, 65]), lambda: reached.append(number))
        assert reached == [number]

    def failing(self, number: int, draw: random.Random) -> None:
        def fail(grad):
            raise ValueError(number)

        x = torch.ones(4, device=draw.choice(self.devices), requires_grad=True)
        with pytest.raises(ValueError, match=str(number)):
            Call.apply(x * 2, fail).sum().backward()

    def second_order(self, number: int, draw: random.Random) -> None:
        x = torch.full((4,), 2.0, device=draw.choice(self.devices), requires_grad=True)
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.cpu().unique().tolist() == [12]

    def run(self, number: int, until: float) -> None:
        draw = random.Random(number)
        kinds = [
            self.own_graph,
            self.several_devices,
            self.into_shared_leaf,
            self.over_shared_graph,
            self.nested,
            self.failing,
            self.second_order,
        ]
        while time.monotonic() < until:
            draw.choice(kinds)(number, draw)


@pytest.mark.parametrize("devices", [["cpu"], ["cpu", "mybackend:0", "mybackend:1"]], ids=["cpu", "devices"])
def test_eight_threads_run_backwards_of_every_sort_at_once(devices, seconds):
    load, failures = Workload(devices), []

    def run(number):
        try:
            load.run(number, time.monotonic() + seconds)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
    assert not any(thread.is_alive() for thread in threads), "a backward hangs"
    if failures:
        raise failures[0]
    assert sum(load.added) > 0
    assert load.shared_leaf.grad.unique().tolist() == [sum(load.added)]


def test_forks_in_between_leave_parent_and_child_working(long_run):
    code = f"""
for turn in range({50 if long_run else 5}):
    nest(65, lambda: None)
    pid = os.fork()
    if pid == 0:
        x = leaf(4)
        (x * 2).sum().backward()
        nest(65, lambda: None)
        os._exit(0 if x.grad.tolist() == [2] * 4 else 1)
    assert os.waitpid(pid, 0)[1] == 0
x = leaf(4)
(x * 2).sum().backward()
print(x.grad.tolist())
"""
    assert output(code, "mybackend") == ["[2.0, 2.0, 2.0, 2.0]"]


def test_ten_thousand_small_backwards_keep_memory_flat(long_run):
    code = f"""
import resource
def step():
    x = torch.ones(1000, requires_grad=True)
    (x.sin() * x).sum().backward()
for _ in range(500): step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range({100_000 if long_run else 10_000}): step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    (grown,) = output(code, "mybackend")
    assert int(grown) < 4  # MiB; one leaked tensor a step would be 40


def test_a_graph_with_a_hundred_thousand_consumers_of_one_leaf():
    x = leaf(1)
    ran = []
    values = [x * 1 for _ in range(100_000)]
    Log.apply(torch.stack(values), "stack", ran).sum().backward()
    assert x.grad.item() == 100_000 and ran == ["stack"]
