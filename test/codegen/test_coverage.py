"""The coverage report says what the dispatcher says, and every stub that a table names is filled."""

from codegen.check_stubs import missing
from mybackend import coverage


def test_every_listed_operator_is_registered_as_its_table_says():
    assert coverage.measure().problems == []


def test_a_registration_that_no_table_lists_is_a_problem(monkeypatch):
    real, extra = coverage.has_kernel, "quantize_per_tensor"
    monkeypatch.setattr(coverage, "has_kernel", lambda name, key="PrivateUse1": name == extra or real(name, key))
    assert f"{extra} has a kernel, but no table lists it" in coverage.measure().problems


def test_a_listed_operator_without_registration_is_a_problem(monkeypatch):
    real = coverage.has_kernel
    monkeypatch.setattr(coverage, "has_kernel", lambda name, key="PrivateUse1": name != "view" and real(name, key))
    assert coverage.measure().problems == ["views.yaml lists view as stub, but view has no kernel"]


def test_an_unfilled_stub_is_reported_with_its_operator():
    assert missing("abs.out abs_stub\nneg.out neg_stub\n", {"abs_stub"}) == [("neg.out", "neg_stub")]
