"""Tensors of the device leave and enter the process: torch.save, pickle, deepcopy, DLPack."""

import copy
import io
import pickle

import pytest
import torch


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(4, 3)


@pytest.mark.parametrize("location", [None, "cpu", "mybackend", "mybackend:1", torch.device("mybackend", 0)])
def test_a_state_dict_loads_to_any_location(x, location):
    if location == "mybackend:1" and torch.mybackend.device_count() < 2:
        pytest.skip("needs two devices")
    file = io.BytesIO()
    torch.save({"weight": x.to("mybackend")}, file)
    file.seek(0)
    weight = torch.load(file, map_location=location, weights_only=True)["weight"]
    assert weight.device.type == torch.device(location or "mybackend").type
    assert torch.equal(weight.cpu(), x)


def test_loading_to_a_device_out_of_range_is_an_error(x):
    file = io.BytesIO()
    torch.save(x.to("mybackend"), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="device"):
        torch.load(file, map_location="mybackend:63")


def test_saved_views_share_a_storage_again(x):
    y = x.to("mybackend")
    file = io.BytesIO()
    torch.save([y, y[1:]], file)
    file.seek(0)
    whole, part = torch.load(file, weights_only=True)
    assert part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()


def test_pickle_and_deepcopy_keep_device_values_and_grad(x):
    y = x.to("mybackend").requires_grad_()
    for again in (pickle.loads(pickle.dumps(y)), copy.deepcopy(y)):
        assert again.is_mybackend and again.requires_grad
        assert torch.equal(again.detach().cpu(), x)
        assert again.data_ptr() != y.data_ptr()


def test_deepcopy_of_a_module_with_an_optimizer_state(x):
    layer = torch.nn.Linear(3, 2, device="mybackend")
    again = copy.deepcopy(layer)
    again.load_state_dict({name: value.cpu() for name, value in layer.state_dict().items()})
    assert again.weight.is_mybackend and torch.equal(again.weight.cpu(), layer.weight.cpu())


def test_dlpack_shares_memory_with_itself(x):
    y = x.to("mybackend")
    assert y.__dlpack_device__()[1] == 0
    again = torch.from_dlpack(y)
    assert again.device == y.device and again.data_ptr() == y.data_ptr()


def test_storages_know_their_device(x):
    y = x.to("mybackend")
    assert y.untyped_storage().device == y.device
    assert torch.equal(torch.frombuffer(bytes(y.untyped_storage().cpu()), dtype=torch.float32), x.flatten())
