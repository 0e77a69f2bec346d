"""Matrix products as templates with what follows them fused: mybackend/compile/gemm.py."""

from __future__ import annotations

import shutil

import pytest
import torch
import torch.nn.functional as F
from compile_for_gpu import compile_for_gpu
from torch._inductor.runtime import benchmarking
from torch._inductor.utils import run_and_get_code
from torch.torch_version import TorchVersion

from mybackend.compile import gemm

TOLERANCE = {
    torch.float32: {"rtol": 1e-4, "atol": 1e-4},
    torch.float64: {"rtol": 1e-10, "atol": 1e-10},
    torch.bfloat16: {"rtol": 2e-2, "atol": 1e-1},
    torch.float16: {"rtol": 4e-3, "atol": 2e-2},
}
needs_measuring = pytest.mark.skipif(
    not hasattr(benchmarking, "register_benchmarker"),
    reason="this torch has no way to measure on a device it does not know",
)

# torch 2.11 fuses nothing after a template whose rank is not the template's.
KERNELS_OF_OTHER_RANK = 2 if TorchVersion(torch.__version__) < "2.12" else 1


@pytest.fixture(autouse=True)
def always_a_template(monkeypatch):
    """Whatever the CPU; what was compiled for another choice is not taken from Inductor's cache."""
    monkeypatch.setattr(gemm, "prefers_template", lambda *_: True)
    with torch._inductor.config.patch(fx_graph_cache=False):
        yield


def code_of(function, *arguments, **options) -> tuple[object, str]:
    result, code = run_and_get_code(torch.compile(function, fullgraph=True, **options), *arguments)
    return result, code[0]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 1, 1), (33, 70, 16), (5, 300, 33), (270, 17, 130)])
def test_products_of_every_dtype_and_of_sizes_that_fill_no_tile(agree, dtype, rows, depth, columns):
    a, b, c = torch.randn(rows, depth), torch.randn(depth, columns), torch.randn(columns)
    agree(lambda a, b, c: (a @ b, torch.addmm(c, a, b)), *(t.to(dtype) for t in (a, b, c)), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_batches(agree, dtype):
    a, b, c = torch.randn(3, 20, 30), torch.randn(3, 30, 40), torch.randn(3, 20, 40)
    arguments = [t.to(dtype) for t in (a, b, c)]
    agree(lambda a, b, c: (a @ b, torch.baddbmm(c, a, b)), *arguments, **TOLERANCE[dtype])


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t().contiguous().t(),
        lambda x: x.repeat(2, 3)[: x.shape[0], : x.shape[1]],
        lambda x: F.pad(x, (1, 1, 2, 2))[2:-2, 1:-1],
        lambda x: x.repeat_interleave(2, 1)[:, ::2],
        lambda x: x[:1].expand_as(x),
    ],
    ids=["transposed", "rows_apart", "offset", "elements_apart", "expanded"],
)
@pytest.mark.parametrize("operand", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_operands_of_any_strides(agree, view, operand, dtype):
    def function(a, b):
        return (view(a) @ b) if operand == 0 else (a @ view(b))

    agree(function, torch.randn(40, 50).to(dtype), torch.randn(50, 70).to(dtype), **TOLERANCE[dtype])


@pytest.mark.parametrize(("rows", "depth", "columns"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_sizes_of_nothing(agree, rows, depth, columns):
    agree(lambda a, b: (a @ b) + 1, torch.randn(rows, depth), torch.randn(depth, columns))


def test_infinity_and_nan_spread_as_in_eager_code(agree):
    a, b = torch.randn(20, 30), torch.randn(30, 40)
    a[3, 4], a[7, 8], b[2, 5] = float("inf"), float("nan"), float("-inf")
    agree(lambda a, b: (a @ b).relu(), a, b, equal_nan=True, **TOLERANCE[torch.float32])


def test_a_long_sum_loses_no_more_than_the_librarys(device):
    a, b = torch.rand(9, 50_000), torch.rand(50_000, 20)
    exact = a.double() @ b.double()
    result = torch.compile(lambda a, b: a @ b, fullgraph=True)(a.to(device), b.to(device)).cpu()
    error, of_the_library = ((r.double() - exact).abs().max() for r in (result, a @ b))
    assert error <= 4 * of_the_library + 1e-6 * exact.max()


def test_bias_activation_residual_and_a_cast_are_one_kernel(device):
    def function(x, w, b, r):
        return (F.gelu(F.linear(x, w, b)) + r).to(torch.bfloat16)

    x, w, b, r = (torch.randn(size) for size in ((4, 9, 30), (50, 30), (50,), (4, 9, 50)))
    result, code = code_of(function, *(t.to(device) for t in (x, w, b, r)))
    assert code.count("MB_KERNEL ") == KERNELS_OF_OTHER_RANK and "extern_kernels." not in code
    torch.testing.assert_close(result.cpu(), function(x, w, b, r), rtol=1e-2, atol=1e-2)


def test_a_product_that_is_used_again_is_stored_too(agree):
    def function(x, w):
        y = x @ w
        return y, y.relu(), y.sum(0)

    agree(function, torch.randn(30, 40), torch.randn(40, 20), **TOLERANCE[torch.float32])


def test_a_residual_that_is_an_operand_is_not_overwritten_before_it_is_read(agree):
    agree(lambda x: (x @ x).relu() + x, torch.randn(300, 300), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.5, 2), (1, 0), (0, 1)])
def test_factors_of_a_sum(agree, alpha, beta):
    c = torch.full((7, 6), float("nan")) if beta == 0 else torch.randn(7, 6)
    a, b = torch.randn(7, 5), torch.randn(5, 6)
    agree(lambda c, a, b: torch.addmm(c, a, b, alpha=alpha, beta=beta), c, a, b, **TOLERANCE[torch.float32])


def test_gradients(agree):
    x, w, b = torch.randn(33, 70), torch.randn(16, 70), torch.randn(16)
    agree(lambda x, w, b: F.silu(F.linear(x, w, b)), x, w, b, grad=True, **TOLERANCE[torch.float32])


def test_dynamic_shapes_are_one_kernel_for_all_sizes(device):
    from torch._dynamo.utils import counters

    compiled = torch.compile(lambda a, b: (a @ b).relu(), dynamic=True, fullgraph=True)
    before = counters["stats"]["unique_graphs"]
    for rows, depth, columns in ((5, 7, 9), (300, 20, 100), (33, 500, 65)):
        a, b = torch.randn(rows, depth), torch.randn(depth, columns)
        torch.testing.assert_close(
            compiled(a.to(device), b.to(device)).cpu(), (a @ b).relu(), **TOLERANCE[torch.float32]
        )
    assert counters["stats"]["unique_graphs"] == before + 1


def test_integers_and_complex_numbers_are_called(agree):
    agree(lambda a, b: a @ b, torch.randint(0, 9, (3, 4)), torch.randint(0, 9, (4, 5)))
    agree(lambda a, b: a @ b, *(torch.randn(4, 4, dtype=torch.complex64) for _ in range(2)))


@needs_measuring
def test_tuning_takes_what_is_fastest(device, monkeypatch):
    from torch._inductor.select_algorithm import ExternKernelCaller

    from mybackend.compile.template_choice import TemplateChoice

    a, b, c = (torch.randn(size, device=device) for size in ((37, 21), (21, 45), (45,)))
    tiles = gemm.HOST_TILES[1]
    monkeypatch.setattr(TemplateChoice, "benchmark", lambda self, *_, out: 2.0 - (self.call.parameters == tiles))
    for of_the_call, templated in ((5.0, True), (0.5, False)):
        monkeypatch.setattr(ExternKernelCaller, "benchmark", lambda *_, of_the_call=of_the_call, out: of_the_call)
        torch._dynamo.reset()
        options = {"max_autotune": True, "autotune_local_cache": False}
        result, code = code_of(lambda a, b, c: torch.addmm(c, a, b), a, b, c, options=options)
        assert ("extern_kernels.addmm(" not in code) == templated
        assert (f"TILE_M = {tiles['TILE_M']}" in code) == templated
        torch.testing.assert_close(result.cpu(), torch.addmm(c.cpu(), a.cpu(), b.cpu()), **TOLERANCE[torch.float32])


@needs_measuring
@pytest.mark.parametrize("option", ["autotune_in_subproc", "pipeline_max_autotune_gemm", "deterministic"])
def test_tuning_under_inductors_other_options(agree, option):
    if not hasattr(torch._inductor.config, option):
        pytest.skip(f"this torch has no option {option}")
    options = {"max_autotune": True, option: True}
    agree(lambda a, b: (a @ b).relu(), torch.randn(18, 30), torch.randn(30, 21), options=options, rtol=1e-4, atol=1e-4)


@needs_measuring
@pytest.mark.parametrize("dynamic", [False, True])
def test_tuning_for_real_gives_the_right_result(agree, dynamic):
    x, w, b = torch.randn(2, 17, 30), torch.randn(20, 30), torch.randn(20)
    options = {"max_autotune": True}
    agree(lambda x, w, b: F.linear(x, w, b).relu(), x, w, b, options=options, dynamic=dynamic, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_a_convolution_of_one_by_one_is_a_product(device, layout):
    def function(x, w, b, r):
        return F.relu(F.conv2d(x, w, b) + r)

    x, r = torch.randn(2, 17, 6, 7).to(memory_format=layout), torch.randn(2, 20, 6, 7).to(memory_format=layout)
    operands = (x, torch.randn(20, 17, 1, 1), torch.randn(20), r)
    result, code = code_of(function, *(t.to(device) for t in operands))
    expected = function(*operands)
    torch.testing.assert_close(result.cpu(), expected, **TOLERANCE[torch.float32])
    assert "extern_kernels." not in code and "mb_tile_product" in code
    if layout == torch.channels_last:
        assert code.count("MB_KERNEL ") == KERNELS_OF_OTHER_RANK and result.stride() == expected.stride()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_left_operand_whose_columns_are_pages_apart(agree, dtype):
    a, b = torch.randn(300, 1024, dtype=dtype), torch.randn(300, 33, dtype=dtype)
    agree(lambda a, b: a.t() @ b, a, b, **TOLERANCE[dtype])


@pytest.mark.parametrize(("threads", "rows", "tile"), [(1, 192, 256), (2, 192, 160), (2, 576, 160), (2, 2048, 256)])
def test_threads_get_tiles_of_about_as_many_rows(device, monkeypatch, threads, rows, tile):
    """`tile` is the most rows of one, which are then made even: 192 in two tiles of 96, 576 in four of 144."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    a, b = torch.randn(rows, 20), torch.randn(20, 192)
    result, code = code_of(lambda a, b: a @ b, a.to(device), b.to(device))
    torch.testing.assert_close(result.cpu(), a @ b, **TOLERANCE[torch.float32])
    assert torch.mybackend.driver() != "host" or f"TILE_M = {tile};" in code


def test_where_nothing_is_measured_the_library_is_called_but_where_it_was_seen_to_lose(device, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(torch.mybackend, "driver", lambda: "host")

    def prefers(rows, columns, dtype, vendor="AuthenticAMD", level=4):
        monkeypatch.setattr(gemm, "host_vendor", lambda: vendor)
        monkeypatch.setattr(torch.mybackend, "get_device_capability", lambda device=None: (level, 0))
        return gemm.prefers_template(dtype, rows, 1024, columns)

    assert prefers(64, 64, torch.float32) and prefers(64, 64, torch.float64)
    assert not prefers(64, 64, torch.float32, vendor="GenuineIntel")
    assert not prefers(64, 64, torch.float32, level=3)
    assert not prefers(2, 64, torch.float32) and not prefers(64, 2, torch.float32)
    assert prefers(16, 16, torch.bfloat16) and not prefers(1024, 1024, torch.bfloat16)
    monkeypatch.setattr(torch.mybackend, "driver", lambda: "cuda")
    assert not prefers(64, 64, torch.float32)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_source_compiles_for_a_gpu(device, dtype, arch, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    a, b, c = (torch.randn(size, dtype=dtype, device=device) for size in ((33, 70), (70, 16), (16,)))
    torch.compile(lambda a, b, c: torch.addmm(c, a, b).relu(), fullgraph=True)(a, b, c)
    torch.mybackend.synchronize()
    (source,) = (tmp_path / "mybackend").glob("*.cpp")
    assert "mb_tile_product" in source.read_text() and compile_for_gpu(source, arch) is None
