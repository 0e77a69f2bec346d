"""Compiled code on the device against eager code on the CPU."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

Agree = Callable[..., None]
TABLE = Path(__file__).parents[2] / "benchmarks" / "results" / "compile_conformance.json"
_outcomes: dict[str, dict[str, Any]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes what became of each case of test_opinfo.py, in the process that pytest-xdist's workers report to."""
    told = dict(report.user_properties)
    if report.when != "call" or "compiled case" not in told:
        return
    row: dict[str, Any] = {"passed": report.passed and not hasattr(report, "wasxfail")}
    if not row["passed"]:
        row["passes with Inductor on the CPU"] = told.get("passes with Inductor on the CPU")
        crash = getattr(report.longrepr, "reprcrash", None)
        row["error"] = (str(report.longrepr) if crash is None else crash.message).splitlines()[0][:200]
    _outcomes[told["compiled case"]] = row


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A whole run of test_opinfo.py writes its table."""
    whole = os.environ.get("MYBACKEND_CONFORMANCE") == "full" and not session.config.option.keyword
    if not _outcomes or not whole or hasattr(session.config, "workerinput"):
        return
    failed = {name: row for name, row in sorted(_outcomes.items()) if not row["passed"]}
    # A case that Inductor's own CPU backend fails as well says nothing of this device.
    counted = [row for row in _outcomes.values() if row["passed"] or row["passes with Inductor on the CPU"]]
    share = sum(row["passed"] for row in counted) / max(1, len(counted))
    table = {"torch": torch.__version__, "cases": len(_outcomes), "share passed of Inductor's": share, "failed": failed}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


@pytest.fixture(autouse=True)
def fresh_compiler(tmp_path_factory, monkeypatch) -> Iterator[None]:
    """Every test traces anew; results of the C++ compiler are kept for the session."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def own_lowerings(monkeypatch) -> Iterator[None]:
    """What a test registers is gone after it, here and in Inductor."""
    from torch._inductor import lowering

    from mybackend.compile import lowering_registry, registration

    registration.register_backend()  # or its lowerings, made once in a process, would be gone with the test's
    monkeypatch.setattr(lowering_registry, "_lowerings", dict(lowering_registry._lowerings))
    before = dict(lowering.lowerings)
    yield
    lowering.lowerings.clear()
    lowering.lowerings.update(before)


@pytest.fixture
def agree(device: str) -> Agree:
    """agree(function, *arguments): the compiled function on the device returns what the eager one does on the CPU.

    `grad` compares the gradients of all floating-point arguments too. `dynamic`, `fullgraph` and `options` go to
    torch.compile; `atol` and `rtol` to assert_close.
    """

    def moved(value: Any, requires_grad: bool, to: str) -> Any:
        if not isinstance(value, Tensor):
            return value
        copy = value.detach().clone().to(to)
        return copy.requires_grad_(requires_grad and value.is_floating_point())

    def check(
        function: Callable[..., Any], *arguments: Any, grad: bool = False, dynamic: bool | None = None,
        options: dict[str, Any] | None = None, **tolerance: Any,
    ) -> None:  # fmt: skip
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, options=options)
        theirs = tree_map(lambda value: moved(value, grad, "cpu"), arguments)
        ours = tree_map(lambda value: moved(value, grad, device), arguments)
        expected, actual = function(*theirs), compiled(*ours)
        assert all(leaf.device == torch.device(device) for leaf in tree_leaves(actual) if isinstance(leaf, Tensor))
        torch.testing.assert_close(tree_map(host, actual), expected, **tolerance)
        if grad:
            for results in (expected, actual):
                sum(leaf.sum() for leaf in tree_leaves(results) if leaf.requires_grad).backward()
            for mine, reference in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
                if isinstance(reference, Tensor) and reference.requires_grad:
                    torch.testing.assert_close(mine.grad.cpu(), reference.grad, **tolerance)

    return check


def host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, Tensor) else value
