"""Range factories: the values, dtypes and errors of torch's CPU."""

import pytest
import torch

CALLS = {
    "arange int": lambda d: torch.arange(3, 20, 4, device=d),
    "arange negative step": lambda d: torch.arange(5, -5, -3, device=d),
    "arange float": lambda d: torch.arange(0.5, 3, 0.25, device=d),
    "arange half": lambda d: torch.arange(0, 300, dtype=torch.float16, device=d),
    "arange empty": lambda d: torch.arange(3, 3, device=d),
    "arange beyond 2^53": lambda d: torch.arange(2**60, 2**60 + 5, device=d),
    "linspace": lambda d: torch.linspace(-1, 1, 101, device=d),
    "linspace one": lambda d: torch.linspace(3, 9, 1, device=d),
    "linspace int": lambda d: torch.linspace(0, 10, 7, dtype=torch.int64, device=d),
    "linspace double": lambda d: torch.linspace(0, 1, 1000, dtype=torch.float64, device=d),
    "linspace complex": lambda d: torch.linspace(0, 1 + 2j, 5, dtype=torch.complex64, device=d),
    "logspace": lambda d: torch.logspace(-2, 2, 9, device=d),
    "logspace base 2": lambda d: torch.logspace(0, 8, 9, base=2, dtype=torch.float64, device=d),
    "eye": lambda d: torch.eye(4, device=d),
    "eye wide": lambda d: torch.eye(3, 5, dtype=torch.int32, device=d),
    "eye empty": lambda d: torch.eye(0, device=d),
    "full": lambda d: torch.full((2, 3), 7, device=d),
    "ones bool": lambda d: torch.ones(3, dtype=torch.bool, device=d),
    "zeros complex": lambda d: torch.zeros(2, 2, dtype=torch.complex64, device=d),
    "tensor": lambda d: torch.tensor([[1.5, 2], [3, 4]], device=d),
    "scalar tensor": lambda d: torch.scalar_tensor(2.5, device=d),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_factory_gives_what_the_cpu_gives(device, no_fallback, name):
    ours, theirs = CALLS[name](device), CALLS[name]("cpu")
    assert ours.device.type == torch.device(device).type
    assert ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
    torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.arange(0, 5, 0, device=d),
        lambda d: torch.arange(0, 5, -1, device=d),
        lambda d: torch.linspace(0, 1, -1, device=d),
        lambda d: torch.eye(-1, device=d),
        lambda d: torch.logspace(0, 1, -3, device=d),
    ],
)
def test_wrong_arguments_get_the_errors_of_the_cpu(device, call):
    with pytest.raises(RuntimeError) as theirs:
        call("cpu")
    with pytest.raises(RuntimeError) as ours:
        call(device)
    assert str(ours.value) == str(theirs.value)


def test_arange_writes_into_a_strided_out(device):
    base = torch.zeros(10, device=device)
    torch.arange(5, out=base[::2])
    assert base.tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
