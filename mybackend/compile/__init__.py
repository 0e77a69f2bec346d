"""torch.compile for mybackend: Inductor graphs become CUDA C++, which the host driver runs too.

Nothing needs to be called: `torch.compile(model)` registers this on the first compile (registration.py), in the process
that compiles and in Inductor's workers. For operators of one's own there is

    register_lowering    inlines an operator into the fused kernels around it
"""

from __future__ import annotations

from typing import Any

__all__ = ["register_lowering"]


def register_lowering(operator: Any, **options: Any) -> Any:
    from mybackend.compile.lowering_registry import register_lowering

    return register_lowering(operator, **options)
