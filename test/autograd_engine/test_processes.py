"""Forks and the end of the process: quick and clean in every state of the engine.

Upstream's engine starts its device threads with the first backward of any sort where a device exists, and a fork is an
error from then on; so what is said of forks here is said of ours."""

import time

from autograd_engine.vocabulary import output, run_process

FORK = """
def child(act):
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
    assert os.waitpid(pid, 0)[0] == pid
def backward():
    x = leaf(2)
    (x * 3).sum().backward()
    print(x.grad.tolist(), flush=True)
"""


def test_a_child_forked_after_a_backward_works():
    assert output(FORK + "backward(); child(backward); backward()", "mybackend") == ["[3.0, 3.0]"] * 3


def test_a_pool_of_processes_forked_after_a_backward_works():
    code = """
import multiprocessing
def square(number):
    x = torch.tensor(float(number), requires_grad=True)
    (x ** 3 / 3).backward()
    return x.grad.item()
leaf(2).sum().backward()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(square, [1, 2, 3]))
"""
    assert output(code, "mybackend") == ["[1.0, 4.0, 9.0]"]


def test_a_process_with_idle_threads_of_the_engine_ends_quickly():
    """Upstream's engine aborts here now and then ("terminate called without an active exception")."""
    code = "nest(130, lambda: None); print(time.time(), flush=True)"
    (printed,) = output(code, "mybackend")
    assert time.time() - float(printed) < 5


def test_a_backward_at_exit_works(engine):
    code = """
import atexit
x = leaf(2)
atexit.register(lambda: ((x * 2).sum().backward(), print(x.grad.tolist())))
"""
    assert output(code, engine) == ["[2.0, 2.0]"]


def test_a_process_ends_while_a_daemon_thread_waits_inside_a_node(engine):
    code = """
started = threading.Event()
def act(grad):
    started.set()
    time.sleep(600)
threading.Thread(target=lambda: Call.apply(leaf(1), act).sum().backward(), daemon=True).start()
started.wait()
print(time.time(), flush=True)
"""
    done = run_process(code, engine, timeout=60)
    assert time.time() - float(done.stdout) < 15
    assert done.returncode == 0, done.stderr
