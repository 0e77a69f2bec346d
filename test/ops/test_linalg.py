"""Linear algebra over LAPACK, distances and Fourier transforms: the results and errors of torch's CPU."""

import pytest
import torch


def square(n: int = 5, *batch: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(*batch, n, n, dtype=dtype)


def positive(n: int = 5, *batch: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    a = square(n, *batch, dtype=dtype)
    return a @ a.mH + n * torch.eye(n, dtype=dtype)


CALLS = {
    "cholesky": (torch.linalg.cholesky, lambda: (positive(4, 2),)),
    "cholesky_inverse": (torch.cholesky_inverse, lambda: (torch.linalg.cholesky(positive()),)),
    "cholesky_solve": (torch.cholesky_solve, lambda: (square()[:, :2], torch.linalg.cholesky(positive()))),
    "det": (torch.linalg.det, lambda: (square(4, 3),)),
    "slogdet": (torch.linalg.slogdet, lambda: (square(4, 3),)),
    "eigh": (torch.linalg.eigh, lambda: (positive(),)),
    "eigvals": (lambda a: torch.linalg.eigvals(a).abs().sort().values, lambda: (square(),)),
    "inv": (torch.linalg.inv, lambda: (positive(4, 2),)),
    "lstsq": (lambda a, b: torch.linalg.lstsq(a, b).solution, lambda: (square()[:, :3], square()[:, :2])),
    "lu": (torch.linalg.lu, lambda: (square(4, 2),)),
    "lu_factor": (torch.linalg.lu_factor, lambda: (square(4, 2),)),
    "lu_solve": (
        lambda a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b),
        lambda: (square(), square()[:, :2]),
    ),
    "ldl": (torch.linalg.ldl_factor, lambda: (positive(),)),
    "matrix_exp": (torch.linalg.matrix_exp, lambda: (square(3),)),
    "pinv": (torch.linalg.pinv, lambda: (square()[:, :3],)),
    "qr": (torch.linalg.qr, lambda: (square()[:, :3],)),
    "solve": (torch.linalg.solve, lambda: (square(), square()[:, :2])),
    "solve_triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), lambda: (positive(), square())),
    "svdvals": (torch.linalg.svdvals, lambda: (square()[:, :3],)),
    "cross": (torch.linalg.cross, lambda: (square(3), square(3).flip(0))),
    "cdist": (torch.cdist, lambda: (square(4, 2), square(4, 2)[:, :3])),
    "cdist 1": (lambda a, b: torch.cdist(a, b, p=1), lambda: (square(4), square(4)[:3])),
    "pdist": (torch.nn.functional.pdist, lambda: (square(),)),
    "fft": (torch.fft.fft, lambda: (square(dtype=torch.complex128),)),
    "fft2": (torch.fft.fft2, lambda: (square(4, 2),)),
    "ifftn": (torch.fft.ifftn, lambda: (square(4, 2, dtype=torch.complex128),)),
    "rfft": (torch.fft.rfft, lambda: (square(),)),
    "rfft of float": (torch.fft.rfft, lambda: (square(dtype=torch.float32),)),
    "irfft": (torch.fft.irfft, lambda: (square(dtype=torch.complex128),)),
}


# Upstream's shared code refused devices that it did not know.
DISTANCES = pytest.mark.xfail(
    torch.torch_version.TorchVersion(torch.__version__) < "2.12",
    reason="torch 2.11: cdist only supports CPU, XPU and CUDA",
)


@pytest.mark.parametrize("name", [pytest.param(name, marks=DISTANCES if "dist" in name else ()) for name in CALLS])
def test_a_result_is_the_cpus(device, name):
    call, make = CALLS[name]
    inputs = make()
    ours, theirs = call(*(t.to(device) for t in inputs)), call(*inputs)
    if isinstance(theirs, torch.Tensor):
        ours, theirs = (ours,), (theirs,)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.device.type == torch.device(device).type
        torch.testing.assert_close(mine.cpu(), other)


def test_a_singular_value_decomposition_reproduces_its_matrix(device):
    a = square()[:, :3]
    u, s, vh = torch.linalg.svd(a.to(device), full_matrices=False)
    torch.testing.assert_close((u @ torch.diag(s) @ vh).cpu(), a)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.linalg.cholesky(-torch.eye(3, device=d)),
        lambda d: torch.linalg.inv(torch.zeros(3, 3, device=d)),
        lambda d: torch.linalg.solve(torch.zeros(3, 3, device=d), torch.ones(3, device=d)),
        lambda d: torch.linalg.qr(torch.ones(3, device=d)),
    ],
)
def test_failures_get_the_cpus_error(device, call):
    with pytest.raises(RuntimeError) as theirs:
        call("cpu")
    with pytest.raises(type(theirs.value)) as ours:
        call(device)
    assert str(ours.value) == str(theirs.value)


def test_a_solution_differentiates(device):
    def gradient(place: str) -> torch.Tensor:
        a = square().to(place).requires_grad_()
        return torch.autograd.grad(torch.linalg.solve(a, square()[:, :2].to(place)), a, square()[:, :2].to(place))[0]

    torch.testing.assert_close(gradient(device).cpu(), gradient("cpu"))
