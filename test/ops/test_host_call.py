"""Library work of the host driver (csrc/aten/host_call.h) is ordered, replayed and reported as work of its stream."""

import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(
    "torch.mybackend.driver() != 'host'", reason="only the host driver calls libtorch's kernels"
)


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_graph_replays_a_product(device):
    a, b = torch.randn(8, 8).to(device), torch.randn(8, 8).to(device)
    graph = torch.mybackend.Graph()
    with torch.mybackend.device(device), torch.mybackend.graph(graph):
        product = a @ b
    a.fill_(1.0)
    graph.replay()
    torch.mybackend.synchronize()
    torch.testing.assert_close(product.cpu(), torch.ones(8, 8) @ b.cpu())


def test_deferred_work_runs_in_the_order_in_which_it_was_sent():
    code = """
import torch, mybackend
a = torch.eye(16).to("mybackend"); x = torch.randn(16, 16); y = x.to("mybackend")
for _ in range(200): y = (a @ y).mul_(1.0)
print(torch.equal(y.cpu(), x))
"""
    assert run(code, MYBACKEND_HOST_STREAMS="async") == "True"


def test_what_deferred_work_throws_is_raised_by_the_next_synchronisation():
    code = """
import torch, mybackend
a = torch.ones(3, dtype=torch.bool, device="mybackend")
torch.dot(a, a)
try:
    torch.mybackend.synchronize()
except NotImplementedError as error:
    print(error)
torch.mybackend.synchronize()
"""
    assert run(code, MYBACKEND_HOST_STREAMS="async").startswith("\"dot\" not implemented for 'Bool'")


def test_an_error_code_on_the_cpu_is_there_when_it_is_read():
    code = """
import torch, mybackend
a = torch.eye(4).mul(2).to("mybackend")
print(all(torch.cholesky_inverse(a).diagonal().eq(0.25).all().item() for _ in range(50)))
"""
    assert run(code, MYBACKEND_HOST_STREAMS="async") == "True"


def test_a_result_belongs_to_the_devices_allocator(device):
    torch.mybackend.synchronize()
    before = torch.mybackend.memory_allocated(device)
    out = torch.conv2d(torch.ones(1, 4, 64, 64, device=device), torch.ones(8, 4, 3, 3, device=device))
    assert torch.mybackend.memory_allocated(device) - before >= out.nbytes


@pytest.mark.parametrize(
    "operator",
    [lambda x: torch.nn.functional.conv2d(x, x[:8, :, :3, :3]), torch.fft.fft2, lambda x: torch.fft.rfft(x, dim=1)],
    ids=["convolution", "fft2", "rfft"],
)
def test_a_result_that_libtorch_has_allocated_is_memory_of_the_device(device, operator):
    x = torch.randn(64, 8, 16, 16)
    x_there = x.to(device)
    before = torch.mybackend.memory_allocated(device)
    result = operator(x_there)
    expected = operator(x)
    size = result.untyped_storage().nbytes()
    assert size == expected.untyped_storage().nbytes() and size % 512 == 0
    assert torch.mybackend.memory_allocated(device) == before + size
    torch.testing.assert_close(result.cpu(), expected)
    grown = result.flatten().resize_(2 * result.numel())
    torch.testing.assert_close(grown[: result.numel()].cpu(), expected.flatten())
    del result, grown
    assert torch.mybackend.memory_allocated(device) == before
