"""Gradients of all of upstream's sample inputs: operators, modules, custom functions. Both engines run the same graph,
so that the results have to be equal to the last bit. CI takes the first sample of each,
MYBACKEND_ENGINE_TESTS=long all."""

import os
import warnings

import pytest
import torch
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_leaves

from mybackend.autograd import use_engine

LONG = os.environ.get("MYBACKEND_ENGINE_TESTS") == "long"
OPERATORS = [
    op
    for op in op_db
    if op.supports_autograd and torch.float64 in op.supported_backward_dtypes("cpu") & op.supported_dtypes("cpu")
]
MODULES = [info for info in module_db if torch.float64 in info.supported_dtypes("cpu")]


def differentiable(tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def same(one, other) -> bool:
    if one is None or other is None:
        return one is other
    if (one.layout, one.dtype, one.shape) != (other.layout, other.dtype, other.shape):
        return False
    if one.layout != torch.strided:
        one, other = one.to_dense(), other.to_dense()
    return one.stride() == other.stride() and torch.equal(one.nan_to_num(), other.nan_to_num())


def compare(outputs, inputs: list[torch.Tensor], second_order: bool) -> int:
    """Compares the gradients of one graph by the two engines; returns how many were compared."""
    outputs = [value for value in differentiable(outputs) if value.grad_fn is not None]
    if not outputs or not inputs:
        return 0
    seeds = [torch.ones_like(value) for value in outputs]

    def gradients(engine: str, create_graph: bool):
        with use_engine(engine):
            try:
                return torch.autograd.grad(
                    outputs, inputs, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True
                )
            except RuntimeError as error:
                return f"{type(error).__name__}: {error}"

    expected, ours = gradients("stock", False), gradients("mybackend", False)
    if isinstance(expected, str):
        assert ours == expected
        return 1
    for number, (one, other) in enumerate(zip(expected, ours, strict=True)):
        assert same(one, other), f"gradient of input {number}"
    if second_order:
        stock, ours = gradients("stock", True), gradients("mybackend", True)
        if isinstance(stock, str):
            assert ours == stock
            return len(expected)
        below = [(one, other) for one, other in zip(stock, ours, strict=True) if one is not None]
        assert [one.requires_grad for one, _ in below] == [other.requires_grad for _, other in below]
        return len(below) + compare([other for _, other in below], inputs, False)
    return len(expected)


def compare_samples(samples, compare_one) -> None:
    """Compares over the samples: in the long form all of them, else up to the first that has gradients."""
    torch.manual_seed(0)
    compared = 0
    with warnings.catch_warnings(action="ignore"):
        for sample in samples:
            compared += compare_one(sample)
            if compared and not LONG:
                return
    if compared == 0:
        pytest.skip("no sample has a differentiable result")


def compare_call(op, sample) -> int:
    outputs = sample.output_process_fn_grad(op(sample.input, *sample.args, **sample.kwargs))
    inputs = differentiable((sample.input, sample.args, sample.kwargs))
    return compare(outputs, inputs, op.supports_gradgrad)


@pytest.mark.parametrize("op", OPERATORS, ids=[op.formatted_name for op in OPERATORS])
def test_operators(op):
    compare_samples(op.sample_inputs("cpu", torch.float64, requires_grad=True), lambda sample: compare_call(op, sample))


@pytest.mark.parametrize("info", MODULES, ids=[info.formatted_name for info in MODULES])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_modules(info, training):
    def compare_one(sample) -> int:
        if sample.forward_input is None:
            return 0
        made = sample.constructor_input
        module = info.module_cls(*made.args, **made.kwargs).to(torch.float64).train(training)
        given = sample.forward_input
        inputs = [*module.parameters(), *differentiable((given.args, given.kwargs))]
        return compare(module(*given.args, **given.kwargs), inputs, False)

    options = {"device": "cpu", "dtype": torch.float64, "requires_grad": True, "training": training}
    compare_samples(info.module_inputs_func(info, **options), compare_one)


@pytest.mark.parametrize("op", autograd_function_db, ids=[op.name for op in autograd_function_db])
def test_custom_functions(op):
    compare_samples(op.sample_inputs("cpu", torch.float64, requires_grad=True), lambda sample: compare_call(op, sample))
