"""Loading: `import torch` knows the device, in either import order, in children, and never breaks by it.

Each test is a new process with an entry point written to a temporary directory, so nothing needs to be installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mybackend

ROOT = Path(mybackend.__file__).parent.parent


@pytest.fixture
def run(tmp_path):
    """Runs Python code as a user with mybackend installed would."""
    info = tmp_path / "mybackend-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mybackend\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nmybackend = mybackend:_autoload\n")

    def run(code: str, **environment: str) -> str:
        env = {k: v for k, v in os.environ.items() if k != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
        env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), str(ROOT), env.get("PYTHONPATH", "")])
        result = subprocess.run(
            [sys.executable, "-c", code],
            env=env | environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout + result.stderr

    return run


@pytest.mark.parametrize("imports", ["import torch", "import mybackend, torch", "import torch, mybackend"])
def test_the_device_exists_in_any_import_order(run, imports):
    out = run(f"{imports}\nprint(torch.ones(2, device='mybackend').tolist(), torch.mybackend.device_count() > 0)")
    assert "[1.0, 1.0] True" in out


def test_autoload_can_be_turned_off(run):
    out = run("import torch; print(hasattr(torch, 'mybackend'))", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "False" in out


def test_a_failure_to_load_warns_at_import_torch_and_raises_at_import_mybackend(run):
    code = """
import sys
class Fail:
    def find_spec(self, name, path=None, target=None):
        if name == "mybackend._C": raise ImportError("undefined symbol: mb_test")
sys.meta_path.insert(0, Fail())
import torch
print("torch works:", torch.ones(1).item())
try:
    import mybackend
except ImportError as error:
    print("raised:", error)
"""
    out = run(code)
    assert "torch works: 1.0" in out and "could not be loaded" in out and "raised: undefined symbol: mb_test" in out


@pytest.mark.parametrize("first", ["import torch", "import mybackend"])
def test_a_setting_that_makes_no_sense_is_named_by_every_import_of_mybackend(run, first):
    code = f"""
try:
    {first}
except ValueError as error:
    print("raised:", error)
for attempt in range(2):
    try:
        import mybackend
    except ValueError as error:
        print("raised:", error)
"""
    out = run(code, MYBACKEND_ENGINE_POLICY="fast")
    assert out.count("raised: MYBACKEND_ENGINE_POLICY='fast': expected one of") == 2 + (first == "import mybackend")


def test_another_torch_than_built_against_is_refused_with_advice(run):
    code = """
import os; os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
torch.__version__ = "2.0.0"
try:
    import mybackend
except ImportError as error:
    print(error)
"""
    out = run(code)
    assert "was built against torch" in out and "pip install" in out


def test_a_second_privateuse1_backend_is_refused(run):
    code = """
import os; os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
torch.utils.rename_privateuse1_backend("other")
try:
    import mybackend
except ImportError as error:
    print(error)
"""
    assert "already taken by 'other'" in run(code)


FORK = """
import multiprocessing, torch
def child(queue):
    queue.put((torch.ones(3, device="mybackend") + 1).tolist())
assert torch.ones(2, device="mybackend").add_(1).tolist() == [2, 2]
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get())
process.join()
"""


def test_a_forked_child_can_use_the_host_driver(run):
    assert "[2.0, 2.0, 2.0]" in run(FORK, MYBACKEND_DRIVER="host")


def test_a_subprocess_can_use_the_device(run):
    child = "import torch; print((torch.ones(3, device='mybackend') + 1).tolist())"
    out = run(f"import torch, subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)")
    assert "[2.0, 2.0, 2.0]" in out


def test_an_unknown_driver_is_reported_at_first_use_and_not_at_import(run):
    code = """
import torch
print("devices:", torch.mybackend.device_count(), torch.mybackend.is_available())
try:
    torch.empty(1, device="mybackend")
except RuntimeError as error:
    print("raised:", error)
"""
    out = run(code, MYBACKEND_DRIVER="nonesuch")
    assert "devices: 0 False" in out and "nonesuch" in out


def test_import_uses_no_device(run):
    assert "False" in run("import mybackend; print(mybackend.is_initialized())")
    assert "False" in run("import mybackend; print(mybackend.is_available())", MYBACKEND_DRIVER="nonesuch")


def test_import_loads_no_compiler(run):
    out = run(
        "import torch, sys; print([m for m in sys.modules if m.startswith(('torch._inductor', 'torch._dynamo.'))])"
    )
    plain = run(
        "import torch, sys; print([m for m in sys.modules if m.startswith(('torch._inductor', 'torch._dynamo.'))])",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert out == plain


def test_tensors_may_live_until_the_process_ends(run):
    run("import torch; global_one = torch.ones(1000, device='mybackend'); pinned = torch.ones(9).pin_memory()")


def test_info_names_driver_and_devices(run):
    out = run("import runpy, sys; sys.argv = ['mybackend', 'info']; runpy.run_module('mybackend', run_name='__main__')")
    assert "driver:" in out and "mybackend:0:" in out
