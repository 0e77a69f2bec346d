"""torch.compile for mybackend: Inductor graphs become CUDA C++, which the host driver runs too.

Nothing needs to be called: `torch.compile(model)` registers this on the first compile (registration.py), in the process
that compiles and in Inductor's workers. For operators of one's own there is

    register_lowering    inlines an operator into the fused kernels around it
    pointwise            makes a lowering from a function over Inductor's operations
    expression           makes a lowering from a C++ expression
"""

from mybackend.compile.lowering_registry import expression, pointwise, register_lowering

__all__ = ["expression", "pointwise", "register_lowering"]
