"""mybackend.compile.register_lowering and pointwise: users' operators in fused kernels."""

from __future__ import annotations

import custom_lowering as example
import pytest
import torch

import mybackend.compile


def test_an_operator_goes_from_a_call_into_the_fused_kernel(device, monkeypatch):
    from mybackend.compile import lowering_registry

    monkeypatch.setattr(lowering_registry, "_lowerings", dict(lowering_registry._lowerings))
    x = torch.randn(64, 1000, device=device)
    called, code = example.generated(x)
    assert "custom_lowering_example.swish.default(" in code and code.count("MB_KERNEL ") == 2
    example.register()
    inlined, code = example.generated(x)
    assert "custom_lowering_example.swish.default(" not in code and code.count("MB_KERNEL ") == 1
    for result in (called, inlined):
        torch.testing.assert_close(result, example.model(x), rtol=1e-4, atol=1e-3)


def test_the_registered_lowerings_are_part_of_the_cache_key():
    from mybackend.compile import lowering_registry

    @torch.library.custom_op("custom_lowering_test::negate", mutates_args=())
    def negate(x: torch.Tensor) -> torch.Tensor:
        return -x

    before = lowering_registry.version()
    mybackend.compile.register_lowering(
        torch.ops.custom_lowering_test.negate, mybackend.compile.pointwise(lambda ops, x: ops.neg(x))
    )
    assert lowering_registry.version() != before


def test_an_expression_in_c_plus_plus(agree, device):
    """`expression` takes C++ over the operands, with the functions of the prelude (mb_exp, mb_tanh, ...)."""

    @torch.library.custom_op("custom_lowering_test::softplus", mutates_args=())
    def softplus(x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.exp(x))

    softplus.register_fake(lambda x: torch.empty_like(x))
    mybackend.compile.register_lowering(
        torch.ops.custom_lowering_test.softplus.default,
        mybackend.compile.expression("mb_log1p(mb_exp({0}))"),
    )
    agree(lambda x: torch.ops.custom_lowering_test.softplus(x) * 2, torch.randn(100))


def test_what_is_no_operator_is_refused():
    with pytest.raises(TypeError, match="expected an operator"):
        mybackend.compile.register_lowering(torch.add, lambda x: x)
