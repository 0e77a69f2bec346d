"""What Inductor's scheduler asks of the backend: features, tiling, templates, and the definition of a kernel."""

from __future__ import annotations

from typing import Any

import sympy
from torch._dynamo.utils import counters
from torch._inductor import config, metrics
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.utils import get_fused_kernel_name, get_kernel_metadata
from torch._inductor.virtualized import V as virtualized
from torch.utils._ordered_set import OrderedSet

from mybackend.compile.combo import Combo, Segment, in_launches
from mybackend.compile.kernel import Kernel

__all__ = ["Scheduling"]

V: Any = virtualized


class Scheduling(SIMDScheduling):
    kernel_type = Kernel

    @classmethod
    def get_backend_features(cls, device: Any) -> OrderedSet[BackendFeature]:
        return OrderedSet(
            [
                BackendFeature.INPLACE_BUFFERS,
                BackendFeature.TUPLE_REDUCTION,
                BackendFeature.BUCKETIZE,
                BackendFeature.FOREACH,
                BackendFeature.SCAN,
            ]
        )

    @classmethod
    def get_tiling_and_scores(
        cls, node_schedule: Any, numel: Any, reduction_numel: Any = sympy.S.One, coalesce_analysis: Any = None
    ) -> tuple[Any, Any]:
        """One range of items and one of the reduction; loops.py cuts them into rows."""
        return cls.create_tiling([numel], [reduction_numel]), None

    def codegen_template(self, template_node: Any, epilogue_nodes: Any, prologue_nodes: Any, **options: Any) -> None:
        """A template's kernel, with the nodes after it that the scheduler has fused."""
        assert not prologue_nodes, "mybackend.compile: nothing is fused before a template"
        nodes = [template_node, *epilogue_nodes]
        kernel = template_node.node.kernel(epilogue_nodes)
        source = kernel.generate(epilogue_nodes)
        with V.set_kernel_handler(kernel):
            for node in nodes:
                node.mark_run()
            name = self.define_kernel(source, nodes, kernel)
            self.codegen_comment(nodes)
            kernel.call_kernel(name, template_node.node)
        V.graph.removed_buffers |= kernel.removed_buffers
        counters["inductor"]["mybackend_templates"] += 1
        self.free_buffers_in_scheduler()

    def codegen_combo_kernel(self, combo_kernel_node: Any) -> None:
        """Nodes of a `_foreach_` operator, or those that `combo_kernels` put together, in as few launches as fit."""
        segments = [self._segment(node.get_nodes()) for node in combo_kernel_node.get_subkernel_nodes()]
        launches = in_launches(segments)
        metrics.generated_kernel_count += len(launches) - len(segments)
        for launch in launches:
            combo = Combo(launch)
            name = self.define_kernel(combo.source(), combo_kernel_node.snodes, combo)
            self.codegen_comment(combo_kernel_node.snodes, name)
            combo.call_kernel(name)
            if config.nan_asserts:
                for segment in launch:
                    segment.kernel.codegen_nan_check()
        self.free_buffers_in_scheduler()

    def _segment(self, nodes: Any) -> Segment:
        _, (numel, reduction_numel) = max(nodes, key=lambda node: node.is_reduction()).group
        schedule = self.generate_node_schedule(nodes, numel, reduction_numel)
        tiling, _ = self.get_tiling_and_scores(schedule, numel, reduction_numel)
        kernel = Kernel(tiling, features=SIMDKernelFeatures(schedule, numel, reduction_numel))
        self.process_kernel(kernel, schedule)
        with V.set_kernel_handler(kernel):
            return Segment(kernel, kernel.body_text())

    def define_kernel(self, src_code: str, node_schedule: Any, kernel: Any) -> str:
        wrapper = V.graph.wrapper_code
        known = wrapper.src_to_kernel.get(src_code)
        if known is not None:
            return str(known)
        fused = get_fused_kernel_name(node_schedule, config.triton.descriptive_names)
        name = "_".join(["mb", fused, wrapper.next_kernel_suffix()])
        wrapper.src_to_kernel[src_code] = name
        origins, detailed = get_kernel_metadata(node_schedule, wrapper)
        wrapper.add_kernel(
            name, src_code.replace("KERNEL_NAME", name), kernel.signature.launch_plan(), f"{origins}\n{detailed}"
        )
        return name
