"""Every write of this package into torch._inductor, each with the torch in which it may go.

They are needed because Inductor decides by lists of device names that a backend outside torch cannot extend.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._inductor import choices, config, graph, ir, lowering, scheduler, utils
from torch._inductor.runtime.hints import DeviceProperties, ReductionHint
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import NullHandler, V
from torch.utils._sympy.value_ranges import ValueRangeError

import mybackend
from mybackend.compile.c_types import COMPLEX

__all__ = ["apply"]

COSTLY = ("exp", "sigmoid", "tanh", "erf")

aten = torch.ops.aten
# Operators whose lowerings read and write elements as they are.
MOVES = {
    aten.alias.default, aten.as_strided.default, aten.cat.default, aten.clone.default, aten.copy.default,
    aten.copy_.default, aten.detach.default, aten.diagonal.default, aten.expand.default, aten.flip.default,
    aten.permute.default, aten.repeat.default, aten.reshape.default, aten.select.int, aten.slice.Tensor,
    aten.split.Tensor, aten.split_with_sizes.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.t.default, aten.transpose.int, aten.unbind.int, aten.unfold.default, aten.unsqueeze.default,
    aten._unsafe_view.default, aten.view.default,
}  # fmt: skip

# Elements of a row from which the operator splits a scan.
LONG_SCAN = 1 << 15

DEVICE = "mybackend"

# Of a sum of columns: how many make a tile for one core, and how many elements occupy several cores.
NARROW_TILE = 16
WORTH_SPLITTING = 1 << 17


def apply() -> None:
    join_gpu_types()
    exempt_from_triton()
    want_no_templates_of_triton()
    keep_costly_results()
    fuse_what_triton_cannot()
    lay_out_results()
    join_copies_into_a_concatenation()
    leave_long_scans_to_operators()
    convolve_in_channels_last()
    split_few_columns()
    compare_any_strides()


def join_gpu_types() -> None:
    """A device that is not in this list is taken for a CPU.

    `cpu_scalar * device_tensor` is then lowered to a CPU kernel that reads device memory, and there are no device
    guards, no user streams and no reordering of loops after fusion. Needed until `is_gpu` asks the device interface
    (pull request 190326; not in torch 2.14).
    """
    utils.get_gpu_type()  # caches its answer, which asserts that at most one type of the list is available
    if DEVICE not in utils.GPU_TYPES:
        utils.GPU_TYPES.append(DEVICE)


def want_no_templates_of_triton() -> None:
    """Inductor asks whether a GPU is large enough for Triton's templates before it asks whether they are for it.

    Every compiled convolution would warn that there are not enough multiprocessors for max_autotune_gemm.
    """
    original = utils._use_template_for_gpu

    @functools.wraps(original)
    def use_template_for_gpu(layout: ir.Layout, *args: Any, **kwargs: Any) -> bool:
        return layout.device.type != DEVICE and bool(original(layout, *args, **kwargs))

    utils._use_template_for_gpu = use_template_for_gpu


def keep_costly_results() -> None:
    """On a CPU, exponentials that are used twice are kept in memory: Inductor asks `is_cpu` for that.

    Recomputing them, as on a GPU, takes longer than reading what is still in the cache.
    """
    original = ir.StorageBox.should_realize_on_reuse

    @functools.wraps(original)
    def should_realize_on_reuse(self: ir.StorageBox, users: int, *args: Any, **kwargs: Any) -> bool:
        if original(self, users, *args, **kwargs):
            return True
        if users <= 1 or not isinstance(self.data, (ir.Pointwise, ir.Reduction)):
            return False
        device = self.data.get_device()
        if device is None or device.type != DEVICE or mybackend.driver() != "host":
            return False
        return any(name in COSTLY for name in self.data.inner_fn_opcount().used_ops)

    ir.StorageBox.should_realize_on_reuse = should_realize_on_reuse


def fuse_what_triton_cannot() -> None:
    """What our kernels do with types that Triton has not; elsewhere Inductor calls the operators.

    float8_e8m0fnu is computed with (prelude/float8.h). Complex numbers are moved: an operator's call whose result is a
    view of a graph's buffer can be read before it is written (`x.t().clone().diagonal().copy_(y)`, on the CPU too).
    """
    original = lowering.unsupported_input_tensor

    @functools.wraps(original)
    def unsupported_input_tensor(t: torch.Tensor, node: Any = None, *args: Any, **kwargs: Any) -> bool:
        if t.device.type == DEVICE and not t.is_sparse:
            if t.dtype == torch.float8_e8m0fnu:
                return False
            if t.dtype in COMPLEX and not t.is_conj() and node is not None and node.target in MOVES:
                return False
        return bool(original(t, node, *args, **kwargs))

    lowering.unsupported_input_tensor = unsupported_input_tensor


def lay_out_results() -> None:
    """A called operator's result has the strides that were planned with, copied if the operator chose others.

    Meta kernels know the strides of CUDA's and the CPU's kernels: those of a Fourier transform or of a convolution
    in channels_last may be others here. Inductor asserts them and would fail.
    """
    original = ir.ExternKernel.codegen_size_asserts

    @functools.wraps(original)
    def codegen_size_asserts(self: Any, wrapper: Any) -> None:
        device = self.get_device()
        if device is None or device.type != DEVICE or not hasattr(wrapper, "lay_out_result"):
            original(self, wrapper)
        elif sympy_product(self.get_size()) != 0:
            wrapper.lay_out_result(self.get_name(), self.get_size(), self.get_stride())

    ir.ExternKernel.codegen_size_asserts = codegen_size_asserts


def join_copies_into_a_concatenation() -> None:
    """Copies of what operators returned, into the parts of a concatenation, are segments of one launch.

    Inductor does so with copies of a graph's inputs only: a stack of the norms of a hundred gradients would be as many
    launches.
    """
    original = ir.ConcatKernel.create.__func__

    @functools.wraps(original)
    def create(cls: type, inputs: Any, dim: int) -> Any:
        result = original(cls, inputs, dim)
        device = result.get_device()
        if device is not None and device.type == DEVICE:
            copies = [
                part.get_operation_name()
                for part, source in zip(result.data.inputs, inputs, strict=True)
                if isinstance(part, ir.ComputedBuffer) and _is_called(source)
            ]
            if len(copies) > 1:
                V.graph.register_operation_list(copies)
        return result

    ir.ConcatKernel.create = classmethod(create)


def _is_called(x: Any) -> bool:
    """Whether `x` is what an operator of no kernel of ours has returned, or a view of it."""
    while isinstance(x, ir.MutableBox):
        x = x.data
    x = x.unwrap_view() if isinstance(x, ir.BaseView) else x
    while isinstance(x, ir.MutableBox):
        x = x.data
    return isinstance(x, (ir.ExternKernel, ir.MultiOutput))


def leave_long_scans_to_operators() -> None:
    """Scans are never split, and rows so long and few that they should be are left to the operator, which does that.

    Inductor would split a scan for Triton, in a way that needs blocks to wait for one another, or else call the
    operator, which it does even for a hundred elements.
    """
    create, num_splits = ir.Scan.create.__func__, ir.Scan.num_splits.__func__

    @functools.wraps(create)
    def create_scan(
        cls: type, device: torch.device, dtypes: Any, inner_fns: Any, size: Any, axis: int, *args: Any, **kwargs: Any
    ) -> Any:
        if device.type == DEVICE and kwargs.get("can_fallback_to_aten", True):
            length = V.graph.sizevars.optimization_hint(size[axis], fallback=0)
            rows = V.graph.sizevars.optimization_hint(sympy_product([*size[:axis], *size[axis + 1 :]]), fallback=1)
            processors = DeviceProperties.create(device).multi_processor_count or 1
            if length >= LONG_SCAN and rows < processors:
                return [None] * len(dtypes)
        return create(cls, device, dtypes, inner_fns, size, axis, *args, **kwargs)

    @functools.wraps(num_splits)
    def splits_of_scan(cls: type, device: torch.device, *args: Any, **kwargs: Any) -> Any:
        if device.type == DEVICE:
            return ReductionHint.DEFAULT, 1
        return num_splits(cls, device, *args, **kwargs)

    ir.Scan.create = classmethod(create_scan)
    ir.Scan.num_splits = classmethod(splits_of_scan)


def convolve_in_channels_last() -> None:
    """On the host, 2-d convolutions and what is between them are in channels_last, as on the CPU: it is oneDNN's order.

    In the other order oneDNN copies every operand to its own and the result back. Inductor asks for the CPU by name.
    """
    original = graph.GraphLowering.decide_layout_opt

    @functools.wraps(original)
    def decide_layout_opt(gm: torch.fx.GraphModule, *, is_inference: bool) -> bool:
        convolutions = [node for node in gm.graph.nodes if node.target is torch.ops.aten.convolution.default]
        ours = all(node.args[i].meta["val"].device.type == DEVICE for node in convolutions for i in (0, 1))
        if config.layout_optimization and convolutions and ours and mybackend.driver() == "host":
            return bool(torch.backends.mkldnn.enabled and torch.backends.mkldnn.is_available())
        return bool(original(gm, is_inference=is_inference))

    graph.GraphLowering.decide_layout_opt = staticmethod(decide_layout_opt)


def split_few_columns() -> None:
    """On the host, sums of columns are split for cores only, and where there is enough to do for several.

    Inductor splits them for a GPU's threads, in steps: the statistics of a batch norm in channels_last became eight
    kernels, each of less work than it takes to start.
    """
    original = choices.InductorChoices.reduction_split_factor

    @functools.wraps(original)
    def reduction_split_factor(
        device: torch.device, reduction_numel_hint: int, numel_hint: int, inner_reduction: bool
    ) -> int:
        if inner_reduction or device.type != DEVICE or mybackend.driver() != "host":
            return int(original(device, reduction_numel_hint, numel_hint, inner_reduction))
        parts = 4 * mybackend.get_device_properties(device).multi_processor_count
        tiles = max(1, numel_hint // NARROW_TILE)
        if reduction_numel_hint * numel_hint < WORTH_SPLITTING:
            return 1
        return max(1, parts // tiles)

    choices.InductorChoices.reduction_split_factor = staticmethod(reduction_split_factor)


def compare_any_strides() -> None:
    """Strides of which sympy cannot say whether one divides the other are not known to be in order.

    Asked about quotients of symbolic sizes, which the strides of a view of a convolution's result have, it raises, and
    Inductor's `guard_or_false` lets that through (torch 2.13 and 2.14).
    """
    original = getattr(ir.Layout, "_stride_expr_ge_or_false", None)  # torch 2.11 compares by hints
    if original is None:
        return

    @functools.wraps(original)
    def stride_expr_ge_or_false(left: Any, right: Any) -> bool:
        try:
            return bool(original(left, right))
        except ValueRangeError:
            return False

    ir.Layout._stride_expr_ge_or_false = staticmethod(stride_expr_ge_or_false)


def exempt_from_triton() -> None:
    """The scheduler wants Triton for every type of that list but "mps". Needed as long as joining it is."""
    original = scheduler.has_triton

    @functools.wraps(original)
    def has_triton() -> bool:
        ours = not isinstance(V.graph, NullHandler) and DEVICE in V.graph.device_types
        return ours or bool(original())

    scheduler.has_triton = has_triton
