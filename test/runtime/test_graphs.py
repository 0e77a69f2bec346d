"""Graphs: captured once, replayed on new values, with memory that stays theirs."""

import pytest
import torch


def captured() -> tuple[torch.mybackend.Graph, torch.Tensor, torch.Tensor]:
    x = torch.zeros(64, device="mybackend")
    graph = torch.mybackend.Graph()
    with torch.mybackend.graph(graph):
        y = x * 2 + 1
    return graph, x, y


def test_a_replay_reads_the_new_values():
    graph, x, y = captured()
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.cpu().unique().tolist() == [2 * value + 1]


def test_memory_of_a_graph_is_not_given_to_others():
    graph, x, y = captured()
    others = [torch.full((64,), -1.0, device="mybackend") for _ in range(100)]
    x.fill_(3)
    graph.replay()
    assert y.cpu().unique().tolist() == [7]
    assert all(other.cpu().unique().tolist() == [-1] for other in others)


def test_graphs_can_share_a_pool():
    pool = torch.mybackend.graph_pool_handle()
    x = torch.ones(8, device="mybackend")
    first, second = torch.mybackend.Graph(), torch.mybackend.Graph()
    with torch.mybackend.graph(first, pool=pool):
        y = x + 1
    with torch.mybackend.graph(second, pool=pool):
        z = y * 2
    first.replay()
    second.replay()
    assert first.pool() == second.pool() == pool and z.tolist() == [4] * 8


def test_capture_on_the_default_stream_is_refused():
    with pytest.raises(RuntimeError, match="non-default stream"):
        torch.mybackend.Graph().capture_begin()


def test_replay_before_capture_is_an_error():
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        torch.mybackend.Graph().replay()


def test_random_numbers_in_a_capture_are_refused():
    with pytest.raises(RuntimeError, match="while a graph is captured"), torch.mybackend.graph(torch.mybackend.Graph()):
        torch.rand(3, device="mybackend")
    assert not torch.mybackend.is_current_stream_capturing()
    assert torch.rand(3, device="mybackend").numel() == 3


def test_torch_accelerator_graph_is_served():
    if not hasattr(torch.accelerator, "Graph"):
        pytest.skip("torch.accelerator.Graph came with torch 2.13")
    x = torch.zeros(8, device="mybackend")
    graph = torch.accelerator.Graph()
    with torch.Stream("mybackend"), graph:
        y = x + 1
    x.fill_(4)
    graph.replay()
    torch.accelerator.synchronize()
    assert y.tolist() == [5] * 8
