"""Every operator of upstream's OpInfo database behaves on the device as on the CPU, and runs there.

A slice of the samples by default; all dtypes and more samples with MYBACKEND_CONFORMANCE=full (`make conformance`).
What is known to differ is listed in opinfo_gaps.py.
"""

import contextlib
import os

import pytest
import torch
from opinfo_gaps import GAPS

from mybackend.testing import opinfo

FULL = os.environ.get("MYBACKEND_CONFORMANCE") == "full"
SAMPLES = 8 if FULL else 2
FORWARD = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
OTHERS = (torch.float64, torch.float16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.complex128)


def listed(check, cases):
    """Cases as pytest's parameters; those in GAPS have to fail. Another slice of samples may miss what is wrong."""

    def parameter(case):
        reason = GAPS.get((case.name, check or str(case.dtype).removeprefix("torch.")))
        marks = [pytest.mark.xfail(reason=reason, strict=not FULL)] if reason else []
        return pytest.param(case, id=str(case), marks=marks)

    return [parameter(case) for case in cases]


def one_dtype(*order):
    """Every OpInfo once, with the first of `order` that the CPU supports."""
    for op in opinfo.op_db:
        supported = [dtype for dtype in order if dtype in op.supported_dtypes("cpu")]
        if supported:
            yield opinfo.Case(op, supported[0])


def differentiable():
    for case in one_dtype(torch.float32, torch.float64):
        if case.op.supports_autograd:
            yield case


ANY = (torch.float32, torch.complex64, torch.int64, torch.bool)


@contextlib.contextmanager
def on_the_device():
    """No operator runs on the CPU."""
    torch.mybackend.reset_fallbacks()
    yield
    assert torch.mybackend.fallbacks() == {}


@pytest.mark.parametrize("case", listed("", opinfo.cases(FORWARD + OTHERS if FULL else FORWARD)))
def test_results_are_the_cpus(case, device):
    with on_the_device():
        opinfo.check_forward(case, device, SAMPLES)


@pytest.mark.parametrize("case", listed("gradient", differentiable()))
def test_gradients_are_the_cpus(case, device):
    with on_the_device():
        opinfo.check_backward(case, device, SAMPLES)


@pytest.mark.parametrize("case", listed("out", (c for c in one_dtype(*ANY) if c.op.supports_out)))
def test_out_variants_fill_what_they_are_given(case, device):
    with on_the_device():
        opinfo.check_out(case, device, SAMPLES // 2)


@pytest.mark.parametrize("case", listed("in_place", (c for c in one_dtype(*ANY) if c.op.get_inplace() is not None)))
def test_in_place_variants_change_their_input(case, device):
    with on_the_device():
        opinfo.check_in_place(case, device, SAMPLES // 2)


@pytest.mark.parametrize("case", listed("errors", (c for c in one_dtype(*ANY) if c.op.error_inputs_func is not None)))
def test_misuse_raises_upstreams_errors(case, device):
    with on_the_device():
        opinfo.check_errors(case, device)
