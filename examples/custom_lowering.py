"""An operator of one's own, compiled: first a call, then inlined into the kernel around it.

    python examples/custom_lowering.py [--device mybackend]

`swish(x, beta) = x * sigmoid(beta * x)` is registered with torch.library, with a kernel (here: eager operators) and a
fake. torch.compile calls it as it is. With `register_lowering` it becomes an expression of the fused kernel; what
Inductor generated shows the difference.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code

import mybackend
import mybackend.compile


@torch.library.custom_op("custom_lowering_example::swish", mutates_args=())
def swish(x: Tensor, beta: float) -> Tensor:
    return x * torch.sigmoid(beta * x)


@swish.register_fake
def _(x: Tensor, beta: float) -> Tensor:
    return torch.empty_like(x)


def model(x: Tensor) -> Tensor:
    return (swish(x + 1, 1.5) * 2).sum(-1)


def generated(x: Tensor) -> tuple[Tensor, str]:
    torch._dynamo.reset()
    result, code = run_and_get_code(torch.compile(model, fullgraph=True), x)
    return result, code[0]


def register() -> None:
    mybackend.compile.register_lowering(
        torch.ops.custom_lowering_example.swish.default,
        mybackend.compile.pointwise(lambda ops, x, beta: ops.mul(x, ops.sigmoid(ops.mul(x, beta)))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    arguments = parser.parse_args()
    x = torch.randn(64, 1000, device=arguments.device)
    for title in ("as a call", "inlined"):
        result, code = generated(x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-3)
        calls = code.count("torch.ops.custom_lowering_example.swish.default(")
        print(f"{title}: {code.count('MB_KERNEL ')} kernels of ours, {calls} calls of the operator")
        register()


if __name__ == "__main__":
    main()
