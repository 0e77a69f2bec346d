"""Graphs over several devices and streams: every node on its device's thread and stream, every value waited for.

Passes with the host driver's streams inline and asynchronous (MYBACKEND_HOST_STREAMS=async), where work is delayed at
random and a missing wait gives wrong numbers; the last test runs this file so."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from autograd_engine.vocabulary import Call, leaf, message, output

SIZE = 1 << 12
IN_PROCESS = "not forked and not workers"  # tests that start no process of their own


pytestmark = pytest.mark.usefixtures("our_engine")


def value(device: str, number: float = 1.0) -> torch.Tensor:
    return torch.full((SIZE,), number, device=device, requires_grad=True)


def unique(tensor: torch.Tensor) -> list[float]:
    return tensor.cpu().unique().tolist()


class Note(torch.autograd.Function):
    """Identity that notes the thread, device and stream its backward runs on."""

    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        stream = torch.mybackend.current_stream(grad.device) if grad.device.type == "mybackend" else None
        ctx.log.append((threading.get_native_id(), torch.mybackend.current_device(), stream))
        return grad, None


def test_nodes_of_one_device_run_on_one_thread_and_in_order():
    log = []
    x = value("mybackend:0")
    y = x
    for _ in range(20):
        y = Note.apply(y, log)
    y.sum().backward()
    assert len({thread for thread, _, _ in log}) == 1
    assert unique(x.grad) == [1]


def test_a_node_runs_with_its_device_current():
    log = []
    x = value("mybackend:1")
    Note.apply(x, log).sum().backward()
    assert [device for _, device, _ in log] == [1]
    assert torch.mybackend.current_device() == 0


def test_graphs_across_devices_have_right_gradients():
    a, b, c = value("mybackend:0", 2.0), value("mybackend:1", 3.0), value("cpu", 5.0)
    for _ in range(10):
        for x in (a, b, c):
            x.grad = None
        ab = a * b.to("mybackend:0")
        bc = b * c.to("mybackend:1")
        ((ab.cpu() + bc.cpu()) * c).sum().backward()
        assert unique(a.grad) == [3 * 5]
        assert unique(b.grad) == [2 * 5 + 5 * 5]
        assert unique(c.grad) == [2 * 3 + 3 * 5 + 3 * 5]


def test_gradients_of_both_devices_meet_in_a_leaf_on_the_cpu():
    x = value("cpu")
    parts = [(x.to(f"mybackend:{number % 2}") * (number + 1)).sum().cpu() for number in range(10)]
    sum(parts).backward()
    assert unique(x.grad) == [55]


def test_a_node_runs_on_the_stream_of_its_forward():
    log, side = [], torch.mybackend.Stream("mybackend:0")
    x = value("mybackend:0")
    with torch.mybackend.stream(side):
        side.wait_stream(torch.mybackend.default_stream("mybackend:0"))
        y = Note.apply(x, log)
    torch.mybackend.current_stream("mybackend:0").wait_stream(side)
    y.sum().backward()
    assert [stream for _, _, stream in log] == [side]


def test_values_travel_between_streams_behind_events():
    default = torch.mybackend.current_stream("mybackend:0")
    streams = [torch.mybackend.Stream("mybackend:0") for _ in range(4)]
    for turn in range(5):
        x = value("mybackend:0")
        y = x * 1
        for number, stream in enumerate(streams):
            stream.wait_stream(default)
            with torch.mybackend.stream(stream):
                y = y * (number + 1.0)
            default.wait_stream(stream)
        y.sum().backward()
        assert unique(x.grad) == [24], f"turn {turn}"


def test_gradients_of_several_streams_are_added_into_one_leaf():
    default = torch.mybackend.current_stream("mybackend:0")
    for turn in range(5):
        x = value("mybackend:0")
        parts = []
        for number in range(6):
            stream = torch.mybackend.Stream("mybackend:0")
            stream.wait_stream(default)
            with torch.mybackend.stream(stream):
                parts.append((x * (number + 1.0)).sum())
            default.wait_stream(stream)
        sum(parts).backward()
        assert unique(x.grad) == [21], f"turn {turn}"


def test_gradients_are_ready_on_the_callers_stream_when_backward_returns():
    side = torch.mybackend.Stream("mybackend:0")
    for _ in range(5):
        x = value("mybackend:0")
        with torch.mybackend.stream(side):
            side.wait_stream(torch.mybackend.default_stream("mybackend:0"))
            y = x
            for _ in range(10):
                y = y * 2.0
            loss = y.sum()
        torch.mybackend.current_stream("mybackend:0").wait_stream(side)
        loss.backward()
        assert unique(x.grad + 1) == [1025]
        other = torch.mybackend.Stream("mybackend:0")
        other.wait_stream(torch.mybackend.current_stream("mybackend:0"))
        with torch.mybackend.stream(other):
            loss = (x * 3.0).sum()
            x.grad = None
            loss.backward()
            assert unique(x.grad) == [3]


def test_backward_called_from_a_side_stream_waits_for_nothing_it_did_not_use():
    side = torch.mybackend.Stream("mybackend:0")
    x = value("mybackend:0")
    loss = (x * 2.0).sum()
    side.wait_stream(torch.mybackend.default_stream("mybackend:0"))
    with torch.mybackend.stream(side):
        loss.backward()
        assert unique(x.grad) == [2]


def test_accumulating_twice_over_devices_adds_up():
    x, y = value("mybackend:0"), value("mybackend:1")
    for _ in range(5):
        ((x * 2.0).to("mybackend:1") * y).sum().backward()
    assert unique(x.grad) == [10] and unique(y.grad) == [10]


def test_nested_backwards_change_devices():
    outer, inner = value("mybackend:0"), value("mybackend:1")

    def node(grad):
        with torch.enable_grad():
            (inner * 2.0).sum().cpu().backward()

    loss = Call.apply(outer * 3.0, node).sum()
    loss.backward()
    assert unique(outer.grad) == [3] and unique(inner.grad) == [2]


def innermost(depth: int, run) -> list[int]:
    """Nests backwards: calls of `run(depth, node)` whose node makes the next; the device of the innermost node."""
    reached = []

    def node(grad):
        if depth:
            with torch.enable_grad():
                reached.extend(innermost(depth - 1, run))
        else:
            reached.append(grad.device.index)

    run(depth, node)
    return reached


def test_nested_backwards_alternate_between_devices_to_a_great_depth():
    def run(depth, node):
        x = torch.ones(2, device=f"mybackend:{depth % 2}", requires_grad=True)
        Call.apply(x, node).sum().backward()

    assert innermost(70, run) == [0]


@pytest.mark.parametrize("place", ["mybackend:0", "mybackend:1", "cpu"])
def test_an_error_on_any_device_reaches_the_caller_and_the_engine_works_on(place):
    def fail(grad):
        raise KeyError(place)

    x = value("mybackend:0")
    y = Call.apply((x * 2.0).to(place), fail).to("mybackend:1")
    assert message(y.sum().backward) == f"KeyError: '{place}'"
    z = value(place)
    (z * 2.0).sum().backward()
    assert unique(z.grad) == [2]


def test_threads_run_backwards_on_both_devices_at_once():
    failures = []

    def work(number):
        for _ in range(20):
            x = value(f"mybackend:{number % 2}", float(number + 1))
            (x * x.to(f"mybackend:{(number + 1) % 2}").to(x.device)).sum().backward()
            if unique(x.grad) != [2 * (number + 1)]:
                failures.append((number, unique(x.grad)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_with_multithreading_off_every_node_runs_on_the_callers_thread():
    log = []
    x, y = value("mybackend:0"), value("mybackend:1")
    with torch.autograd.set_multithreading_enabled(False):
        (Note.apply(x, log).cpu() + Note.apply(y, log).cpu()).sum().backward()
    assert {thread for thread, _, _ in log} == {threading.get_native_id()}
    assert unique(x.grad) == unique(y.grad) == [1]


def meeting(first: str, second: str):
    """A scalar on the CPU over a node on each of two devices, which wait in their backwards for each other."""
    barrier, threads = threading.Barrier(2, timeout=20), {}

    def meet(grad):
        barrier.wait()
        threads[str(grad.device)] = threading.get_native_id()

    x, y = value(first), value(second)
    return (Call.apply(x * 2.0, meet).cpu() + Call.apply(y * 3.0, meet).cpu()).sum(), (x, y), threads


def test_nodes_of_two_devices_run_at_once():
    for turn in range(10):
        loss, (x, y), threads = meeting("mybackend:0", "mybackend:1")
        loss.backward()
        assert len(set(threads.values())) == 2, f"turn {turn}"
        assert unique(x.grad) == [2] and unique(y.grad) == [3]


@pytest.mark.parametrize("place", ["cpu", "mybackend:0"])
def test_nodes_of_two_devices_run_at_once_in_a_nested_backward(place):
    """A device's node that calls it makes that device's worker its owner, who also runs nodes of the CPU."""
    seen = []

    def node(grad):
        with torch.enable_grad():
            loss, leaves, threads = meeting("mybackend:0", "mybackend:1")
            loss.backward()
        seen.append((len(set(threads.values())), [unique(leaf.grad) for leaf in leaves]))

    for _ in range(5):
        x, y = value("mybackend:0"), value("mybackend:1")
        outer = Call.apply((x * 1.0).to(place), node)
        (outer.cpu() + y.cpu()).sum().backward()
    assert seen == [(2, [[2], [3]])] * 5


def test_backwards_over_both_devices_nest_to_a_great_depth():
    """Every 61 levels they go on in another thread, while a device's worker waits for them inside of a node."""

    def run(depth, node):
        x, y = (torch.ones(2, device=f"mybackend:{index}", requires_grad=True) for index in range(2))
        inner = Call.apply((x, y)[depth % 2] * 1.0, node)
        (inner.cpu() + (y, x)[depth % 2].cpu()).sum().backward()

    assert innermost(130, run) == [0]


def test_workers_are_started_when_needed_and_are_named():
    code = """
def both():
    barrier, names = threading.Barrier(2, timeout=20), {}
    def meet(grad):
        barrier.wait()
        with open(f"/proc/self/task/{threading.get_native_id()}/comm") as file:
            names[grad.device.index] = file.read().strip()
    x, y = (torch.ones(4, device=f"mybackend:{index}", requires_grad=True) for index in range(2))
    return Call.apply(x * 2, meet).cpu() * Call.apply(y * 2, meet).cpu(), names
def workers():
    return sorted(name for name in native_threads() if "autograd" in name)

x = torch.ones(4, device="mybackend:1", requires_grad=True)
(x * 2).cpu().sum().backward()
print(workers())
for _ in range(3):
    product, names = both()
    product.sum().backward()
    print(sorted(names.items()), workers())
"""
    alone, *with_both = output(code, "mybackend")
    assert alone == "[]"
    assert with_both == ["[(0, 'mb_autograd_0'), (1, 'mb_autograd_1')] ['mb_autograd_0', 'mb_autograd_1']"] * 3


def test_a_child_forked_after_device_backwards_has_workers_of_its_own():
    code = """
if torch.mybackend.driver() != "host":
    print("[2.0, 2.0]")
    sys.exit()
def gradient():
    x, y = (torch.ones(2, device=f"mybackend:{index}", requires_grad=True) for index in range(2))
    ((x * 2).cpu() * y.cpu()).sum().backward()
    return x.grad.tolist()
gradient()
pid = os.fork()
if pid == 0:
    print(gradient(), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
gradient()
"""
    assert output(code, "mybackend") == ["[2.0, 2.0]"]


def test_the_profiler_sees_nodes_of_device_threads():
    from torch.profiler import ProfilerActivity, profile

    x = value("mybackend:0")
    with profile(activities=[ProfilerActivity.CPU]) as record:
        (x * 2).cpu().sum().backward()
    names = {event.name for event in record.events()}
    assert {"MulBackward0", "autograd::engine::evaluate_function: MulBackward0"} <= names


def test_device_threads_have_the_callers_modes():
    seen = []

    def look(grad):
        seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("mybackend")))

    x = value("mybackend:1")
    loss = Call.apply(x * 1.0, look).cpu().sum()
    with torch.autocast("cpu", torch.bfloat16):
        loss.backward()
    assert seen == [(False, True, False)]


def test_warnings_of_device_threads_are_given_by_the_caller():
    import warnings

    x = value("mybackend:0")
    loss = torch.ops.aten._test_warn_in_autograd(x).cpu().sum()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        loss.backward()
    assert [str(warning.message).split(" (")[0] for warning in given] == ["Warn from backward"]


def test_callbacks_queued_on_a_device_thread_run_after_all_nodes():
    log = []
    x = leaf(2)
    x.register_post_accumulate_grad_hook(lambda leaf: log.append("accumulated"))
    queue = torch.autograd.Variable._execution_engine.queue_callback
    y = Call.apply(x.to("mybackend:0"), lambda grad: queue(lambda: log.append("callback")))
    y.sum().cpu().backward()
    assert log == ["accumulated", "callback"]


def test_all_of_this_holds_with_asynchronous_streams():
    if os.environ.get("MYBACKEND_HOST_STREAMS") == "async" or torch.mybackend.driver() != "host":
        pytest.skip("this is the run with asynchronous streams")
    for seed in ("1", "2"):
        options = ["-q", "-W", "ignore", "-p", "no:cacheprovider", "-k", IN_PROCESS]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", __file__, *options],
            env=os.environ | {"MYBACKEND_HOST_STREAMS": "async", "MYBACKEND_HOST_SEED": seed},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:]
