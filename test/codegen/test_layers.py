"""The dependency rule: tools/check_layers.py finds what it should, and this repository has none of it."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("csrc/device/x.h", '#include "csrc/runtime/stream.h"'),
        ("csrc/kernels/x.cu", "#include <ATen/Tensor.h>"),
        ("csrc/runtime/x.cpp", '#include "csrc/aten/iterator.h"'),
        ("csrc/engine/core/x.h", "#include <c10/util/Half.h>"),
        ("csrc/aten/x.cpp", "#include <pybind11/pybind11.h>"),
        ("csrc/kernels/x.cu", "#ifdef __CUDACC__"),
    ],
)
def test_a_forbidden_include_is_reported_with_its_line(path, line):
    (problem,) = check_layers.problems_of_source(path, line)
    assert problem.startswith(f"{path}:1: ")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("csrc/kernels/x.cu", "#include <c10/util/Half.h>"),
        ("csrc/aten/x.cpp", '#include "csrc/kernels/copy.h"'),
        ("csrc/bindings/x.cpp", "#include <pybind11/pybind11.h>"),
        ("csrc/device/x.h", "#if defined(__CUDACC__)"),
    ],
)
def test_what_the_rule_allows_is_not_reported(path, line):
    assert list(check_layers.problems_of_source(path, line)) == []


def test_this_repository_keeps_the_rule():
    assert check_layers.main() == 0
