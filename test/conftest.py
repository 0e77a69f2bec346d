"""Fixtures every test shares. The device under test is MYBACKEND_TEST_DEVICE (default mybackend:0), so that the same
files run on another device index and under another driver."""

import os

import pytest
import torch

import mybackend  # noqa: F401  (registers the device when it is not installed with its entry point)


@pytest.fixture(scope="session")
def device() -> str:
    return os.environ.get("MYBACKEND_TEST_DEVICE", "mybackend:0")


@pytest.fixture
def no_fallback():
    """The test fails when an operator ran on the CPU."""
    torch.mybackend.reset_fallbacks()
    yield
    assert torch.mybackend.fallbacks() == {}
