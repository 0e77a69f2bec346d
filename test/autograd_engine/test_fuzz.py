"""Random graphs (random_graphs.py): gradients equal to the last bit, the same order of nodes and hooks, the same
errors, nothing leaked. A few hundred in CI; 10,000 with MYBACKEND_ENGINE_TESTS=long."""

import dataclasses
import gc
import os

import pytest
from autograd_engine.random_graphs import CALLS, FEATURES, Recipe, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mybackend.autograd import use_engine

LONG = os.environ.get("MYBACKEND_ENGINE_TESTS") == "long"


def examples(ci: int) -> settings:
    """`ci` examples, always the same, in CI; in the long form 33 times as many, others in each run."""
    return settings(
        max_examples=33 * ci if LONG else ci,
        derandomize=not LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module", autouse=True)
def cheap_collection():
    """What was alive before is not looked at when a graph's remains are collected."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def compare(recipe: Recipe) -> None:
    with use_engine("stock"):
        expected = run(recipe, gc.collect)
    with use_engine("mybackend"):
        ours = run(recipe, gc.collect)
    assert expected.differences(ours) == []


features = st.frozensets(st.sampled_from(FEATURES))
seeds = st.integers(0, 2**32 - 1)


@examples(300)
@given(
    st.builds(
        Recipe,
        seed=seeds,
        steps=st.integers(1, 120),
        leaves=st.integers(1, 8),
        features=features,
        call=st.sampled_from(CALLS),
        watch=st.booleans(),
        threads=st.booleans(),
    )
)
def test_small_graphs(recipe):
    compare(recipe)


@examples(12)
@given(
    st.builds(
        Recipe,
        seed=seeds,
        steps=st.integers(500, 3000),
        leaves=st.integers(1, 60),
        features=features,
        call=st.sampled_from(CALLS),
        watch=st.booleans(),
    )
)
def test_graphs_of_thousands_of_nodes(recipe):
    compare(recipe)


@examples(60)
@given(
    st.builds(
        Recipe,
        seed=seeds,
        steps=st.integers(1, 150),
        leaves=st.integers(2, 8),
        features=st.frozensets(st.sampled_from(["outputs", "functions", "hooks"])),
        call=st.sampled_from(["backward", "backward inputs", "grad", "roots", "accumulate", "capture inner"]),
        threads=st.booleans(),
        devices=st.sampled_from(
            [("cpu", "mybackend:0"), ("mybackend:0", "mybackend:1"), ("mybackend:1", "cpu", "mybackend:0")]
        ),
    )
)
def test_graphs_over_several_devices(recipe):
    compare(recipe)


@examples(20)
@given(
    st.builds(
        Recipe,
        seed=seeds,
        steps=st.integers(1, 80),
        features=st.frozensets(st.sampled_from(["outputs", "functions", "hooks", "views"])),
        call=st.sampled_from(["backward", "grad", "accumulate"]),
        watch=st.just(True),
        devices=st.just(("meta",)),
    )
)
def test_graphs_on_meta(recipe):
    compare(recipe)


@examples(60)
@given(
    st.builds(
        Recipe,
        seed=seeds,
        steps=st.integers(1, 120),
        features=st.frozensets(st.sampled_from(["outputs", "functions", "hooks", "views", "nested", "checkpoint"])),
        call=st.sampled_from(CALLS),
        watch=st.booleans(),
        devices=st.just(("mybackend:0",)),
    )
)
def test_graphs_on_the_device(recipe):
    """On one thread: upstream's device thread takes a node as soon as the caller has queued it, before another that
    would go first is there, and numbers the nodes that it makes apart from those of the caller (docs/engine.md)."""
    compare(dataclasses.replace(recipe, threads=False))
