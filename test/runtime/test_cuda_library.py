"""The GPU half as a library, on any machine: it loads alone, and without a GPU it is not chosen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mybackend
from mybackend import _build_info

LIBRARY = Path(mybackend.__file__).parent / "lib" / "libmb_driver_cuda.so"

pytestmark = pytest.mark.skipif(not _build_info.CUDA, reason="the GPU half was not built")


def run(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a machine without a GPU looks like to the CUDA runtime, on every machine."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.delenv("MYBACKEND_DRIVER", raising=False)


def test_the_library_loads_alone_with_every_symbol_bound():
    run(f"import ctypes, os; ctypes.CDLL({str(LIBRARY)!r}, mode=os.RTLD_NOW | os.RTLD_LOCAL)")


def test_the_library_offers_its_table_and_the_exception_it_throws():
    symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in symbols.stdout.splitlines()}
    ours = {name for name in exported if "mybackend" in name or name.startswith("mb_")}
    assert {name for name in ours if "DTypeNotImplemented" not in name} == {"mb_driver_table"}


def test_the_host_is_chosen_where_no_gpu_answers(without_gpu):
    out = run(
        "import mybackend, torch; print(torch.ones(2, device='mybackend').add(1).tolist(), torch.mybackend.driver())"
    )
    assert out.strip() == "[2.0, 2.0] host"


def test_asking_for_the_gpu_names_what_is_missing(without_gpu):
    code = """
import mybackend, torch
print("devices:", torch.mybackend.device_count(), torch.mybackend.is_available())
try:
    torch.empty(1, device="mybackend")
except RuntimeError as error:
    print("raised:", error)
"""
    out = run(code, MYBACKEND_DRIVER="cuda")
    assert "devices: 0 False" in out
    assert "MYBACKEND_DRIVER=cuda cannot be used: no GPU answers" in out


def test_info_says_what_the_gpu_half_was_built_for(without_gpu):
    assert f"built for {_build_info.CUDA_ARCH}" in run("import mybackend._info; mybackend._info.main([])")
