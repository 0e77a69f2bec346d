"""The words the engine's tests are written in: leaves, nodes that log or call, native threads, processes."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.autograd import Function

HERE = Path(__file__).resolve().parent
BACKWARD_TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


def leaf(*shape: int, **options) -> torch.Tensor:
    """A leaf of ones that requires grad."""
    return torch.ones(shape, requires_grad=True, **options)


class Log(Function):
    """Identity whose backward appends `name` to `log`."""

    @staticmethod
    def forward(ctx, x, name, log):
        ctx.label, ctx.log = name, log
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        ctx.log.append(ctx.label)
        return grad, None, None


class Call(Function):
    """Identity whose backward calls `act(grad)`; what it returns, unless None, is the gradient."""

    @staticmethod
    def forward(ctx, x, act):
        ctx.act = act
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        result = ctx.act(grad)
        return (grad if result is None else result), None


def calling(act: Callable[[], object]) -> torch.Tensor:
    """A scalar whose backward calls `act()`."""
    return Call.apply(leaf(1), lambda grad: act() and None).sum()


def nest(levels: int, innermost: Callable[[], object], each: Callable[[], object] = lambda: None) -> None:
    """Calls `innermost` inside `levels` backwards, each run by a node of the one before; `each` is called in all."""

    def node() -> None:
        each()
        nest(levels - 1, innermost, each)

    if levels == 0:
        innermost()
        return
    with torch.enable_grad():
        calling(node).backward()


def nodes_of(root) -> list:
    """All nodes reached from `root`, which comes first."""
    found = {root: None}
    waiting = [root]
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in found:
                found[node] = None
                waiting.append(node)
    return list(found)


def message(act: Callable[[], object]) -> str:
    """The type and text of what `act` raises."""
    try:
        result = act()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"nothing was raised; returned {result!r}")


def native_threads() -> list[str]:
    """Names of this process's threads as the kernel has them."""
    names = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):
            names.append(Path(f"/proc/self/task/{task}/comm").read_text().strip())
    return names


def run_process(code: str, engine: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess:
    """Runs `code`, with torch and this vocabulary imported and `engine` in force, in a process of its own."""
    prelude = (
        f"import os, sys, threading, time\nsys.path[:0] = {[str(HERE), str(HERE.parent)]!r}\n"
        f"import torch, mybackend.autograd\nfrom vocabulary import *\n"
        f"mybackend.autograd.{'enable' if engine == 'mybackend' else 'disable'}()\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", prelude + code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def output(code: str, engine: str, **environment: str) -> list[str]:
    """What `code` prints, line by line; the process has to end well."""
    done = run_process(code, engine, **environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()
