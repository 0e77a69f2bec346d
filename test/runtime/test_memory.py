"""The caching allocator: statistics, reuse by streams, limits, out of memory."""

import gc

import pytest
import torch

MiB = 1 << 20


@pytest.fixture(autouse=True)
def _clean():
    gc.collect()
    torch.mybackend.synchronize()
    torch.mybackend.empty_cache()
    torch.mybackend.reset_peak_memory_stats()
    yield


def empty(nbytes: int) -> torch.Tensor:
    return torch.empty(nbytes, dtype=torch.uint8, device="mybackend")


def test_blocks_are_rounded_to_512_bytes():
    before = torch.mybackend.memory_allocated()
    small = empty(1)
    assert torch.mybackend.memory_allocated() - before == 512
    del small
    assert torch.mybackend.memory_allocated() == before


@pytest.mark.parametrize(("request_", "segment"), [(1, 2 * MiB), (2 * MiB, 20 * MiB), (11 * MiB, 12 * MiB)])
def test_segments_have_upstreams_sizes(request_, segment):
    before = torch.mybackend.memory_reserved()
    with torch.mybackend.stream(
        torch.mybackend.Stream()
    ):  # whose blocks no tensor of another test shares a segment with
        kept = empty(request_)
    assert torch.mybackend.memory_reserved() - before == segment
    del kept


def test_freed_memory_is_used_again():
    first = empty(3 * MiB)
    address = first.data_ptr()
    del first
    assert empty(3 * MiB).data_ptr() == address


def test_free_neighbours_merge():
    pieces = [empty(256 * 1024) for _ in range(4)]
    address = min(piece.data_ptr() for piece in pieces)
    pieces.clear()
    assert empty(MiB).data_ptr() == address


def test_memory_of_one_stream_is_not_used_by_another():
    first = empty(3 * MiB)
    address = first.data_ptr()
    del first
    with torch.mybackend.Stream():
        assert empty(3 * MiB).data_ptr() != address


def test_peak_is_the_most_that_was_in_use():
    base = torch.mybackend.memory_allocated()
    kept = empty(4 * MiB)
    del kept
    assert torch.mybackend.max_memory_allocated() - base == 4 * MiB
    torch.mybackend.reset_peak_memory_stats()
    assert torch.mybackend.max_memory_allocated() == base


def test_statistics_have_the_keys_of_torch_cuda_and_agree_with_torch_accelerator():
    stats = torch.mybackend.memory_stats()
    for kind in ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes",
                 "allocation", "segment", "active", "inactive_split"):  # fmt: skip
        for pool in ("all", "small_pool", "large_pool"):
            for column in ("current", "peak", "allocated", "freed"):
                assert f"{kind}.{pool}.{column}" in stats
    assert {"num_alloc_retries", "num_ooms", "max_split_size", "num_sync_all_streams"} <= stats.keys()
    assert stats == torch.accelerator.memory_stats()


def test_allocated_less_freed_is_current():
    kept = [empty(1000), empty(3 * MiB)]
    torch.mybackend.reset_accumulated_memory_stats()
    before = torch.mybackend.memory_stats()
    kept.pop()
    kept.append(empty(5000))
    stats = torch.mybackend.memory_stats()
    for pool in ("all", "small_pool", "large_pool"):
        name = f"allocated_bytes.{pool}"
        change = stats[f"{name}.current"] - before[f"{name}.current"]
        assert stats[f"{name}.allocated"] - stats[f"{name}.freed"] == change


def test_an_untouched_device_has_zero_statistics():
    last = torch.mybackend.device_count() - 1
    torch.mybackend.reset_peak_memory_stats(last)
    assert torch.mybackend.memory_stats(last)["num_ooms"] == 0


def test_record_stream_keeps_memory_until_the_stream_is_done():
    stream = torch.mybackend.Stream()
    x = empty(3 * MiB)
    address = x.data_ptr()
    x.record_stream(stream)
    del x
    stream.synchronize()
    assert torch.mybackend.memory_stats()["active_bytes.all.current"] >= torch.mybackend.memory_allocated()
    assert empty(3 * MiB).data_ptr() == address  # the event has happened, so the block is free again


def test_the_snapshot_accounts_for_all_reserved_memory():
    kept = empty(5 * MiB)
    segments = torch.mybackend.memory_snapshot()
    assert sum(s["total_size"] for s in segments if s["device"] == 0) == torch.mybackend.memory_reserved()
    (block,) = [b for s in segments for b in s["blocks"] if b["address"] == kept.data_ptr()]
    assert (block["state"], block["requested_size"]) == ("active_allocated", 5 * MiB)
    for segment in segments:
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]


def test_empty_cache_gives_free_segments_back():
    del_me = empty(30 * MiB)
    del del_me
    assert torch.mybackend.memory_reserved() >= 30 * MiB
    torch.accelerator.empty_cache()
    assert torch.mybackend.memory_reserved() < 30 * MiB


def test_out_of_memory_has_the_usual_words_and_leaves_the_process_working():
    ooms = torch.mybackend.memory_stats()["num_ooms"]
    with pytest.raises(torch.OutOfMemoryError, match=r"out of memory\. Tried to allocate 1024\.00 GiB\. Device 0"):
        empty(1 << 40)
    assert torch.mybackend.memory_stats()["num_ooms"] == ooms + 1
    assert torch.ones(3, device="mybackend").tolist() == [1, 1, 1]


def test_cached_memory_is_given_back_before_running_out():
    total = torch.mybackend.mem_get_info()[1]
    cached = empty(64 * MiB)
    del cached
    reserved = torch.mybackend.memory_reserved()
    torch.mybackend.set_per_process_memory_fraction((reserved + 32 * MiB) / total)
    try:
        kept = empty(80 * MiB)  # fits only without the cached 64 MiB
        assert kept.numel() == 80 * MiB
        with pytest.raises(torch.OutOfMemoryError, match="allowed"):
            empty(64 * MiB)
    finally:
        torch.mybackend.set_per_process_memory_fraction(1.0)


def test_empty_tensors_take_no_memory():
    before = torch.mybackend.memory_stats()["allocation.all.current"]
    assert torch.empty(0, device="mybackend").data_ptr() == 0
    assert torch.mybackend.memory_stats()["allocation.all.current"] == before


def test_memory_for_other_libraries_is_counted_and_given_back():
    before = torch.mybackend.memory_allocated()
    address = torch.mybackend.caching_allocator_alloc(1000)
    assert torch.mybackend.memory_allocated() - before == 1024
    torch.mybackend.caching_allocator_delete(address)
    assert torch.mybackend.memory_allocated() == before
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.mybackend.caching_allocator_delete(address)


def test_the_summary_is_a_table_of_all_pools():
    assert "large pool" in torch.mybackend.memory_summary()
    assert "large pool" not in torch.mybackend.memory_summary(abbreviated=True)


def test_resizing_a_storage_keeps_its_bytes():
    x = torch.arange(4.0).to("mybackend")
    x.untyped_storage().resize_(1024)
    assert x.untyped_storage().nbytes() == 1024
    assert x.tolist() == [0, 1, 2, 3]
