"""Every operator of upstream's OpInfo database, compiled for the device, against eager code on the CPU.

As one graph, unless the CPU's cannot be one either: a break would hand the operator to eager code.

A fixed slice by default; all operators, more dtypes, and static and dynamic shapes of each with
MYBACKEND_CONFORMANCE=full (`make conformance-compile`, which also writes benchmarks/results/compile_conformance.json).
What is known to differ is listed in opinfo_compiled_gaps.py.
"""

from __future__ import annotations

import os

import pytest
import torch
from opinfo_compiled_gaps import GAPS

from mybackend.testing import opinfo

FULL = os.environ.get("MYBACKEND_CONFORMANCE") == "full"
SAMPLES = 2
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
# Every so many of the operators in float32 with static and with dynamic shapes; odd, so that both occur.
SLICE = 13


def listed():
    def parameter(case, shapes):
        gaps, dtype = GAPS.get(case.name, {}), str(case.dtype).removeprefix("torch.")
        reason = gaps.get(dtype) or gaps.get(f"{dtype}-{shapes}")
        marks = [pytest.mark.xfail(reason=reason, strict=not FULL)] if reason else []
        return pytest.param(case, shapes, id=f"{case}-{shapes}", marks=marks)

    cases = opinfo.cases(DTYPES if FULL else DTYPES[:1])
    pairs = [(case, shapes) for case in cases for shapes in ("static", "dynamic")]
    return [parameter(*pair) for pair in (pairs if FULL else pairs[::SLICE])]


@pytest.mark.parametrize(("case", "shapes"), listed())
def test_compiled_results_are_the_cpus(case, shapes, device, record_property):
    record_property("compiled case", f"{case}-{shapes}")
    dynamic = shapes == "dynamic"
    try:
        opinfo.check_compiled(case, device, SAMPLES, dynamic, fullgraph=True)
        return
    except Exception:
        if passes_on_the_cpu(case, dynamic, fullgraph=True):
            record_property("passes with Inductor on the CPU", True)
            raise
    try:
        opinfo.check_compiled(case, device, SAMPLES, dynamic)
    except Exception:
        if FULL:
            record_property("passes with Inductor on the CPU", passes_on_the_cpu(case, dynamic))
        raise


def passes_on_the_cpu(case: opinfo.Case, dynamic: bool, fullgraph: bool = False) -> bool:
    """Whether Inductor's own CPU backend computes it: what fails there too is no gap of this device."""
    try:
        opinfo.check_compiled(case, "cpu", SAMPLES, dynamic, fullgraph)
    except Exception:
        return False
    return True
