"""torch.optim steps agree with those on the CPU; states move between devices; GradScaler skips bad steps."""

import copy

import pytest
import torch
from torch import nn

OPTIMIZERS = {
    "Adadelta": dict(lr=1.0),
    "Adafactor": dict(lr=1e-2),
    "Adagrad": dict(lr=1e-2, lr_decay=0.1, weight_decay=0.1),
    "Adam": dict(lr=1e-2, weight_decay=0.1),
    "AdamW": dict(lr=1e-2, weight_decay=0.1),
    "Adamax": dict(lr=1e-2, weight_decay=0.1),
    "ASGD": dict(lr=1e-2, weight_decay=0.1),
    "LBFGS": dict(lr=0.1),
    "NAdam": dict(lr=1e-2, weight_decay=0.1),
    "RAdam": dict(lr=1e-2, weight_decay=0.1),
    "RMSprop": dict(lr=1e-2, momentum=0.9, centered=True),
    "Rprop": dict(lr=1e-2),
    "SGD": dict(lr=1e-2, momentum=0.9, weight_decay=0.1),
}
ALONE = {"LBFGS"}  # no foreach
FUSED = {
    "Adagrad": [{}, dict(maximize=True)],
    "Adam": [{}, dict(amsgrad=True), dict(maximize=True)],
    "AdamW": [{}, dict(amsgrad=True, maximize=True), dict(weight_decay=0.0)],
    "SGD": [{}, dict(nesterov=True), dict(momentum=0.0), dict(dampening=0.5, maximize=True)],
}


def parameters(device, dtype=torch.float32):
    random = torch.Generator().manual_seed(0)
    shapes = [(7,), (40, 30), (3, 2, 5, 5), ()]
    return [nn.Parameter(torch.randn(s, generator=random).to(dtype).to(device)) for s in shapes]


def set_gradients(params, step, scale=1.0):
    random = torch.Generator().manual_seed(step)
    for p in params:
        p.grad = (torch.randn(p.shape, generator=random) * scale).to(p.dtype).to(p.device)


def run(optimizer, params, steps, first=0):
    for step in range(first, first + steps):
        set_gradients(params, step)
        optimizer.step(lambda: torch.tensor(1.0))
    return [p.detach().cpu() for p in params]


def trained(name, device, options, steps=10, dtype=torch.float32):
    params = parameters(device, dtype)
    return run(getattr(torch.optim, name)(params, **{**OPTIMIZERS[name], **options}), params, steps)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps_agree_with_the_cpu(name, device):
    torch.testing.assert_close(trained(name, device, {}), trained(name, "cpu", {}), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - ALONE))
def test_foreach_and_single_tensor_steps_agree(name, device):
    torch.testing.assert_close(
        trained(name, device, dict(foreach=True)), trained(name, device, dict(foreach=False)), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name, options", [(n, o) for n, all in FUSED.items() for o in all])
def test_fused_steps_agree_with_single_tensor_steps(name, options, dtype, device):
    torch.testing.assert_close(
        trained(name, device, dict(fused=True, **options), dtype=dtype),
        trained(name, "cpu", dict(foreach=False, **options), dtype=dtype),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FUSED)
def test_fused_steps_of_half_precision_are_computed_in_float(name, dtype, device):
    torch.testing.assert_close(
        trained(name, device, dict(fused=True), steps=1, dtype=dtype),
        [p.to(dtype) for p in rounded_step(name, dtype)],
    )


def rounded_step(name, dtype):
    """One step in float from parameters and gradients that `dtype` can hold."""
    params = [nn.Parameter(p.detach().float()) for p in parameters("cpu", dtype)]
    set_gradients(params, 0)
    for p in params:
        p.grad = p.grad.to(dtype).float()
    getattr(torch.optim, name)(params, **OPTIMIZERS[name]).step()
    return [p.detach() for p in params]


@pytest.mark.parametrize("lr_device", ["cpu", "device"])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_a_fused_step_takes_its_learning_rate_from_a_tensor(name, lr_device, device):
    lr = torch.tensor(1e-2, device=device if lr_device == "device" else "cpu")
    torch.testing.assert_close(trained(name, device, dict(fused=True, lr=lr)), trained(name, device, dict(fused=True)))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_a_state_moves_from_the_cpu_to_the_device_and_back(name, fused, device):
    def make(where):
        params = parameters(where)
        return getattr(torch.optim, name)(params, **OPTIMIZERS[name], fused=fused), params

    (first, params), (straight, expected) = make("cpu"), make("cpu")
    run(first, params, 3)
    for where, begin in ((device, 3), ("cpu", 6)):
        moved = [nn.Parameter(p.detach().to(where)) for p in params]
        second = getattr(torch.optim, name)(moved, **OPTIMIZERS[name], fused=fused)
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        run(second, moved, 3, begin)
        first, params = second, moved
    torch.testing.assert_close([p.detach() for p in params], run(straight, expected, 9), rtol=1e-5, atol=1e-5)


def scaled_step(device, fused, bad):
    torch.manual_seed(0)
    params = parameters(device)
    optimizer = torch.optim.AdamW(params, lr=1e-2, fused=fused)
    scaler = torch.amp.GradScaler(device.split(":")[0], init_scale=1024.0, growth_interval=2)
    before = [p.detach().clone() for p in params]
    scales = []
    for step in bad:
        scaler.scale(torch.ones((), device=device))
        set_gradients(params, 0, scale=scaler.get_scale())
        if step:
            params[1].grad[3, 4] = torch.inf
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return before, params, scales


@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler_skips_a_step_with_an_inf_and_halves_the_scale(fused, device):
    before, after, scales = scaled_step(device, fused, [True])
    torch.testing.assert_close([p.detach().cpu() for p in after], [p.cpu() for p in before], rtol=0, atol=0)
    assert scales == [512.0]


@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler_unscales_steps_and_grows_the_scale_after_good_ones(fused, device):
    _, after, scales = scaled_step(device, fused, [False, False, False])
    assert scales == [1024.0, 2048.0, 2048.0]
    expected = parameters("cpu")
    optimizer = torch.optim.AdamW(expected, lr=1e-2)
    for _ in range(3):
        set_gradients(expected, 0)
        optimizer.step()
    torch.testing.assert_close([p.detach().cpu() for p in after], [p.detach() for p in expected], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_unscaling_reports_what_is_not_finite_and_reaches_strided_gradients(dtype, device):
    grads = [torch.ones(5000, dtype=dtype, device=device), torch.ones(6, 4, dtype=dtype, device=device)[:, ::2]]
    found, inverse = torch.zeros(1, device=device), torch.full((1,), 0.5, device=device)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert found.item() == 0 and all((g.cpu() == 0.5).all() for g in grads)
    for position, bad in ((4999, torch.nan), (0, torch.inf)):
        found.zero_()
        grads[0][position] = bad
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
        assert found.item() == 1
        grads[0].fill_(1)


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clip_grad_norm_agrees_with_the_cpu(norm_type, foreach, device):
    def clipped(where):
        params = parameters(where)
        set_gradients(params, 0)
        norm = nn.utils.clip_grad_norm_(params, 0.5, norm_type, foreach=foreach)
        return norm.cpu(), [p.grad.cpu() for p in params]

    torch.testing.assert_close(clipped(device), clipped("cpu"), rtol=1e-5, atol=1e-6)


def test_a_fused_step_refuses_gradients_of_another_dtype(device):
    params = [torch.ones(3, device=device)]
    grads = [torch.ones(3, device=device, dtype=torch.float64)]
    state = [torch.zeros(3, device=device)]
    with pytest.raises(RuntimeError, match="must have same dtype, device, and layout"):
        torch._fused_adam_(
            params,
            grads,
            state,
            [torch.zeros(3, device=device)],
            [],
            [torch.ones((), device=device)],
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            weight_decay=0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
