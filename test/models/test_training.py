"""Models train on the device as they do on the CPU, step by step, with no operator falling back.

Twenty steps of AdamW in float32 from the same weights and data. How far apart two right runs may drift is measured, not
guessed: the CPU is run with one and with two threads, which sum in different orders where arrays are large, and in
float64, which shows what rounding does where they are small. The device may be ten times as far from the CPU as the
farthest of these.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from zoo import TASKS, Task

STEPS = 20


class Trace:
    """The loss and a copy of every parameter after each step."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.parameters: list[dict[str, Tensor]] = []


def train(task: Task, device: str, dtype: torch.dtype = torch.float32) -> Trace:
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    model = task.model().train()
    batches = [task.batch(random) for _ in range(STEPS)]
    model.to(device, dtype)
    # eps keeps Adam from turning the rounding noise of gradients that are zero in exact arithmetic into whole steps.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-6)
    trace = Trace()
    for batch in batches:
        optimizer.zero_grad()
        loss = task.loss(model, tuple(t.to(device, dtype if t.is_floating_point() else None) for t in batch))
        loss.backward()
        optimizer.step()
        trace.losses.append(loss.item())
        trace.parameters.append({name: p.detach().cpu().clone() for name, p in model.named_parameters()})
    return trace


def train_on_cpu(task: Task, threads: int, dtype: torch.dtype = torch.float32) -> Trace:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return train(task, "cpu", dtype)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", TASKS)
def test_a_model_trains_step_by_step_as_on_the_cpu(name, device, no_fallback):
    task = TASKS[name]
    one, ours = train_on_cpu(task, 1), train(task, device)
    others = [train_on_cpu(task, 2), train_on_cpu(task, 1, torch.float64)]
    assert one.losses[-1] < one.losses[0], "the task is learnable"
    # Drift grows, so the largest of a run bounds every step; the first steps would allow less than one rounding.
    allowed = 10 * max(abs(a - b) for other in others for a, b in zip(one.losses, other.losses, strict=True))
    for step, (mine, theirs) in enumerate(zip(ours.losses, one.losses, strict=True)):
        assert abs(mine - theirs) <= allowed, f"loss at step {step}: {mine} against {theirs}, {allowed:.2e} allowed"
    for key in one.parameters[0]:
        allowed = 10 * max(
            (a[key] - b[key]).abs().max().item()
            for other in others
            for a, b in zip(one.parameters, other.parameters, strict=True)
        )
        for step in range(STEPS):
            apart = (ours.parameters[step][key] - one.parameters[step][key]).abs().max().item()
            assert apart <= allowed, f"{key} at step {step}: {apart:.2e} apart, {allowed:.2e} allowed"


@pytest.mark.parametrize("name", ["gpt", "residual_net"])
def test_a_model_trains_under_bfloat16_autocast_with_a_gradient_scaler(name, device, no_fallback):
    task = TASKS[name]

    def step(device: str) -> tuple[float, dict[str, Tensor]]:
        torch.manual_seed(0)
        model = task.model().train().to(device)
        batch = tuple(t.to(device) for t in task.batch(torch.Generator().manual_seed(0)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(device, init_scale=1024.0)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = task.loss(model, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 1024.0, "no gradient was infinite"
        return loss.item(), {key: value.detach().cpu() for key, value in model.named_parameters()}

    (our_loss, ours), (their_loss, theirs) = step(device), step("cpu")
    assert our_loss == pytest.approx(their_loss, rel=2e-2)
    for key, value in theirs.items():
        torch.testing.assert_close(ours[key], value, rtol=2e-2, atol=2e-3)
