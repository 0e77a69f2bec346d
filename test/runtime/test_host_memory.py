"""Pinned memory: recognised, reused only after the copies that use it, and no burden for plain CPU tensors."""

import torch


def test_pin_memory_makes_a_pinned_copy():
    x = torch.arange(10.0)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned()
    assert torch.equal(pinned, x) and pinned.device.type == "cpu"
    assert pinned.pin_memory().data_ptr() == pinned.data_ptr()


def test_a_tensor_can_be_made_pinned_and_its_views_are():
    x = torch.empty(100, pin_memory=True)
    assert x.is_pinned() and x[50:].is_pinned()


def test_non_blocking_copies_arrive():
    x = torch.arange(1 << 14, dtype=torch.float32).pin_memory()
    y = x.to("mybackend", non_blocking=True)
    back = torch.empty_like(x, pin_memory=True)
    back.copy_(y, non_blocking=True)
    torch.mybackend.synchronize()
    assert torch.equal(back, x)


def test_pageable_non_blocking_copies_have_completed_on_return():
    x = torch.ones(1 << 14, device="mybackend")
    pageable = torch.empty(1 << 14)  # the result of x.to("cpu", non_blocking=True) would be pinned
    for value in range(20):
        x.fill_(value)
        assert pageable.copy_(x, non_blocking=True).unique().tolist() == [value]


def test_pinned_memory_is_not_reused_before_its_copy_is_done():
    copies = []
    for value in range(64):
        staging = torch.full((1 << 14,), float(value)).pin_memory()
        copies.append(staging.to("mybackend", non_blocking=True))
        del staging
    assert [copy[0].item() for copy in copies] == list(range(64))
    assert [copy[-1].item() for copy in copies] == list(range(64))


def test_pinned_memory_is_counted_and_cached():
    torch.accelerator.empty_host_cache() if hasattr(torch.accelerator, "empty_host_cache") else None
    before = torch.mybackend.host_memory_stats()
    x = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    stats = torch.mybackend.host_memory_stats()
    assert stats["active_bytes.current"] - before["active_bytes.current"] == 8192
    address = x.data_ptr()
    del x
    again = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    assert again.data_ptr() == address


def test_a_data_loader_pins_its_batches():
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
        assert batch.is_pinned()
