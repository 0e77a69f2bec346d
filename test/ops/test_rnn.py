"""nn.RNN, nn.LSTM and nn.GRU: outputs and gradients of torch's CPU, without a fallback."""

import copy

import pytest
import torch
from torch import nn

MODULES = {
    "rnn": lambda: nn.RNN(6, 5),
    "lstm": lambda: nn.LSTM(6, 5),
    "lstm of two layers, batch first": lambda: nn.LSTM(6, 5, num_layers=2, batch_first=True),
    "lstm of both directions": lambda: nn.LSTM(6, 5, bidirectional=True),
    "lstm without biases": lambda: nn.LSTM(6, 5, bias=False),
    "lstm with a projection": lambda: nn.LSTM(6, 5, proj_size=3),
    "gru": lambda: nn.GRU(6, 5),
    "gru of two layers": lambda: nn.GRU(6, 5, num_layers=2),
    "gru without biases": lambda: nn.GRU(6, 5, bias=False),
}


def both(name: str, device: str) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    module = MODULES[name]()
    return copy.deepcopy(module).to(device), module


@pytest.mark.parametrize("name", MODULES)
def test_outputs_and_gradients_are_the_cpus(device, no_fallback, name):
    ours, theirs = both(name, device)
    x = torch.randn(7, 4, 6)
    results = []
    for module, place in ((ours, device), (theirs, "cpu")):
        leaf = x.to(place).requires_grad_()
        out, _ = module(leaf)
        torch.manual_seed(1)
        out.backward(torch.randn(out.shape).to(place))
        results.append([out, leaf.grad, *(p.grad for p in module.parameters())])
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine.detach().cpu(), other.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_a_cell_is_the_cpus(device, no_fallback, cell):
    torch.manual_seed(0)
    theirs = cell(6, 5)
    ours = copy.deepcopy(theirs).to(device)
    x = torch.randn(3, 6)
    mine, other = ours(x.to(device)), theirs(x)
    if isinstance(other, torch.Tensor):
        mine, other = (mine,), (other,)
    for left, right in zip(mine, other, strict=True):
        torch.testing.assert_close(left.cpu(), right)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_an_lstm_of_another_dtype_runs(device, no_fallback, dtype):
    torch.manual_seed(0)
    theirs = nn.LSTM(6, 5).to(dtype)
    ours = copy.deepcopy(theirs).to(device)
    x = torch.randn(7, 4, 6, dtype=dtype)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(ours(x.to(device))[0].cpu(), theirs(x)[0], **tolerance)


def test_a_packed_sequence_runs(device):
    torch.manual_seed(0)
    theirs = nn.LSTM(6, 5)
    ours = copy.deepcopy(theirs).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(7, 3, 6), [7, 5, 2])
    torch.testing.assert_close(ours(packed.to(device))[0].data.cpu(), theirs(packed)[0].data)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_a_layer_has_second_derivatives(device, no_fallback, layer):
    def second(place: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        module = layer(4, 3).double().to(place)
        x = torch.randn(3, 2, 4, dtype=torch.float64).to(place).requires_grad_()
        (first,) = torch.autograd.grad(module(x)[0].square().sum(), x, create_graph=True)
        return list(torch.autograd.grad(first.square().sum(), [x, *module.parameters()]))

    for ours, theirs in zip(second(device), second("cpu"), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


def test_a_layer_in_inference_mode_gives_what_training_gives(device, no_fallback):
    module = nn.LSTM(6, 5).to(device)
    x = torch.randn(7, 4, 6).to(device)
    with torch.inference_mode():
        ours = module(x)[0]
    torch.testing.assert_close(ours.cpu(), module(x)[0].detach().cpu())


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_a_hidden_state_of_the_wrong_size_gets_upstreams_error(device, name):
    module = MODULES[name]().to(device)
    state = torch.zeros(1, 3, 5, device=device)
    with pytest.raises(RuntimeError, match="Expected hidden"):
        module(torch.ones(7, 4, 6, device=device), (state, state) if name == "lstm" else state)
