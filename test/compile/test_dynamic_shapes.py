"""One compilation for many sizes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounterWithBackend
from torch.torch_version import TorchVersion

CASES = {
    "softmax": (lambda x: (x + 1).softmax(-1), [(4, 5), (33, 70), (7, 129)]),
    "layer norm of columns": (lambda x: (x - x.mean(0)) * x.var(0).rsqrt(), [(4, 5), (33, 70), (70, 129)]),
    "view and cat": (lambda x: torch.cat([x.view(-1), x.t().reshape(-1)]) * x.size(0), [(4, 6), (33, 70)]),
    "broadcast": (lambda x: x[:, None, :] + x[None, :, :] * x.shape[1], [(4, 6), (20, 30)]),
    "pooling": (lambda x: F.avg_pool2d(x[None, None], 2), [(6, 8), (33, 70)]),
    "convolution": (lambda x: F.conv2d(x[None], torch.ones(4, 1, 3, 3, device=x.device)), [(6, 8), (33, 70)]),
    "large sum": (lambda x: x.sum(), [(400, 500), (900, 400)]),
    "argmax": (lambda x: (x.argmax(0), x.argmax(1), x.argmax()), [(40, 50), (90, 41)]),
    "index": (lambda x: x[torch.arange(x.shape[0] - 1, -1, -1, device=x.device)], [(4, 6), (33, 70)]),
}


SPECIALIZED = pytest.mark.xfail(
    TorchVersion(torch.__version__) < "2.12", reason="torch 2.11 compiles it for one size, for the CPU too", strict=True
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SPECIALIZED) if name == "pooling" else name for name in CASES]
)
def test_one_compilation_serves_all_sizes(device, name):
    function, shapes = CASES[name]
    counter = CompileCounterWithBackend("inductor")
    compiled = torch.compile(function, backend=counter, dynamic=True, fullgraph=True)
    for shape in shapes:
        x = torch.randn(shape)
        actual = torch.utils._pytree.tree_map(torch.Tensor.cpu, compiled(x.to(device)))
        torch.testing.assert_close(actual, function(x), rtol=1e-4, atol=1e-4)
    assert counter.frame_count == 1


def test_a_size_that_is_only_known_when_the_code_runs(device):
    with torch._dynamo.config.patch(capture_scalar_outputs=True):

        def function(n):
            size = n.item()
            torch._check(size >= 0)
            return torch.zeros(size + 3, device=n.device) + 1

        compiled = torch.compile(function, fullgraph=True)
        for n in (2, 9):
            assert torch.equal(compiled(torch.tensor(n, device=device)).cpu(), torch.ones(n + 3))


@pytest.mark.parametrize("cell", [torch.gru_cell, torch.lstm_cell, torch.rnn_tanh_cell])
def test_a_recurrent_cell(agree, cell):
    gates = {torch.gru_cell: 3, torch.lstm_cell: 4, torch.rnn_tanh_cell: 1}[cell]
    x, h, c = torch.randn(5, 9), torch.randn(5, 7), torch.randn(5, 7)
    weights = [torch.randn(gates * 7, n) for n in (9, 7)] + [torch.randn(gates * 7) for _ in range(2)]

    def function(x, h, c, *weights):
        return cell(x, (h, c) if cell is torch.lstm_cell else h + c, *weights)

    agree(function, x, h, c, *weights, grad=True, dynamic=True, rtol=1e-4, atol=1e-5)
