"""torch.compile for mybackend: Inductor graphs become CUDA C++, which the host driver runs too.

Nothing needs to be called: `torch.compile(model)` registers this on the first compile (registration.py), in the process
that compiles and in Inductor's workers. For operators of one's own there is

    register_lowering    inlines an operator into the fused kernels around it
    pointwise            makes a lowering from a function over Inductor's operations
    expression           makes a lowering from a C++ expression
    register_template    gives an operator a kernel in C++, into which the pointwise code after it is fused
    ceil_div             divides a size, which may be a symbol, rounding up
"""

from mybackend.compile.lowering_registry import expression, pointwise, register_lowering
from mybackend.compile.template import ceil_div, register_template

__all__ = ["ceil_div", "expression", "pointwise", "register_lowering", "register_template"]
