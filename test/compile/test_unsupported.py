"""What is not there says so."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.ops_handler import OpsHandler, list_ops

# Only Triton, Halide and native matmul kernels meet these.
OF_OTHER_BACKENDS = {"partial_accumulate", "rand_eager", "halide_clamp", "dot", "inline_asm_elementwise"}
# The kernel's, or the tracer's, and not an operation of expressions.
NOT_EXPRESSIONS = {
    "load", "store", "store_reduction", "reduction", "scan", "sort", "bucketize", "check_bounds", "device_assert_async",
    "output", "placeholder",
}  # fmt: skip
# Extern calls: mybackend.compile.lowerings keeps Inductor from lowering them.
CALLS = {
    "polygamma", "modified_bessel_i0", "modified_bessel_i1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
}  # fmt: skip


def test_every_operation_of_inductor_has_a_form_in_c_plus_plus():
    from mybackend.compile.overrides import Overrides

    missing = {name for name in list_ops(OpsHandler) if Overrides._is_unimplemented(name)}
    assert missing - OF_OTHER_BACKENDS - NOT_EXPRESSIONS - CALLS == set()


@pytest.mark.parametrize("name", ["special_chebyshev_polynomial_t", "special_hermite_polynomial_h", "special_zeta"])
def test_a_function_without_a_c_plus_plus_form_is_called(agree, name):
    x, n = torch.rand(50) + 1.5, torch.randint(1, 5, (50,)).float()
    agree(lambda x, n: getattr(torch.special, name.removeprefix("special_"))(x, n) + 1, x, n)


def test_the_cpp_wrapper_is_refused_with_a_reason(device):
    with torch._inductor.config.patch(cpp_wrapper=True), pytest.raises(Exception, match="mybackend.*cpp_wrapper"):
        torch.compile(lambda x: x + 1)(torch.zeros(3, device=device))


def test_ahead_of_time_compilation_is_refused_with_a_reason(device, tmp_path):
    class Module(torch.nn.Module):
        def forward(self, x):
            return x + 1

    exported = torch.export.export(Module(), (torch.zeros(3, device=device),))
    with pytest.raises(Exception, match="mybackend.*AOTInductor"):
        torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))


def test_cudagraph_mode_compiles_without_graphs(agree):
    agree(lambda x: x * 2 + 1, torch.randn(20), options={"triton.cudagraphs": True})
