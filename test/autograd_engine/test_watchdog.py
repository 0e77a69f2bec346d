"""The watchdog: names the nodes of a backward that makes no progress, once, and nothing of one that does."""

import re
import threading
import time

import pytest
import torch
from autograd_engine.vocabulary import Call, calling, leaf, run_process

from mybackend.autograd import set_watchdog, watchdog

pytestmark = pytest.mark.usefixtures("our_engine")


def test_a_stalled_backward_is_reported_once_with_its_nodes():
    reports, a, b = [], leaf(2), leaf(2)
    waiting = Call.apply(a, lambda grad: None)
    blocked = Call.apply(b, lambda grad: time.sleep(1.2))
    with watchdog(0.3, reports.append):
        (waiting.sin() + blocked).sum().backward()
    (report,) = reports
    first, *lines = report.splitlines()
    assert first.startswith(
        f"Backward {first.split()[1].rstrip(',')}, called by thread {threading.get_native_id()}: no "
    )
    assert any(line.startswith("  running: CallBackward [") for line in lines)
    assert any(line.startswith("  waiting: torch::autograd::AccumulateGrad [") for line in lines)
    assert any("(running)" in line for line in lines)


def test_a_backward_that_makes_progress_is_not_reported():
    reports, y = [], leaf(2)
    for _ in range(10):
        y = Call.apply(y, lambda grad: time.sleep(0.08))
    with watchdog(0.4, reports.append):
        y.sum().backward()
    assert reports == []


def test_a_backward_that_stalls_again_is_reported_again():
    reports, y = [], leaf(2)
    y = Call.apply(Call.apply(y, lambda grad: time.sleep(0.5)) * 1, lambda grad: time.sleep(0.5))
    middle = Call.apply(y, lambda grad: None)
    with watchdog(0.2, reports.append):
        middle.sum().backward()
    assert len(reports) == 2


def test_a_deadlock_between_two_backwards_names_both():
    reports = []
    first, second = threading.Event(), threading.Event()

    def wait(own, other):
        own.set()
        time.sleep(0.6)
        other.wait()

    with watchdog(0.2, reports.append):
        threads = [
            threading.Thread(target=calling(lambda pair=pair: wait(*pair)).backward)
            for pair in ((first, second), (second, first))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({report.split(",")[0] for report in reports}) == 2


def test_the_watchdog_can_be_switched_off_and_its_time_is_checked():
    with pytest.raises(ValueError, match="seconds must be positive or None, got 0"):
        set_watchdog(0)
    set_watchdog(0.1, pytest.fail)
    set_watchdog(None)
    calling(lambda: time.sleep(0.3)).backward()
    assert not [thread for thread in threading.enumerate() if thread.name == "mybackend.autograd.watchdog"]


def test_the_environment_starts_the_watchdog_and_it_writes_to_stderr():
    code = "calling(lambda: time.sleep(1)).backward()"
    done = run_process(code, "mybackend", MYBACKEND_ENGINE_WATCHDOG="0.2")
    assert done.returncode == 0
    assert re.search(r"mybackend.autograd.watchdog: Backward \d+, called by thread", done.stderr)
    done = run_process("", "mybackend", MYBACKEND_ENGINE_WATCHDOG="soon")
    assert "MYBACKEND_ENGINE_WATCHDOG='soon': expected a positive number of seconds" in done.stderr


def test_a_watched_graph_has_the_gradients_of_an_unwatched_one():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad((x.sin() * x.exp()).sum(), x)[0]
    with watchdog(10):
        assert torch.equal(torch.autograd.grad((x.sin() * x.exp()).sum(), x)[0], expected)
