"""mybackend.compile.register_template: users' operators as kernels of their own, with what follows fused into them."""

from __future__ import annotations

import shutil
from pathlib import Path

import custom_template as example
import pytest
import torch
from compile_for_gpu import compile_for_gpu
from test_registration import run
from torch import Tensor
from torch._dynamo.utils import counters
from torch._inductor.runtime import benchmarking
from torch._inductor.utils import run_and_get_code

import mybackend.compile
from mybackend.compile import ceil_div, lowering_registry


@pytest.fixture(autouse=True)
def own_registry(own_lowerings):
    """What a test registers is gone after it, and what another registered is not found in Inductor's cache."""
    with torch._inductor.config.patch(fx_graph_cache=False):
        yield


@torch.library.custom_op("template_test::scaled_rows", mutates_args=())
def scaled_rows(x: Tensor, scale: Tensor, by: float) -> Tensor:
    return x * scale[:, None] * by


@scaled_rows.register_fake
def _(x: Tensor, scale: Tensor, by: float) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


# An element a thread: the other way out, store().
SCALED_ROWS = """
MB_BLOCKS(block, blocks) {
  MB_LOOP(column, x_size1) {
    const out_value value = mb_load(x[block * x_stride0 + column * x_stride1]);
    store(block, column, scaled(value, mb_load(scale[block * scale_stride0])) * out_value(by) * FACTOR);
  }
}
"""
OPERATOR = torch.ops.template_test.scaled_rows


def register_scaled_rows(**changes) -> None:
    options = {
        "source": SCALED_ROWS,
        "blocks": lambda sizes, parameters: sizes["out"][0],
        "parameters": [{"FACTOR": 1}],
        "definitions": "template <class T> MB_FN T scaled(T x, T by) { return x * by; }",
    }
    mybackend.compile.register_template(OPERATOR, **{**options, **changes})


def code_of(function, *arguments, **options) -> tuple[object, str]:
    result, code = run_and_get_code(torch.compile(function, fullgraph=True, **options), *arguments)
    return result, code[0]


def test_an_operator_goes_from_a_call_to_a_kernel_with_what_follows_fused(device):
    x, y = torch.randn(50, 16, device=device), torch.randn(70, 16, device=device)
    called, code = example.generated(x, y)
    assert "custom_template_example.distances.default(" in code
    example.register()
    templated, code = example.generated(x, y)
    assert "custom_template_example.distances.default(" not in code
    assert code.count("MB_KERNEL ") == 1 and code.count("empty_strided_mybackend((") == 1
    for result in (called, templated):
        torch.testing.assert_close(result, example.model(x, y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_element_types(agree, dtype):
    register_scaled_rows()
    x, scale = torch.randn(9, 70).to(dtype), torch.randn(9).to(dtype)
    agree(lambda x, scale: OPERATOR(x, scale, 2.0), x, scale, rtol=0.02, atol=0.02)


def test_operands_may_have_any_strides_and_offsets(agree):
    register_scaled_rows()
    x, scale = torch.randn(70, 20), torch.randn(9, 3)
    agree(lambda x, scale: OPERATOR(x.t()[2:11, ::2], scale[:, 1], 2.0).relu(), x, scale)


@pytest.mark.parametrize("rows, columns", [(0, 5), (5, 0), (1, 1), (1, 300), (300, 1)])
def test_sizes_of_nothing_and_one(agree, rows, columns):
    register_scaled_rows()
    agree(lambda x, scale: OPERATOR(x, scale, 2.0) + 1, torch.randn(rows, columns), torch.randn(rows))


def test_fused_code_reads_other_tensors_by_row_and_column_and_may_have_several_results(agree):
    register_scaled_rows()

    def function(x, scale, bias, table, index):
        y = OPERATOR(x, scale, 0.5)
        return y, (y + bias) * table[index][:, None], (y > 0).to(torch.int8).view(3, 4, 7)

    index = torch.randint(0, 5, (12,))
    agree(function, torch.randn(12, 7), torch.randn(12), torch.randn(7), torch.randn(5), index)


def test_a_wrong_index_in_fused_code_is_an_index_error(device):
    register_scaled_rows()
    index = torch.tensor([0, 7], device=device)
    compiled = torch.compile(lambda x, s, t: OPERATOR(x, s, 1.0) + t[index][:, None], fullgraph=True)
    with pytest.raises(IndexError):
        compiled(*(torch.randn(size, device=device) for size in ((2, 3), (2,), (5,))))
        torch.mybackend.synchronize()


def test_dynamic_shapes_are_one_kernel_for_all_sizes(device):
    register_scaled_rows()
    compiled = torch.compile(lambda x, scale: OPERATOR(x, scale, 2.0).exp(), dynamic=True, fullgraph=True)
    compilations = counters["stats"]["unique_graphs"]
    for rows, columns in ((5, 7), (9, 70), (33, 2)):
        x, scale = torch.randn(rows, columns, device=device), torch.randn(rows, device=device)
        torch.testing.assert_close(compiled(x, scale), OPERATOR(x, scale, 2.0).exp())
    assert counters["stats"]["unique_graphs"] == compilations + 1


def test_gradients_come_from_the_operators_own_formula(agree):
    @torch.library.custom_op("template_test::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    doubled.register_fake(torch.empty_like)
    doubled.register_autograd(lambda ctx, grad: grad * 2)
    source = "MB_BLOCKS(b, blocks) { MB_LOOP(c, x_size1) store(b, c, x[b * x_stride0 + c] * 2); }"
    mybackend.compile.register_template(torch.ops.template_test.doubled, source, blocks=lambda s, p: s["out"][0])
    agree(lambda x: doubled(x).sin(), torch.randn(5, 7), grad=True)


def test_what_has_no_form_in_c_plus_plus_is_called(device):
    register_scaled_rows()
    x, scale = (torch.randn(size, dtype=torch.complex64, device=device) for size in ((4, 3), (4,)))
    result, code = code_of(lambda x, s: OPERATOR(x, s, 2.0), x, scale)
    assert "template_test.scaled_rows.default(" in code
    torch.testing.assert_close(result, OPERATOR(x, scale, 2.0))


def test_prefer_says_when_the_template_is_used_without_measuring(device):
    register_scaled_rows(prefer=lambda sizes: sizes["x"][0] > 10)
    for rows, templated in ((9, False), (11, True)):
        x, scale = torch.randn(rows, 3, device=device), torch.randn(rows, device=device)
        _, code = code_of(lambda x, s: OPERATOR(x, s, 2.0), x, scale)
        assert ("template_test.scaled_rows.default(" not in code) == templated


@pytest.mark.skipif(
    not hasattr(benchmarking, "register_benchmarker"),
    reason="this torch has no way to measure on a device it does not know",
)
def test_tuning_measures_every_set_of_parameters_and_the_call(device, monkeypatch):
    from mybackend.compile.template_choice import OperatorCall, TemplateChoice

    measured = []

    def seconds(of):
        def benchmark(self, *args, out):
            measured.append(str(self))
            return of(self)

        return benchmark

    monkeypatch.setattr(TemplateChoice, "benchmark", seconds(lambda choice: 3.0 - choice.call.parameters["FACTOR"]))
    monkeypatch.setattr(OperatorCall, "benchmark", seconds(lambda choice: 5.0))
    register_scaled_rows(parameters=[{"FACTOR": 1}, {"FACTOR": 2}])
    x, scale = torch.randn(31, 17, device=device), torch.randn(31, device=device)
    options = {"max_autotune": True, "autotune_local_cache": False}
    result, code = code_of(lambda x, s: OPERATOR(x, s, 2.0), x, scale, options=options)
    assert len(measured) == 3 and "constexpr int FACTOR = 2" in code
    torch.testing.assert_close(result, OPERATOR(x, scale, 4.0))


def test_tuning_for_real_gives_the_right_result(device):
    example.register()
    x, y = torch.randn(20, 16, device=device), torch.randn(30, 16, device=device)
    result, _ = example.generated(x, y, mode="max-autotune-no-cudagraphs")
    torch.testing.assert_close(result, example.model(x, y), rtol=1e-4, atol=1e-5)


def test_the_text_of_a_template_is_part_of_the_cache_key():
    versions = set()
    for text in (SCALED_ROWS, SCALED_ROWS + "\n// another", SCALED_ROWS):
        register_scaled_rows(source=text)
        versions.add(lowering_registry.version())
    register_scaled_rows(parameters=[{"FACTOR": 2}])
    assert len(versions) == 2 and lowering_registry.version() not in versions


SECOND_PROCESS = """
    import sys, torch, mybackend
    sys.path.append({examples!r})
    import custom_template as example
    from torch._dynamo.utils import counters
    example.register()
    x, y = (torch.randn(n, 16, device="mybackend") for n in (30, 40))
    torch.compile(example.model)(x, y)
    from mybackend.compile.runtime import compiler_runs
    print(compiler_runs(), counters["inductor"]["fxgraph_cache_hit"])
"""


def test_a_second_process_finds_the_kernel_in_the_caches(tmp_path):
    code = SECOND_PROCESS.format(examples=str(Path(example.__file__).parent))
    assert run(code, str(tmp_path)).split() == ["1", "0"]
    assert run(code, str(tmp_path)).split() == ["0", "1"]


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_source_compiles_for_a_gpu(device, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    example.register()
    example.generated(torch.randn(50, 16, device=device), torch.randn(70, 16, device=device))
    torch.mybackend.synchronize()
    (source,) = (tmp_path / "mybackend").glob("*.cpp")
    assert "store_row" in source.read_text() and compile_for_gpu(source) is None


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"source": 3}, TypeError, "source: expected C.. text, got int"),
        ({"source": "MB_BLOCKS(b, blocks) {}"}, ValueError, "never calls store"),
        ({"blocks": 4}, TypeError, "blocks: expected a function, got 4"),
        ({"parameters": []}, TypeError, "parameters: expected a sequence of mappings"),
        ({"parameters": {"FACTOR": 1}}, TypeError, "parameters: expected a sequence of mappings"),
        ({"parameters": [{"FACTOR": 1.5}]}, TypeError, "FACTOR: expected an int, got 1.5"),
        ({"parameters": [{"FACTOR": 1}, {"OTHER": 1}]}, ValueError, "every set has the same names"),
        ({"parameters": [{"x": 1}]}, ValueError, "'x' is not a name that is free"),
        ({"parameters": [{"row": 1}]}, ValueError, "'row' is not a name that is free"),
        ({"threads": 100}, ValueError, "threads: expected a multiple of 32"),
    ],
)
def test_wrong_descriptions_are_refused(changes, error, said):
    with pytest.raises(error, match=said):
        register_scaled_rows(**changes)


@pytest.mark.parametrize(
    ("operator", "error", "said"),
    [
        (torch.add, TypeError, "expected an operator"),
        (torch.ops.aten.relu_.default, ValueError, "changes an argument"),
        (torch.ops.aten.max.dim, ValueError, "returns Tensor, Tensor, expected one Tensor"),
        (torch.ops.aten.cat.default, ValueError, "argument tensors of type List"),
    ],
)
def test_operators_that_cannot_be_a_template_are_refused(operator, error, said):
    with pytest.raises(error, match=said):
        mybackend.compile.register_template(operator, SCALED_ROWS, blocks=lambda s, p: 1)


def test_a_number_of_blocks_that_is_none_is_an_error(device):
    register_scaled_rows(blocks=lambda sizes, parameters: "many")
    with pytest.raises(Exception, match="blocks of template_test_scaled_rows: expected an int .*, got 'many'"):
        torch.compile(lambda x, s: OPERATOR(x, s, 2.0))(torch.ones(2, 3, device=device), torch.ones(2, device=device))


def test_a_source_that_does_not_compile_is_reported_with_the_compilers_words(device, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # no bad source where others are looked for
    register_scaled_rows(source=SCALED_ROWS.replace("store(", "no_such_function(store, "))
    with pytest.raises(Exception, match="(?s)failed on generated code.*no_such_function"):
        torch.compile(lambda x, s: OPERATOR(x, s, 2.0))(torch.ones(2, 3, device=device), torch.ones(2, device=device))


def test_sizes_are_divided_rounding_up():
    assert [ceil_div(size, 4) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]
