"""Devices: count, current device, contexts, and torch.accelerator as the same thing in general words."""

import pytest
import torch

device_count = torch.mybackend.device_count()
needs_two = pytest.mark.skipif(device_count < 2, reason="needs two devices (MYBACKEND_HOST_DEVICES=2)")


def test_the_accelerator_is_mybackend():
    assert torch.accelerator.current_accelerator() == torch.device("mybackend")
    assert torch.accelerator.device_count() == device_count
    assert torch.accelerator.is_available() and torch.mybackend.is_available()


@needs_two
def test_a_device_context_restores_the_device_also_after_an_error():
    assert torch.mybackend.current_device() == 0
    with pytest.raises(KeyError), torch.mybackend.device(1):
        assert torch.empty(1, device="mybackend").device.index == 1
        assert torch.accelerator.current_device_index() == 1
        raise KeyError
    assert torch.mybackend.current_device() == 0


@needs_two
def test_accelerator_device_index_is_a_device_context():
    with torch.accelerator.device_index(1):
        assert torch.mybackend.current_device() == 1
    assert torch.mybackend.current_device() == 0


@needs_two
def test_device_of_follows_a_tensor_and_ignores_the_cpu():
    with torch.mybackend.device_of(torch.empty(1, device="mybackend:1")):
        assert torch.mybackend.current_device() == 1
        with torch.mybackend.device_of(torch.empty(1)):
            assert torch.mybackend.current_device() == 1


@pytest.mark.parametrize("use", [torch.mybackend.set_device, torch.accelerator.set_device_index])
def test_a_device_out_of_range_is_an_error(use):
    with pytest.raises(RuntimeError, match="out of range"):
        use(device_count)


def test_a_tensor_on_a_device_out_of_range_is_an_error():
    with pytest.raises(RuntimeError, match="out of range"):
        torch.empty(1, device=f"mybackend:{device_count}")


def test_properties_describe_the_device():
    properties = torch.mybackend.get_device_properties()
    assert properties.name == torch.mybackend.get_device_name()
    assert torch.mybackend.get_device_capability() == (properties.major, properties.minor)
    assert properties.total_memory > 0 and properties.multi_processor_count > 0
    assert f"name='{properties.name}'" in repr(properties)


def test_capability_lists_what_tensors_can_hold():
    if not hasattr(torch.accelerator, "get_device_capability"):
        pytest.skip("torch.accelerator.get_device_capability came with torch 2.11")
    types = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.complex64, torch.bool} <= types
    assert torch.qint8 not in types


def test_module_moves_in_place_and_keeps_its_parameters():
    layer = torch.nn.Linear(2, 3)
    weight, before = layer.weight, layer.weight.detach().clone()
    layer.mybackend()
    assert layer.weight is weight and weight.is_mybackend
    torch.testing.assert_close(layer.weight.detach().cpu(), before)
