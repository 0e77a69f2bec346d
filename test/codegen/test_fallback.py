"""Operators without a kernel: run on the CPU and counted, or refused."""

import pytest
import torch


@pytest.fixture(autouse=True)
def counts():
    torch.mybackend.reset_fallbacks()
    yield
    torch.mybackend.reset_fallbacks()


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setenv("MYBACKEND_FALLBACK", "silent")


@pytest.fixture(scope="module")
def operators():
    """A library of operators that exist on the CPU only, whatever we have kernels for."""
    library = torch.library.Library("mb_test_fallback", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.define("add_one_(Tensor(a!)[] xs) -> ()")
    library.define("first_row(Tensor(a) x) -> Tensor(a)")
    library.define("pick(Tensor x, Tensor?[] indices) -> Tensor")
    library.define("noise(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
    library.define("join(Tensor x, Tensor y) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("add_one_", lambda xs: [x.add_(1) for x in xs] and None, "CPU")
    library.impl("first_row", lambda x: x[0], "CPU")
    library.impl("pick", lambda x, indices: x[indices[-1]], "CPU")
    library.impl("noise", torch.rand_like, "CPU")
    library.impl("join", lambda x, y: x + y, "CPU")
    yield torch.ops.mb_test_fallback
    library._destroy()


def test_an_operator_without_kernel_runs_on_the_cpu_and_is_counted(device, operators, silent):
    y = operators.twice(torch.ones(3, device=device))
    assert y.device == torch.device(device)
    assert y.tolist() == [2, 2, 2]
    assert torch.mybackend.fallbacks() == {"mb_test_fallback::twice": 1}


def test_a_list_that_is_written_is_copied_back(device, operators, silent):
    xs = [torch.zeros(2, device=device), torch.ones(1, device=device)]
    operators.add_one_(xs)
    assert [x.tolist() for x in xs] == [[1, 1], [2]]


def test_an_optional_list_may_hold_none(device, operators, silent):
    x = torch.arange(4.0, device=device)
    assert operators.pick(x, [None, torch.tensor([2], device=device)]).tolist() == [2]


def test_the_first_fallback_of_an_operator_warns_with_its_name_and_later_ones_do_not(device, operators, capfd):
    x = torch.ones(3, device=device)
    for _ in range(3):
        operators.join(x, x)
    # torch.ops has no Python warning handler, so the warning goes to stderr.
    assert capfd.readouterr().err.count("'mb_test_fallback::join'") == 1


def test_strict_mode_forbids_the_fallback(device, operators, monkeypatch):
    monkeypatch.setenv("MYBACKEND_FALLBACK", "error")
    with pytest.raises(NotImplementedError, match="Could not run 'mb_test_fallback::twice' .* 'mybackend' backend"):
        operators.twice(torch.ones(3, device=device))
    assert torch.mybackend.fallbacks() == {}


def test_an_unknown_mode_is_an_error(device, operators, monkeypatch):
    monkeypatch.setenv("MYBACKEND_FALLBACK", "sometimes")
    with pytest.raises(ValueError, match="one of warn, silent, error; got 'sometimes'"):
        operators.twice(torch.ones(3, device=device))


@pytest.mark.parametrize(("name", "why"), [("first_row", "a view"), ("noise", "random numbers")])
def test_views_and_random_numbers_are_refused(device, operators, silent, name, why):
    with pytest.raises(NotImplementedError, match=f"mb_test_fallback::{name}.*{why} cannot be made on the CPU"):
        getattr(operators, name)(torch.ones(3, 3, device=device))


def test_tensors_on_two_devices_are_an_error(device, operators, silent):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        operators.join(torch.ones(3, device=device), torch.ones(3))
