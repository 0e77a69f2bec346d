"""The backend registers itself on the first compile, and its caches are safe and effective."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


def run(code: str, cache: str, **environment: str) -> str:
    """Runs code in a new process with a cache folder of its own and returns what it prints; nothing is logged."""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, **environment}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stderr == ""
    return result.stdout


def test_importing_mybackend_imports_neither_dynamo_nor_inductor(tmp_path):
    code = """
        import sys
        import mybackend
        unwanted = ("torch._dynamo", "torch._inductor", "mybackend.compile")
        print([name for name in sys.modules if name.startswith(unwanted)])
    """
    assert run(code, str(tmp_path)).strip() == "[]"


TRAIN = """
    import torch, mybackend
    from torch._dynamo.utils import counters
    x = torch.randn(40, 9, device="mybackend", requires_grad=True)
    torch.compile(lambda x: (x.sin() * 2).softmax(-1).square().sum())(x).backward()
    from mybackend.compile.runtime import compiler_runs
    print(compiler_runs(), counters["inductor"]["fxgraph_cache_hit"], counters["aot_autograd"]["autograd_cache_hit"])
"""


def test_a_second_process_finds_everything_in_the_caches(tmp_path):
    runs, graph_hits, autograd_hits = map(int, run(TRAIN, str(tmp_path)).split())
    assert runs >= 2 and graph_hits == autograd_hits == 0
    assert run(TRAIN, str(tmp_path)).split() == ["0", "2", "1"]


def test_mybackend_may_be_imported_after_a_graph_was_compiled_for_the_cpu(tmp_path):
    code = """
        import torch
        import torch.nn.functional as F
        torch.compile(lambda x: x + 1)(torch.ones(3))
        import mybackend
        from torch._inductor.utils import run_and_get_code
        x = torch.randn(2, 3, 8, 8, device="mybackend", requires_grad=True)
        pool = torch.compile(lambda x: F.max_pool2d(x * 2, 2).square().sum())
        _, sources = run_and_get_code(lambda: pool(x).backward())
        print("MB_KERNEL" in sources[0], "MB_ADD" in sources[1])
    """
    assert run(code, str(tmp_path), TORCH_DEVICE_BACKEND_AUTOLOAD="0").split() == ["True", "False"]


def test_another_version_of_the_code_generator_misses_the_caches(tmp_path):
    run(TRAIN, str(tmp_path))
    changed = """
        import mybackend.compile.toolchain as toolchain
        toolchain.prelude_hash = lambda: "another"
    """
    runs, graph_hits, _ = map(int, run(textwrap.dedent(changed) + textwrap.dedent(TRAIN), str(tmp_path)).split())
    assert runs >= 2 and graph_hits == 0


FOLDER = """
    import mybackend
    from mybackend.compile import cache
    try:
        print(oct(cache.folder().stat().st_mode & 0o777))
    except cache.UnsafeCacheError as error:
        print("refused", error)
"""


def test_the_cache_folder_is_the_users_alone(tmp_path):
    assert run(FOLDER, str(tmp_path / "new")).strip() == "0o700"


@pytest.mark.parametrize("place", [".", "mybackend"])
def test_a_cache_folder_that_others_can_write_is_refused(tmp_path, place):
    folder = tmp_path / "shared" / place
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    said = run(FOLDER, str(tmp_path / "shared"))
    assert said.startswith("refused") and "can be written by everyone" in said


def test_a_missing_compiler_is_a_clear_error(tmp_path):
    code = """
        import torch, mybackend
        try:
            torch.compile(lambda x: x + 1)(torch.zeros(3, device="mybackend"))
        except Exception as error:
            print(error)
    """
    said = run(code, str(tmp_path), CXX="no-such-compiler")
    assert "mybackend.compile needs a C++ compiler: 'no-such-compiler' is not found" in said
