"""Streams and events: order, waiting, timing, priorities. Passes with MYBACKEND_HOST_STREAMS=async too."""

import threading

import pytest
import torch


def test_streams_of_the_pool_differ_and_are_current_inside_their_context():
    first, second = torch.mybackend.Stream(), torch.mybackend.Stream()
    assert first != second != torch.mybackend.default_stream()
    with first:
        assert torch.mybackend.current_stream() == first == torch.accelerator.current_stream()
        with torch.mybackend.stream(second):
            assert torch.mybackend.current_stream() == second
        assert torch.mybackend.current_stream() == first
    assert torch.mybackend.current_stream() == torch.mybackend.default_stream()


def test_a_stream_context_of_none_changes_nothing():
    with torch.mybackend.stream(None):
        assert torch.mybackend.current_stream() == torch.mybackend.default_stream()


def test_the_current_stream_belongs_to_the_thread():
    seen = []
    with torch.mybackend.Stream():
        thread = threading.Thread(target=lambda: seen.append(torch.mybackend.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.mybackend.default_stream()]


def test_the_pool_gives_the_same_streams_again():
    assert len({torch.mybackend.Stream().stream_id for _ in range(100)}) == 32


def test_priorities_are_clamped_to_the_drivers_range():
    least, greatest = torch.mybackend.Stream.priority_range()
    assert torch.mybackend.Stream(priority=greatest).priority == greatest
    assert torch.mybackend.Stream(priority=greatest - 100).priority == greatest
    assert torch.mybackend.Stream(priority=least).priority == least == 0


def test_an_external_stream_is_the_stream_of_its_handle():
    stream = torch.mybackend.Stream()
    external = torch.mybackend.ExternalStream(stream.mybackend_stream)
    assert external.mybackend_stream == stream.mybackend_stream
    with external:
        x = torch.ones(3, device="mybackend")
    external.synchronize()
    assert x.tolist() == [1, 1, 1]


def test_wait_stream_orders_a_consumer_after_its_producer():
    producer, consumer = torch.mybackend.Stream(), torch.mybackend.Stream()
    for value in range(50):
        with producer:
            x = torch.zeros(1 << 12, device="mybackend")
            x.fill_(value)
        consumer.wait_stream(producer)
        with consumer:
            y = x + 1
        consumer.synchronize()
        assert y.cpu().unique().tolist() == [value + 1]


def test_events_order_streams_of_two_devices():
    if torch.mybackend.device_count() < 2:
        pytest.skip("needs two devices")
    producer, consumer = torch.mybackend.Stream(0), torch.mybackend.Stream(1)
    with producer:
        x = torch.full((1 << 12,), 7.0, device="mybackend:0")
        event = producer.record_event()
    consumer.wait_event(event)
    with consumer:
        y = x.to("mybackend:1")
    consumer.synchronize()
    assert y.cpu().unique().tolist() == [7]


@pytest.mark.parametrize("make", [torch.mybackend.Event, torch.Event])
def test_an_event_measures_time_between_its_records(make):
    start, end = make(enable_timing=True), make(enable_timing=True)
    start.record()
    torch.ones(1 << 16, device="mybackend").add_(1)
    end.record()
    end.synchronize()
    assert isinstance(end, torch.mybackend.Event) and end.query()
    assert start.elapsed_time(end) > 0


def test_an_unrecorded_event_has_happened_and_has_no_time():
    event = torch.mybackend.Event(enable_timing=True)
    assert event.query()
    event.synchronize()
    with pytest.raises(ValueError, match="Both events must be recorded"):
        event.elapsed_time(torch.mybackend.Event(enable_timing=True))


def test_synchronize_leaves_every_stream_idle():
    streams = [torch.mybackend.Stream() for _ in range(3)]
    for stream in streams:
        with stream:
            torch.ones(1 << 16, device="mybackend").add_(1)
    torch.mybackend.synchronize()
    assert all(stream.query() for stream in streams)
