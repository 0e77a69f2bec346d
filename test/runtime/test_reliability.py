"""Processes, threads, sizes beyond 31 bits and exhausted memory: the device stays right and usable."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

THREADS, ROUNDS = 4, 20


def host_only() -> None:
    if torch.mybackend.driver() != "host":
        pytest.skip("a GPU cannot be used in a forked child, as in torch.cuda")


def train(device: str, seed: int) -> torch.Tensor:
    """A few steps of a small model; equal seeds give equal parameters."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(16, 16, generator=generator).to(device).requires_grad_()
    x = torch.randn(32, 16, generator=generator).to(device)
    for _ in range(ROUNDS):
        (gradient,) = torch.autograd.grad((x @ weight).tanh().square().mean(), weight)
        weight = (weight - 0.1 * gradient).detach().requires_grad_()
    return weight.detach().cpu()


def test_threads_compute_at_once_what_each_computes_alone(device):
    alone = [train(device, seed) for seed in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(lambda seed: train(device, seed), range(THREADS)))
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(other, one)


def test_threads_on_streams_of_their_own_do_not_share_memory_in_use(device):
    failures = []

    def work(value: int) -> None:
        with torch.mybackend.Stream(device):
            for _ in range(ROUNDS):
                x = torch.full((1 << 14,), float(value), device=device)
                if x.add_(1).cpu().unique().tolist() != [value + 1]:
                    failures.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_running_out_of_memory_in_backward_leaves_the_process_working(device):
    class Greedy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.empty(1 << 40, device=grad.device)

    x = torch.ones(3, device=device, requires_grad=True)
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 4096\.00 GiB"):
            Greedy.apply(x).sum().backward()
    assert torch.equal(train(device, 0), train(device, 0))


def test_two_processes_use_the_device_at_once():
    code = """
import torch, mybackend
x = torch.arange(1 << 16, device="mybackend", dtype=torch.float64)
for _ in range(20): x = x + 1
print(int(x.sum().item()))
"""
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    expected = sum(range(20, (1 << 16) + 20))
    for process in processes:
        assert int(process.communicate(timeout=240)[0]) == expected and process.returncode == 0


FORK = """
import multiprocessing, torch, mybackend
def child(queue, stream, shared):
    with stream:
        y = shared * 2 + torch.ones(1000, device="mybackend")
    stream.synchronize()
    queue.put(y.cpu().unique().tolist())
    big = torch.ones(1 << 20, device="mybackend")
    queue.put([float((big + big).sum().item())])
stream = torch.mybackend.Stream()
with stream:
    shared = torch.full((1000,), 3.0, device="mybackend")
torch.ones(1 << 20, device="mybackend").sum().item()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
children = [context.Process(target=child, args=(queue, stream, shared)) for _ in range(2)]
for process in children: process.start()
seen = sorted(queue.get() for _ in range(4))
for process in children: process.join()
assert [process.exitcode for process in children] == [0, 0]
print(seen, shared.cpu().unique().tolist())
"""


def test_forked_children_go_on_with_tensors_and_streams_of_their_parent():
    host_only()
    result = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[[7.0], [7.0], [2097152.0], [2097152.0]] [3.0]"


class OnDevice(Dataset):
    """Samples that the loader's workers make on the device."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return (torch.full((4,), float(index), device="mybackend") + 1).cpu()


def test_workers_of_a_data_loader_use_the_device_after_their_parent_did(device):
    host_only()
    assert torch.ones(2, device=device).sum().item() == 2
    batches = list(DataLoader(OnDevice(), batch_size=4, num_workers=2, timeout=120))
    assert torch.cat(batches)[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_more_than_31_bits_of_elements_are_indexed_right(device):
    size = (1 << 31) + 64
    if torch.mybackend.mem_get_info(device)[0] < size + (1 << 28):
        pytest.skip("needs 2.3 GiB of device memory")
    x = torch.zeros(size, dtype=torch.int8, device=device)
    x[-3:] = 5
    x.add_(1)
    assert x[-4:].tolist() == [1, 6, 6, 6] and x[:2].tolist() == [1, 1]
    assert x.sum(dtype=torch.int8).item() == (size + 15) % 256
    assert x.argmax().item() == size - 3
    x.copy_(torch.full((1,), 7, dtype=torch.int8, device=device).expand(size))
    assert x[0].item() == x[-1].item() == 7
    del x
    torch.mybackend.empty_cache()
