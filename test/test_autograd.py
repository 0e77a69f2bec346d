"""Autograd's rules hold on the device as on the CPU: versions, modes, detaching, checkpoints, hooks, higher orders."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint


@pytest.fixture
def x(device) -> torch.Tensor:
    return torch.tensor([0.5, -1.0, 2.0], device=device, requires_grad=True)


def message_of(act, x: torch.Tensor) -> str:
    """What `act` raises, without what names the device."""
    with pytest.raises(RuntimeError) as error:
        act(x)
    return str(error.value).replace("mybackendFloatType", "torch.FloatTensor")


def saved_value_overwritten(x: torch.Tensor) -> None:
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def leaf_overwritten(x: torch.Tensor) -> None:
    x.add_(1)


def view_of_leaf_overwritten(x: torch.Tensor) -> None:
    x[0].mul_(2)


def one_of_several_views_overwritten(x: torch.Tensor) -> None:
    x.clone().unbind(0)[0].mul_(2)


def backward_twice(x: torch.Tensor) -> None:
    y = x.exp().sum()
    y.backward()
    y.backward()


def backward_of_no_scalar(x: torch.Tensor) -> None:
    x.exp().backward()


def inference_tensor_saved(x: torch.Tensor) -> None:
    with torch.inference_mode():
        y = x.detach() * 2
    (x * y).sum().backward()


def inference_tensor_overwritten(x: torch.Tensor) -> None:
    with torch.inference_mode():
        y = x.detach() * 2
    y.add_(1)


ERRORS = [
    saved_value_overwritten,
    leaf_overwritten,
    view_of_leaf_overwritten,
    one_of_several_views_overwritten,
    backward_twice,
    backward_of_no_scalar,
    inference_tensor_saved,
    inference_tensor_overwritten,
]


@pytest.mark.parametrize("act", ERRORS, ids=lambda act: act.__name__)
def test_a_broken_rule_is_reported_in_the_words_used_on_the_cpu(act, x):
    on_cpu = x.detach().cpu().requires_grad_()
    assert message_of(act, x) == message_of(act, on_cpu)


def test_the_version_counts_every_write_and_is_shared_by_views(device):
    x = torch.zeros(4, device=device)
    view = x[1:]
    for count, write in enumerate([lambda: x.add_(1), lambda: view.zero_(), lambda: x.copy_(torch.ones(4))], start=1):
        write()
        assert x._version == view._version == count
    assert torch.abs(x, out=x)._version == 4
    assert x.detach()._version == 4


def test_no_grad_and_inference_mode_record_nothing(x):
    with torch.no_grad():
        y = x * 2
        assert not y.requires_grad and not y.is_inference()
    with torch.inference_mode():
        y = x * 2
        assert not y.requires_grad and y.is_inference()
    assert (x * 2).requires_grad


def test_detach_shares_memory_and_stops_gradients(x):
    detached = x.detach()
    assert detached.data_ptr() == x.data_ptr() and not detached.requires_grad
    (x * detached).sum().backward()
    assert torch.equal(x.grad, detached)


def test_gradients_accumulate_in_place_on_the_device(x, device):
    x.exp().sum().backward()
    first = x.grad
    x.exp().sum().backward()
    assert x.grad is first and first.device == torch.device(device)
    torch.testing.assert_close(first.cpu(), 2 * x.detach().cpu().exp())


def test_writes_in_place_and_through_views_are_differentiated(x):
    def run(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y[1:].mul_(3)
        y.sin_()
        (gradient,) = torch.autograd.grad(y.square().sum(), x)
        return gradient

    torch.testing.assert_close(run(x).cpu(), run(x.detach().cpu().requires_grad_()))


def test_second_derivatives_and_forward_mode_agree_with_backward(device):
    x = torch.randn(5, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: t.tanh() * t.sigmoid(), x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda t: t.tanh() * t.exp(), x)


def test_hooks_see_gradients_and_may_replace_them(x):
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.device) or gradient * 10)
    x.sum().backward()
    assert seen == [x.device] and x.grad.tolist() == [10, 10, 10]


def test_anomaly_mode_names_the_forward_that_made_nan(device):
    x = torch.zeros(2, device=device, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="returned nan values"):
        (x.sqrt() * 0).sum().backward()


def test_gradients_cross_devices(x):
    on_cpu = torch.ones(3, requires_grad=True)
    (x.cpu() * on_cpu + on_cpu.to(x.device).cpu()).sum().backward()
    assert x.grad.device == x.device and on_cpu.grad.device.type == "cpu"
    assert torch.equal(on_cpu.grad, x.detach().cpu() + 1)


@pytest.mark.parametrize("use_reentrant", [True, False], ids=["reentrant", "non-reentrant"])
def test_a_checkpoint_with_dropout_has_the_gradients_of_the_plain_run(use_reentrant, device):
    torch.manual_seed(3)
    block = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.5), torch.nn.GELU(), torch.nn.Dropout(0.3))
    block.to(device)
    x = torch.randn(8, 16).to(device)

    def gradients(run) -> list[torch.Tensor]:
        block.zero_grad()
        torch.manual_seed(7)
        argument = x.clone().requires_grad_()
        run(argument).square().sum().backward()
        after = torch.rand(4, device=device)  # the generator goes on as without a checkpoint
        return [argument.grad, *(p.grad.clone() for p in block.parameters()), after]

    plain = gradients(block)
    again = gradients(lambda t: checkpoint(block, t, use_reentrant=use_reentrant))
    for ours, expected in zip(again, plain, strict=True):
        assert torch.equal(ours, expected)
