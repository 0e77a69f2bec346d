"""An operator of one's own with a kernel of one's own, into which torch.compile fuses what follows.

    python examples/custom_template.py [--device mybackend]

`distances(x, y)` are the Euclidean distances of every row of x from every row of y, which eager code computes with a
temporary of three dimensions. The template is a tile of the result for each block: written once, compiled by the C++
compiler for the host and by nvcc for a GPU. The `exp` and the scaling after it become part of the same kernel.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code

import mybackend
import mybackend.compile
from mybackend.compile import ceil_div


@torch.library.custom_op("custom_template_example::distances", mutates_args=())
def distances(x: Tensor, y: Tensor) -> Tensor:
    return (x[:, None, :] - y[None, :, :]).square().sum(-1).sqrt()


@distances.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], y.shape[0])


# A block has ROWS rows of the result. Threads of a GPU share its elements; the host has one thread for all of them,
# whose loop over the columns is vectorised.
SOURCE = """
MB_BLOCKS(block, blocks) {
  const mb_index end = block * ROWS + ROWS < out_size0 ? block * ROWS + ROWS : out_size0;
  for (mb_index i = block * ROWS; i < end; i++) {
    MB_LOOP_TILES(q, out_size1, out_size1) {
      out_value sums[MB_LANES] = {};
      for (mb_index k = 0; k < x_size1; k++) {
        MB_SIMD()
        MB_EACH_LANE(lane, q) {
          const out_value difference = out_value(mb_load(x[i * x_stride0 + k * x_stride1])) -
                                       out_value(mb_load(y[(q.first + lane) * y_stride0 + k * y_stride1]));
          sums[lane] += difference * difference;
        }
      }
      MB_SIMD()
      MB_EACH_LANE(lane, q) sums[lane] = mb_sqrt(sums[lane]);
      store_row(i, q.first, q.last, sums);
    }
  }
}
"""


def model(x: Tensor, y: Tensor) -> Tensor:
    return torch.exp(distances(x, y) * -0.5) * 2


def generated(x: Tensor, y: Tensor, mode: str | None = None) -> tuple[Tensor, str]:
    torch._dynamo.reset()
    result, code = run_and_get_code(torch.compile(model, fullgraph=True, mode=mode), x, y)
    return result, code[0]


def register() -> None:
    mybackend.compile.register_template(
        torch.ops.custom_template_example.distances.default,
        SOURCE,
        blocks=lambda sizes, parameters: ceil_div(sizes["out"][0], parameters["ROWS"]),
        work=lambda sizes, parameters: parameters["ROWS"] * sizes["out"][1] * sizes["x"][1],
        parameters=[{"ROWS": 1}, {"ROWS": 8}],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="mybackend")
    arguments = parser.parse_args()
    x, y = (torch.randn(n, 16, device=arguments.device) for n in (300, 400))
    expected = model(x, y)
    for title, mode in (("as a call", None), ("template", None), ("the fastest", "max-autotune-no-cudagraphs")):
        result, code = generated(x, y, mode)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
        calls = code.count("torch.ops.custom_template_example.distances.default(")
        print(f"{title}: {code.count('MB_KERNEL ')} kernels of ours, {calls} calls of the operator")
        register()


if __name__ == "__main__":
    main()
