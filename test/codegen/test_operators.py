"""The operator tables: what an entry may say, and what the error for anything else says."""

from pathlib import Path

import pytest

from codegen.operators import OperatorsError, read_operators
from codegen.schemas import Schemas


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas()


@pytest.fixture
def read(schemas, tmp_path):
    def read(**tables: str):
        for name, text in tables.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        return read_operators(tmp_path.glob("*.yaml"), schemas)

    return read


def test_a_structured_group_is_one_entry_that_stands_for_its_overloads(read):
    (entry,) = read(pointwise="add.out: native")
    assert [str(function.func.name) for function in entry.operator.functions] == [
        "add.Tensor",
        "add.out",
        "add_.Tensor",
    ]


def test_an_entry_names_its_stubs(read):
    (entry,) = read(pointwise="abs.out: {stub: [abs_stub]}")
    assert entry.stubs == ("abs_stub",)


def test_an_entry_of_an_operator_that_torch_has_given_up_is_passed_over(read):
    assert read(pointwise='given_up: {stub: [given_up_stub], until: "2.0"}') == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("no_such_operator: native", "'no_such_operator' is not an operator of the installed torch"),
        ('not_given_up_yet: {stub: [a_stub], until: "9.0"}', "is not an operator of the installed torch"),
        ("add.Tensor: native", "member of the structured group 'add.out': list 'add.out'"),
        ("gelu.out: stub", "no implementation shared by CPU and CUDA"),
        ("layer_norm: native", "is CompositeImplicitAutograd: a kernel would cut autograd off"),
        ("gelu.out: decomposition", "has no composite implementation"),
        ("_copy_from: fallback", "has no CPU kernel to fall back to"),
        ("gelu.out: kernel", "served by one of stub, native, library, decomposition, fallback; got 'kernel'"),
        ("abs.out: {stub: abs_stub}", "takes a list of stubs"),
        ("view: stub\nas_strided: stub", "sorted by name; the first out of place is 'view'"),
        ("view: stub\nview: native", "listed twice: view"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_operator(read, table, message):
    with pytest.raises(OperatorsError, match=message):
        read(family=table)


def test_an_operator_is_listed_in_one_file_only(read):
    with pytest.raises(OperatorsError, match=r"b.yaml: 'view' is already listed in a.yaml"):
        read(a="view: stub", b="view: native")


def test_the_tables_of_this_repository_are_valid(schemas):
    tables = Path(__file__).parents[2] / "csrc" / "aten" / "operators"
    assert read_operators(tables.glob("*.yaml"), schemas)
