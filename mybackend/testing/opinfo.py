"""OpInfo samples on a device, compared with torch's CPU.

`op_db` is upstream's own database: for each operator, sample inputs of every shape and kind upstream thinks worth
testing. A check runs the operator on the CPU and on the device with the same inputs and compares values, dtypes, shapes
and, for the backward, gradients, within torch.testing.assert_close's default tolerances unless the OpInfo names its
own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

__all__ = ["Case", "cases", "check_backward", "check_forward"]

# Values of these are random or uninitialised; only shape, dtype and strides can be compared.
VALUES_UNDEFINED = frozenset(
    [
        "bernoulli",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "multinomial",
        "normal",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "uniform",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
        "nn.functional.dropout",
        "nn.functional.alpha_dropout",
        "nn.functional.feature_alpha_dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.rrelu",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "resize_",
        "resize_as_",
        "svd_lowrank",
        "pca_lowrank",
    ]
)

# Half and bfloat16 results are rounded once by us and once or more by the CPU: a few units in the last place apart.
LOW_PRECISION = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1.6e-2)}


@dataclass(frozen=True)
class Case:
    """One operator (with its variant) and one dtype; `name` is OpInfo's formatted name."""

    op: OpInfo
    dtype: torch.dtype

    @property
    def name(self) -> str:
        return self.op.name + (f".{self.op.variant_test_name}" if self.op.variant_test_name else "")

    def __str__(self) -> str:
        return f"{self.name}-{str(self.dtype).removeprefix('torch.')}"


def cases(dtypes: tuple[torch.dtype, ...], names: frozenset[str] | None = None) -> Iterator[Case]:
    """Every OpInfo (or those called `names`) with each of `dtypes` that the CPU supports."""
    for op in op_db:
        for dtype in dtypes:
            case = Case(op, dtype)
            if (names is None or case.name in names) and dtype in op.supported_dtypes("cpu"):
                yield case


def _samples(case: Case, limit: int, requires_grad: bool) -> list[SampleInput]:
    """At most `limit` samples, spread evenly over what upstream offers."""
    torch.manual_seed(0)
    offered = list(case.op.sample_inputs("cpu", case.dtype, requires_grad=requires_grad))
    step = max(1, len(offered) // limit)
    return list(itertools.islice(offered[::step], limit))


def _on(device: str, value: Any) -> Any:
    """A copy of `value` with its tensors on the device: same strides, same requires_grad, detached."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device(device)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        copy = leaf.detach().to(device)
        return copy.requires_grad_(leaf.requires_grad) if leaf.is_floating_point() or leaf.is_complex() else copy

    return tree_map(move, value)


def _call(case: Case, sample: SampleInput, device: str) -> tuple[Any, list[torch.Tensor]]:
    input_, args, kwargs = _on(device, (sample.input, tuple(sample.args), dict(sample.kwargs)))
    if kwargs.get("device") is not None:
        kwargs["device"] = device
    leaves = [leaf for leaf in tree_flatten((input_, args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
    torch.manual_seed(0)
    result = case.op(input_, *args, **kwargs)
    if sample.output_process_fn_grad is not None:
        result = sample.output_process_fn_grad(result)
    return result, [leaf for leaf in leaves if leaf.requires_grad]


def _compare(case: Case, device: str, ours: Any, theirs: Any, what: str) -> None:
    ours_leaves, theirs_leaves = tree_flatten(ours)[0], tree_flatten(theirs)[0]
    assert len(ours_leaves) == len(theirs_leaves), (
        f"{case} {what}: {len(ours_leaves)} results, {len(theirs_leaves)} on CPU"
    )
    rtol, atol = LOW_PRECISION.get(case.dtype, (None, None))
    for mine, other in zip(ours_leaves, theirs_leaves, strict=True):
        if not isinstance(other, torch.Tensor):
            assert type(mine) is type(other), f"{case} {what}: {mine!r} against {other!r}"
            if case.op.name not in VALUES_UNDEFINED and isinstance(other, bool | int | float | complex):
                torch.testing.assert_close(mine, other, rtol=rtol, atol=atol, equal_nan=True)
            continue
        assert isinstance(mine, torch.Tensor) and mine.device.type == torch.device(device).type, (
            f"{case} {what}: result is on {getattr(mine, 'device', type(mine))}, expected {device}"
        )
        assert mine.dtype == other.dtype and mine.shape == other.shape, (
            f"{case} {what}: {mine.dtype} {tuple(mine.shape)} against {other.dtype} {tuple(other.shape)}"
        )
        if case.op.name in VALUES_UNDEFINED:
            continue
        torch.testing.assert_close(
            mine.detach().cpu(),
            other.detach(),
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            msg=lambda m: f"{case} {what}: {m}",
        )


def check_forward(case: Case, device: str, limit: int = 8) -> int:
    """Runs up to `limit` samples on both; returns how many were compared. Raises AssertionError where they differ."""
    samples = _samples(case, limit, requires_grad=False)
    for sample in samples:
        theirs, _ = _call(case, sample, "cpu")
        ours, _ = _call(case, sample, device)
        _compare(case, device, ours, theirs, f"forward of {sample.summary()}")
    return len(samples)


def check_backward(case: Case, device: str, limit: int = 4) -> int:
    """The same for gradients of a weighted sum of all differentiable outputs."""
    if not case.op.supports_autograd or case.op.name in VALUES_UNDEFINED:
        return 0
    samples = _samples(case, limit, requires_grad=True)
    compared = 0
    for sample in samples:
        theirs, their_leaves = _call(case, sample, "cpu")
        ours, our_leaves = _call(case, sample, device)
        their_outputs = [t for t in tree_flatten(theirs)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        our_outputs = [t for t in tree_flatten(ours)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        assert len(our_outputs) == len(their_outputs), f"{case}: {len(our_outputs)} differentiable outputs on {device}"
        if not their_outputs or not their_leaves:
            continue
        torch.manual_seed(1)
        weights = [torch.randn_like(t) for t in their_outputs]
        their_grads = torch.autograd.grad(their_outputs, their_leaves, weights, allow_unused=True)
        our_grads = torch.autograd.grad(our_outputs, our_leaves, [w.to(device) for w in weights], allow_unused=True)
        for mine, other in zip(our_grads, their_grads, strict=True):
            assert (mine is None) == (other is None), f"{case}: a gradient is missing on one side"
            if other is not None:
                _compare(case, device, mine, other, f"backward of {sample.summary()}")
        compared += 1
    return compared
