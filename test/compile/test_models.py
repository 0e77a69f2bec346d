"""Models train compiled (forward, backward and optimizer) as they do in eager code on the CPU.

A compiled optimizer keeps its step count in a float32 tensor, so the CPU's is traced too, and run by eager kernels. How
far apart two right runs may be is measured on the CPU: a run in float64 shows what rounding does, and a run whose
weights are off by one rounding at the start shows how such a difference grows. A model is one graph, whose kernels are
counted: a lost fusion shows.
"""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch._inductor import metrics
from zoo import TASKS, Task

STEPS = 20
FULL = os.environ.get("MYBACKEND_CONFORMANCE") == "full"
# The most kernels of ours that forward and backward together may take. Templates are not counted: whether a product is
# one, or a call, depends on the CPU, and with it what is fused into it.
KERNELS = {
    "gpt": 34,
    "residual_net": 27,  # four of them put weights in channels_last
    "llama": 35,
    "bert": 41,
    "vit": 40,
    "transformer": 77,
    "lstm": 60,  # 24 steps of two layers, written out
    "gru": 62,
}
IN_CI = ("gpt", "residual_net")


class Run:
    def __init__(self) -> None:
        self.losses: list[float] = []
        self.parameters: dict[str, Tensor] = {}
        self.kernels = 0  # of the model's first step, forward and backward


def train(
    task: Task, device: str, compiled: bool = False, dtype: torch.dtype = torch.float32, nudge: float = 0.0
) -> Run:
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    model = task.model().train()
    batches = [task.batch(random) for _ in range(STEPS)]
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + nudge * torch.randint(-1, 2, p.shape, generator=random))
    model.to(device, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-6)
    step = torch.compile(optimizer.step, backend="inductor" if compiled else "aot_eager")
    called = torch.compile(model, fullgraph=True) if compiled else model
    run = Run()
    counters.clear()
    metrics.reset()
    for batch in batches:
        optimizer.zero_grad()
        loss = task.loss(called, tuple(t.to(device, dtype if t.is_floating_point() else None) for t in batch))
        loss.backward()
        if not run.losses:
            run.kernels = metrics.generated_kernel_count - counters["inductor"]["mybackend_templates"]
        step()
        run.losses.append(loss.item())
    run.parameters = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
    return run


@pytest.mark.parametrize("name", [name for name in TASKS if FULL or name in IN_CI])
def test_a_model_trains_compiled_as_on_the_cpu(name, device, no_fallback):
    task = TASKS[name]
    one = train(task, "cpu")
    others = [train(task, "cpu", dtype=torch.float64), train(task, "cpu", nudge=2.0**-23)]
    torch._dynamo.reset()
    with torch._dynamo.config.patch(allow_rnn=True):  # else they are a graph break, on every device
        ours = train(task, device, compiled=True)
    allowed = 10 * max(abs(a - b) for other in others for a, b in zip(one.losses, other.losses, strict=True))
    for step, (mine, theirs) in enumerate(zip(ours.losses, one.losses, strict=True)):
        assert abs(mine - theirs) <= allowed, f"loss at step {step}: {mine} against {theirs}, {allowed:.2e} allowed"
    for key, value in one.parameters.items():
        allowed = 10 * max((value - other.parameters[key]).abs().max().item() for other in others)
        apart = (ours.parameters[key] - value).abs().max().item()
        assert apart <= allowed, f"{key}: {apart:.2e} apart, {allowed:.2e} allowed"
    assert ours.kernels <= KERNELS[name]


@pytest.mark.parametrize("name", [name for name in TASKS if FULL or name in IN_CI])
def test_a_model_of_any_size_has_the_gradients_of_the_cpu(name, device, no_fallback):
    task = TASKS[name]
    model, batch = task.model().train(), task.batch(torch.Generator().manual_seed(0))
    copy = task.model().train()
    copy.load_state_dict(model.state_dict())
    task.loss(model, batch).backward()
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(copy.to(device), fullgraph=True, dynamic=True)
        task.loss(compiled, tuple(t.to(device) for t in batch)).backward()
    for ours, theirs in zip(copy.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-5)
