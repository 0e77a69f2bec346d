"""Moving a module keeps its parameters: the same objects, still tied, known to an optimizer made before."""

import torch
from torch import nn


def tied():
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7, bias=False))
    model[1].weight = model[0].weight
    return model


def test_parameters_stay_the_same_objects_there_and_back(device):
    model = nn.Linear(3, 2)
    before = list(model.parameters())
    model.to(device)
    assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
    assert all(p.device == torch.device(device) and p.requires_grad and p.is_leaf for p in before)
    model.cpu()
    assert all(a is b and a.device.type == "cpu" for a, b in zip(model.parameters(), before, strict=True))


def test_tied_weights_stay_tied(device):
    model = tied().to(device)
    assert model[0].weight is model[1].weight
    model(torch.tensor([1, 2], device=device)).sum().backward()
    assert model[0].weight.grad is model[1].weight.grad is not None


def test_an_optimizer_made_before_the_move_trains_the_moved_parameters(device):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to(device)
    start = model.weight.detach().cpu().clone()
    model(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()
    torch.testing.assert_close(model.weight.detach().cpu(), start - 0.1)


def test_gradients_move_along(device):
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    gradient = model.weight.grad
    model.to(device)
    assert model.weight.grad is gradient and gradient.device == torch.device(device)
    assert (gradient.cpu() == 1).all()


def test_a_module_moves_while_a_graph_of_its_is_alive(device):
    model = nn.Linear(3, 2).to(device)
    loss = model(torch.ones(1, 3, device=device)).sum()
    loss.backward()
    model.cpu()
    model(torch.ones(1, 3)).sum().backward()
    assert model.weight.grad.device.type == "cpu" and (model.weight.grad == 2).all()
    assert loss.device == torch.device(device)


def test_to_changes_device_and_dtype_at_once(device):
    model = nn.BatchNorm1d(3).to(device, torch.float64)
    assert model.weight.dtype == model.running_mean.dtype == torch.float64
    assert model.num_batches_tracked.dtype == torch.int64
    assert {t.device for t in (*model.parameters(), *model.buffers())} == {torch.device(device)}


def test_to_empty_and_meta_initialisation_work(device):
    with torch.device("meta"):
        model = nn.Linear(3, 2)
    model.to_empty(device=device)
    nn.init.ones_(model.weight)
    assert model.weight.cpu().sum() == 6


def test_a_recurrent_module_moves_with_its_flat_weights(device):
    model = nn.LSTM(3, 4)
    model.to(device)
    assert all(a is b for a, b in zip(model._flat_weights, model.parameters(), strict=True))
    assert model(torch.zeros(2, 1, 3, device=device))[0].shape == (2, 1, 4)
