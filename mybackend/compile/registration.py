"""Makes the device known to Dynamo and to Inductor, each when it is first used.

Importing mybackend must not import Dynamo, so all calls come from outside: `register_interface` when
torch._dynamo.device_interface has been imported, `register_trace_rules` when torch._dynamo.trace_rules has and
`register_decompositions` when torch._inductor.decomposition has (mybackend/_compile_hook.py), `register_backend` when
Inductor, before it makes a cache key or lowers a graph, asks `torch.mybackend` for a class called Scheduling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mybackend

__all__ = ["register_backend", "register_decompositions", "register_interface", "register_trace_rules"]

DEVICE = "mybackend"


def register_interface() -> None:
    from torch._dynamo.device_interface import register_interface_for_device

    from mybackend.compile import fakes
    from mybackend.compile.device_interface import Interface

    register_interface_for_device(DEVICE, Interface)
    for index in range(mybackend.device_count()):
        register_interface_for_device(f"{DEVICE}:{index}", Interface)
    fakes.install()


def register_trace_rules() -> None:
    """Seeding and the state of generators run as they are, as those of torch.cuda do.

    Traced, the tensor of a state would be made in the middle of a trace, which torch.random.fork_rng could not bear.
    """
    from torch._dynamo import trace_rules

    trace_rules.add("mybackend.random")


def register_decompositions() -> None:
    from mybackend.compile import decompositions

    decompositions.install()


@functools.cache
def register_backend() -> None:
    from torch._inductor.codegen.common import (
        get_device_op_overrides,
        register_backend_for_device,
        register_device_op_overrides,
    )
    from torch._inductor.runtime import benchmarking

    from mybackend.compile import convolution, gemm, lowering_registry, lowerings, patches, pooling
    from mybackend.compile.custom_pass import VersionPass
    from mybackend.compile.device_ops import DeviceOps
    from mybackend.compile.scheduling import Scheduling
    from mybackend.compile.unsupported import NoCppWrapper, NoFxWrapper
    from mybackend.compile.wrapper import Wrapper

    patches.apply()
    lowerings.install()
    gemm.install()
    convolution.install()
    pooling.install()
    lowering_registry.install()
    get_device_op_overrides("cpu")  # torch 2.11 fills its table only while it is empty
    register_device_op_overrides(DEVICE, DeviceOps())
    register_backend_for_device(DEVICE, Scheduling, Wrapper, NoCppWrapper, NoFxWrapper, VersionPass(), None)
    if hasattr(benchmarking, "register_benchmarker"):  # torch 2.13
        benchmarking.register_benchmarker(DEVICE, _benchmark, override=True)


def _benchmark(benchmarker: Any, call: Callable[[], object], *, warmup: int, rep: int, **options: object) -> float:
    """Milliseconds of one call; a host clock, since work on the host driver is done when the call returns."""

    def synchronized() -> None:
        call()
        mybackend.synchronize()

    return float(benchmarker.benchmark_cpu(synchronized, warmup=warmup, rep=rep))
