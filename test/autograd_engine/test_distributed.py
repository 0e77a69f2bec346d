"""Two processes over gloo: DDP in its forms and FSDP2 have the losses and gradients they have on upstream's engine."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import mybackend.autograd

STEPS = 3


class Net(nn.Module):
    """Two layers, one of which is optional, so that parameters may be unused; the first layer is used twice."""

    def __init__(self, checkpointed: bool = False):
        super().__init__()
        self.first, self.second, self.spare = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.checkpointed = checkpointed

    def forward(self, x, use_spare: bool):
        if self.checkpointed:
            x = torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False)
        x = self.second(self.first(x).tanh())
        return self.spare(x) if use_spare else x


def batches(rank: int):
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(4, 8, dtype=torch.float64, generator=generator) for _ in range(STEPS)]


def train(model: nn.Module, rank: int, use_spare) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step, batch in enumerate(batches(rank)):
        optimizer.zero_grad()
        loss = model(batch, use_spare(step)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def averaged(state, bucket):
    """A communication hook: what DDP does by itself, as a future."""
    work = torch.distributed.all_reduce(bucket.buffer().div_(2), async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def ddp(rank: int, hook=None, checkpointed=False, use_spare=lambda step: True, **options) -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(Net(checkpointed).double(), bucket_cap_mb=0.0005, **options)
    if hook is not None:
        model.register_comm_hook(None, hook)
    return train(model, rank, use_spare)


def no_sync(rank: int) -> list[float]:
    torch.manual_seed(0)
    model = DistributedDataParallel(Net().double())
    first, *rest = batches(rank)
    with model.no_sync():
        model(first, True).square().mean().backward()
    model(rest[0], True).square().mean().backward()
    return [parameter.grad.sum().item() for parameter in model.parameters()]


def fsdp2(rank: int) -> list[float]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = Net().double()
    mesh = init_device_mesh("cpu", (2,))
    for layer in (model.first, model.second, model.spare):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return train(model, rank, lambda step: True)


CASES = {
    "ddp": lambda rank: ddp(rank),
    "ddp, unused parameters": lambda rank: ddp(
        rank, find_unused_parameters=True, use_spare=lambda step: (step + rank) % 2 == 0
    ),
    "ddp, static graph": lambda rank: ddp(rank, static_graph=True, checkpointed=True),
    "ddp, communication hook": lambda rank: ddp(rank, hook=averaged),
    "ddp, gradients as bucket views": lambda rank: ddp(rank, gradient_as_bucket_view=True),
    "ddp without synchronisation": no_sync,
    "fsdp2": fsdp2,
}


def work(rank: int, port: int, folder: str) -> None:
    """What each of the two processes does."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    results = {}
    for name, case in CASES.items():
        for engine in ("stock", "mybackend"):
            with mybackend.autograd.use_engine(engine):
                try:
                    results[name, engine] = case(rank)
                except Exception as error:
                    results[name, engine] = f"{type(error).__name__}: {error}"
            torch.distributed.barrier()
    torch.save(results, Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = [[sys.executable, "-W", "ignore", __file__, str(rank), str(port), str(folder)] for rank in range(2)]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    try:
        for process in processes:
            printed, _ = process.communicate(timeout=200)
            assert process.returncode == 0, printed
    finally:
        for process in processes:
            process.kill()
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rank", [0, 1])
def test_both_engines_train_alike(results, case, rank):
    stock, ours = (results[rank][case, engine] for engine in ("stock", "mybackend"))
    assert isinstance(stock, list), stock
    assert ours == stock


def test_ranks_end_with_different_losses_of_the_same_model(results):
    assert results[0]["ddp", "mybackend"] != results[1]["ddp", "mybackend"]
    assert (
        results[0]["ddp without synchronisation", "mybackend"] == results[1]["ddp without synchronisation", "mybackend"]
    )


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
