"""What makes Inductor's caches depend on this backend's version.

The key of Inductor's graph cache covers torch's own sources. Of a backend outside torch it covers the `uuid` of its
custom pass, so the identity of our code generation, prelude, compiler and target is put there.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from torch._inductor.custom_graph_pass import CustomGraphModulePass

from mybackend.compile import gemm, lowering_registry, toolchain

__all__ = ["VersionPass", "version"]


@functools.cache
def _sources_hash() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def version() -> str:
    compiler = toolchain.compiler()
    parts = [
        _sources_hash(),
        toolchain.prelude_hash(),
        compiler.identity,
        *compiler.command,
        lowering_registry.version(),
        gemm.host_vendor(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class VersionPass(CustomGraphModulePass):
    """Changes no graph."""

    def __call__(self, gm: Any) -> None:
        pass

    def uuid(self) -> str:
        return f"mybackend-{version()}"
