"""Every test that takes `engine` runs on upstream's engine first and on ours second: what it expects is what both do.
Where ours does better, the test is in test_improvements.py and runs on ours alone."""

import os

import pytest

import mybackend.autograd

LONG = os.environ.get("MYBACKEND_ENGINE_TESTS") == "long"


@pytest.fixture(params=["stock", "mybackend"])
def engine(request):
    """The name of the engine that runs every backward of the test."""
    with mybackend.autograd.use_engine(request.param):
        yield request.param


@pytest.fixture
def our_engine():
    with mybackend.autograd.use_engine("mybackend"):
        yield


@pytest.fixture(scope="session")
def long_run() -> bool:
    """Whether the forms that take minutes are wanted (MYBACKEND_ENGINE_TESTS=long)."""
    return LONG
