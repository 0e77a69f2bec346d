"""OpInfo samples on a device, compared with torch's CPU.

`op_db` is upstream's own database: for each operator, sample inputs of every shape and kind upstream thinks
worth testing. A check runs the operator on the CPU and on the device with the same inputs (same strides,
aliasing and conjugate bits) and compares values, dtypes, shapes and, for the backward, gradients. Where the
CPU refuses a sample, the device has to refuse it as well.

Tolerances are torch.testing.assert_close's. A result outside of them is compared with the operator computed
in double precision: it passes when it is about as near to that as the CPU's own result is.
"""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

__all__ = [
    "Case", "cases", "check_backward", "check_compiled", "check_errors", "check_forward", "check_in_place", "check_out",
]  # fmt: skip

# Values of these are random or uninitialised; only shape, dtype and device can be compared.
VALUES_UNDEFINED = frozenset(
    {
        "bernoulli",
        "cauchy",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "new_empty",
        "new_empty_strided",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "nn.functional.rrelu",
        "normal",
        "pca_lowrank",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "resize_",
        "resize_as_",
        "svd_lowrank",
        "uniform",
    }
)

# Tensors among the arguments have to be on the CPU, whatever the device of the input.
ARGUMENTS_ON_THE_CPU = frozenset({"tensor_split"})

# Which of several equal elements these name is left open by upstream.
INDEX_OF_EQUALS_UNDEFINED = frozenset({"kthvalue", "median", "mode", "nanmedian", "topk"})

# Random where a probability among the arguments (these by name, or any float by position) is neither 0 nor 1.
DROPOUT_ARGUMENTS = ("dropout_p", "p")

# Upstream's generators may offer hundreds of samples; the first ones hold every kind.
MOST_SAMPLES_OFFERED = 64

LOW_PRECISION = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1.6e-2)}
DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


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


def cases(dtypes: tuple[torch.dtype, ...], names: frozenset[str] | None = None) -> list[Case]:
    """Every OpInfo (or those called `names`) with each of `dtypes` that the CPU supports."""
    every = [Case(op, dtype) for op in op_db for dtype in dtypes if dtype in op.supported_dtypes("cpu")]
    return [case for case in every if names is None or case.name in names]


def _samples(case: Case, limit: int, requires_grad: bool) -> list[SampleInput]:
    """At most `limit` samples, spread evenly over what upstream offers."""
    torch.manual_seed(0)
    samples = case.op.sample_inputs("cpu", case.dtype, requires_grad=requires_grad)
    offered = list(itertools.islice(samples, MOST_SAMPLES_OFFERED))
    step = max(1, len(offered) // limit)
    return list(itertools.islice(offered[::step], limit))


def _copy(tensor: torch.Tensor, device: str, dtype: torch.dtype | None) -> torch.Tensor:
    """The tensor on `device`, converted if `dtype` is given, with the same strides, even overlapping ones."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor.to(device=device, dtype=dtype or tensor.dtype, copy=True)
    conjugated, negated = tensor.is_conj(), tensor.is_neg()
    plain = torch._neg_view(tensor) if negated else tensor
    plain = plain.conj() if conjugated else plain
    extent = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True)) if plain.numel() else 0
    memory = plain.as_strided((extent,), (1,)).to(device=device, dtype=dtype or plain.dtype, copy=True)
    copied = memory.as_strided(plain.shape, plain.stride(), 0)
    copied = copied.conj() if conjugated else copied
    return torch._neg_view(copied) if negated else copied


def _on(device: str, value: Any, double: bool = False) -> Any:
    """A copy of `value` with its tensors on the device: a tensor that occurs twice is copied once."""
    copies: dict[int, torch.Tensor] = {}

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.device) or (isinstance(leaf, str) and leaf == "cpu"):
            return type(leaf)(device)
        if isinstance(leaf, torch.dtype) and double:
            return DOUBLE.get(leaf, leaf)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in copies:
            copy = _copy(leaf, device, DOUBLE.get(leaf.dtype) if double else None)
            copies[id(leaf)] = copy.requires_grad_(leaf.requires_grad)
        return copies[id(leaf)]

    return tree_map(move, value)


def _call(
    case: Case, sample: SampleInput, device: str, double: bool = False, function: Any = None, **more: Any
) -> tuple[Any, list[torch.Tensor]]:
    """The results of the operator (or of `function` in its place), and the inputs that require gradients."""
    input_, args, kwargs = _on(device, (sample.input, tuple(sample.args), dict(sample.kwargs)), double)
    if case.op.name in ARGUMENTS_ON_THE_CPU:
        args, kwargs = tuple(sample.args), dict(sample.kwargs)
    leaves = [leaf for leaf in tree_flatten((input_, args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = (function or case.op)(input_, *args, **kwargs, **more)
    if sample.output_process_fn_grad is not None:
        result = sample.output_process_fn_grad(result)
    unique = {id(leaf): leaf for leaf in leaves if leaf.requires_grad}
    return result, list(unique.values())


def _is_random(case: Case, sample: SampleInput) -> bool:
    if case.op.name in VALUES_UNDEFINED:
        return True
    if "dropout" in case.op.name or "attention" in case.op.name:
        given = [*sample.args, *(sample.kwargs.get(name) for name in DROPOUT_ARGUMENTS)]
        return any(isinstance(argument, float) and 0 < argument < 1 for argument in given)
    return False


def _near_as_the_cpu(mine: torch.Tensor, other: torch.Tensor, exact: torch.Tensor, rtol: float, atol: float) -> bool:
    """Whether `mine` is at most four times as far from `exact` as `other` is, plus the tolerance."""
    if exact.shape != mine.shape or not exact.numel():
        return False
    mine, other = mine.to(exact.dtype), other.to(exact.dtype)
    same = (mine == other) | (mine.isnan() & other.isnan())
    our_error, their_error = (mine - exact).abs(), (other - exact).abs()
    magnitude = exact.abs()[exact.isfinite()]
    slack = atol + rtol * (magnitude.max().item() if magnitude.numel() else 0.0)
    return bool((same | (our_error <= 4 * their_error[their_error.isfinite()].max() + slack)).all())


def _compare(
    case: Case, device: str, ours: Any, theirs: Any, what: str, random: bool = False, exact: Any = None
) -> None:
    """`exact` is called for the results in double precision, only when the others differ."""
    ours_leaves, theirs_leaves = tree_flatten(ours)[0], tree_flatten(theirs)[0]
    assert len(ours_leaves) == len(theirs_leaves), (
        f"{case} {what}: {len(ours_leaves)} results, {len(theirs_leaves)} on CPU"
    )
    rtol, atol = LOW_PRECISION.get(case.dtype, (None, None))
    for i, (mine, other) in enumerate(zip(ours_leaves, theirs_leaves, strict=True)):
        if not isinstance(other, torch.Tensor):
            assert type(mine) is type(other), f"{case} {what}: {mine!r} against {other!r}"
            if not random and isinstance(other, bool | int | float | complex):
                torch.testing.assert_close(mine, other, rtol=rtol, atol=atol, equal_nan=True)
            continue
        expected = other.device.type if other.device.type == "meta" else torch.device(device).type
        assert isinstance(mine, torch.Tensor) and mine.device.type == expected, (
            f"{case} {what}: result is on {getattr(mine, 'device', type(mine))}, expected {device}"
        )
        assert mine.dtype == other.dtype and mine.shape == other.shape, (
            f"{case} {what}: {mine.dtype} {tuple(mine.shape)} against {other.dtype} {tuple(other.shape)}"
        )
        if random or (i == 1 and case.op.name in INDEX_OF_EQUALS_UNDEFINED):
            continue
        mine, other = mine.detach().cpu(), other.detach()
        try:
            torch.testing.assert_close(mine, other, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            precise = tree_flatten(exact())[0][i] if exact is not None and other.dtype in DOUBLE else None
            tolerance = LOW_PRECISION.get(case.dtype, (1.3e-6, 1e-5))
            if precise is None or not _near_as_the_cpu(mine, other, precise.detach(), *tolerance):
                raise AssertionError(f"{case} {what}: {error}") from None


def _both(case: Case, sample: SampleInput, device: str, what: str, function: Any = None) -> tuple[Any, Any] | None:
    """(ours, theirs), each as _call returns them; None when both refuse the sample."""
    try:
        theirs = _call(case, sample, "cpu", function=function)
    except Exception as refusal:
        try:
            _call(case, sample, device, function=function)
        except Exception as error:
            assert isinstance(error, type(refusal)), f"{case} {what}: {error!r} against {refusal!r}"
            return None
        raise AssertionError(f"{case} {what}: served, but the CPU says {refusal!r}") from None
    return _call(case, sample, device, function=function), theirs


def check_forward(case: Case, device: str, limit: int = 8, function: Any = None) -> int:
    """Runs up to `limit` samples on both; returns how many were compared. Raises AssertionError where they differ."""
    samples = _samples(case, limit, requires_grad=False)
    for sample in samples:
        what = f"forward of {sample.summary()}"
        results = _both(case, sample, device, what, function)
        if results is not None:
            (ours, _), (theirs, _) = results

            def exact(sample: SampleInput = sample) -> Any:
                return _call(case, sample, "cpu", double=True, function=function)[0]

            _compare(case, device, ours, theirs, what, _is_random(case, sample), exact)
    return len(samples)


def check_out(case: Case, device: str, limit: int = 2) -> int:
    """The out= variant: fills the tensors it is given, of the right shape, and resizes empty ones."""
    if not case.op.supports_out:
        return 0
    samples = _samples(case, limit, requires_grad=False)
    compared = 0
    for sample in samples:
        what = f"out= of {sample.summary()}"
        plain = SampleInput(sample.input, args=tuple(sample.args), kwargs=dict(sample.kwargs))
        results = _both(case, plain, device, what)
        if results is None:
            continue
        (ours, _), (theirs, _) = results

        def exact(plain: SampleInput = plain) -> Any:
            return _call(case, plain, "cpu", double=True)[0]

        for empty in (False, True):
            outs = [t.new_empty(0 if empty else t.shape) for t in tree_flatten(ours)[0]]
            _call(case, plain, device, out=outs[0] if isinstance(ours, torch.Tensor) else tuple(outs))
            _compare(case, device, outs, theirs, what, _is_random(case, sample), exact)
        compared += 1
    return compared


def check_in_place(case: Case, device: str, limit: int = 2) -> int:
    """The in-place variant, or its refusal, as on the CPU."""
    variant = case.op.get_inplace()
    if variant is None:
        return 0

    def in_place(input_: Any, *args: Any, **kwargs: Any) -> Any:
        target = tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, input_)
        result = variant(target, *args, **kwargs)
        return target if result is None else (target, result)

    return check_forward(case, device, limit, function=in_place)


def check_backward(case: Case, device: str, limit: int = 4) -> int:
    """The same for gradients of a weighted sum of all differentiable outputs."""
    if not case.op.supports_autograd or case.op.name in VALUES_UNDEFINED:
        return 0

    def gradients(device: str, sample: SampleInput, double: bool = False) -> tuple[int, Any]:
        results, leaves = _call(case, sample, device, double)
        outputs = [t for t in tree_flatten(results)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
        if not outputs or not leaves:
            return len(outputs), ()
        torch.manual_seed(1)
        drawn = {torch.float64: torch.float32, torch.complex128: torch.complex64} if double else {}
        weights = [torch.randn(t.shape, dtype=drawn.get(t.dtype, t.dtype)) for t in outputs]
        moved = [w.to(device=device, dtype=t.dtype) for w, t in zip(weights, outputs, strict=True)]
        return len(outputs), torch.autograd.grad(outputs, leaves, moved, allow_unused=True)

    compared = 0
    for sample in _samples(case, limit, requires_grad=True):
        if _is_random(case, sample):
            continue
        what = f"backward of {sample.summary()}"
        their_count, theirs = gradients("cpu", sample)
        our_count, ours = gradients(device, sample)
        assert our_count == their_count, f"{case} {what}: {our_count} differentiable outputs, {their_count} on CPU"

        def exact(sample: SampleInput = sample) -> Any:
            return gradients("cpu", sample, double=True)[1]

        assert [g is None for g in ours] == [g is None for g in theirs], f"{case} {what}: a gradient is missing"
        _compare(case, device, ours, theirs, what, exact=exact)
        compared += len(theirs) > 0
    return compared


def check_compiled(
    case: Case, device: str, limit: int = 2, dynamic: bool | None = None, fullgraph: bool = False
) -> int:
    """The operator compiled by Inductor for the device against the eager CPU.

    `dynamic` and `fullgraph` are torch.compile's: without the latter, what cannot be traced runs as eager code.

    A sample that the CPU refuses is left out: when an error is raised, and how it is wrapped, is Dynamo's matter.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return case.op.op(*args, **kwargs)

    torch._dynamo.reset()
    compiled = torch.compile(call, dynamic=dynamic, fullgraph=fullgraph)
    compared = 0
    for sample in _samples(case, limit, requires_grad=False):
        what = f"compiled, of {sample.summary()}"
        try:
            theirs, _ = _call(case, sample, "cpu", function=call)
        except Exception:
            continue
        ours, _ = _call(case, sample, device, function=compiled)

        def exact(sample: SampleInput = sample) -> Any:
            return _call(case, sample, "cpu", double=True, function=call)[0]

        _compare(case, device, ours, theirs, what, _is_random(case, sample), exact)
        compared += 1
    return compared


def check_errors(case: Case, device: str) -> int:
    """Upstream's list of misuses: each raises the type and the message it names."""
    if case.op.error_inputs_func is None:
        return 0
    compared = 0
    for misuse in case.op.error_inputs("cpu"):
        try:
            _call(case, misuse.sample_input, device)
        except Exception as error:
            problem = f"{case}: {type(error).__name__}: {error} for {misuse.error_type.__name__}: {misuse.error_regex}"
            assert isinstance(error, misuse.error_type), problem
            assert re.search(misuse.error_regex, str(error)), problem
        else:
            raise AssertionError(f"{case}: no error for {misuse.sample_input.summary()}: {misuse.error_regex}")
        compared += 1
    return compared
