"""Every way into the engine, and switching between ours and upstream's."""

import subprocess
import sys

import pytest
import torch
from autograd_engine.vocabulary import leaf, output
from torch.utils.checkpoint import checkpoint

import mybackend.autograd

SCRIPT = """
def run(x: Tensor):
    y = (x * 2).sum()
    y.backward()
    return 1
"""


def ways_in() -> dict:
    run_backward = torch.autograd.Variable._execution_engine.run_backward
    scripted = torch.jit.CompilationUnit(SCRIPT)
    return {
        "Tensor.backward": lambda x: (x * 2).sum().backward(),
        "autograd.backward": lambda x: torch.autograd.backward((x * 2).sum()),
        "reentrant checkpoint": lambda x: checkpoint(lambda v: v * 2, x, use_reentrant=True).sum().backward(),
        "run_backward": lambda x: run_backward(
            ((x * 2).sum(),), (torch.ones(()),), False, False, (), allow_unreachable=True, accumulate_grad=True
        ),
        "aten._backward": lambda x: torch.ops.aten._backward((x * 2).sum(), [x]),
        "TorchScript": lambda x: scripted.run(x),
    }


@pytest.mark.parametrize("way", ways_in())
def test_backward_works_through_every_entry(engine, way):
    x = leaf(2)
    ways_in()[way](x)
    assert x.grad.tolist() == [2, 2]


def test_grad_returns_and_does_not_accumulate(engine):
    x = leaf(2)
    assert torch.autograd.grad((x * 2).sum(), x)[0].tolist() == [2, 2]
    assert torch.func.grad(lambda v: (v * 2).sum())(torch.ones(2)).tolist() == [2, 2]
    assert x.grad is None


@pytest.mark.parametrize("way", ways_in())
def test_every_entry_leads_to_the_engine_that_is_enabled(way):
    """Upstream has no contextvars on pool threads, we have: how a node tells the engines apart is `current_engine`."""
    seen = []
    for name in ("stock", "mybackend", "stock"):
        with mybackend.autograd.use_engine(name):
            x = leaf(2)
            x.register_hook(lambda grad: seen.append(mybackend.autograd.is_enabled()))
            ways_in()[way](x)
    assert seen == [False, True, False]


def test_an_engine_is_chosen_for_a_block_and_the_one_before_comes_back():
    before = mybackend.autograd.is_enabled()
    with mybackend.autograd.use_engine("mybackend"):
        assert mybackend.autograd.is_enabled()
        with pytest.raises(ZeroDivisionError), mybackend.autograd.use_engine("stock"):
            assert not mybackend.autograd.is_enabled()
            raise ZeroDivisionError
        assert mybackend.autograd.is_enabled()
    assert mybackend.autograd.is_enabled() == before


def test_an_engine_of_another_name_is_refused():
    with (
        pytest.raises(ValueError, match="'stock', 'mybackend', but got 'upstream'"),
        mybackend.autograd.use_engine("upstream"),
    ):
        pass


def test_disabling_gives_upstream_back_what_was_replaced():
    with mybackend.autograd.use_engine("stock"):
        assert torch.autograd._engine_run_backward.__module__ == "torch.autograd.graph"
        assert torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward
        assert type(torch.autograd.Variable._execution_engine).__name__ == "_EngineBase"


def enabled_in_a_new_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code + "\nimport mybackend.autograd; print(mybackend.autograd.is_enabled())"],
        env=dict(__import__("os").environ) | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.strip() or done.stderr


def test_the_engine_is_enabled_by_the_first_use_of_the_device_and_not_before():
    assert enabled_in_a_new_process("import torch, mybackend; torch.ones(2)") == "False"
    assert enabled_in_a_new_process("import torch, mybackend; torch.ones(2, device='mybackend')") == "True"


@pytest.mark.parametrize(("value", "enabled"), [("stock", "False"), ("mybackend", "True")])
def test_the_environment_chooses_the_engine(value, enabled):
    code = "import torch, mybackend; torch.ones(2, device='mybackend')"
    assert enabled_in_a_new_process(code, MYBACKEND_ENGINE=value) == enabled


def test_a_wrong_name_in_the_environment_is_an_error_that_names_the_variable():
    assert "MYBACKEND_ENGINE" in enabled_in_a_new_process("import torch, mybackend", MYBACKEND_ENGINE="fast")


def test_the_engine_serves_a_process_that_never_uses_the_device():
    code = "x = leaf(2); (x * 2).sum().backward(); print(x.grad.tolist(), mybackend.autograd.is_enabled())"
    assert output(code, "mybackend") == ["[2.0, 2.0] True"]
