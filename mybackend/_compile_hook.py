"""Registers the device with Dynamo when Dynamo is imported, and with Inductor when Inductor asks for it.

Dynamo has no hook for devices outside torch, and Inductor copies its decompositions before it asks, so three modules
are watched for: by a finder that knows these only, and leaves when they have been imported.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence

__all__ = ["inductor_attribute", "install"]

# Module -> the function of mybackend.compile.registration to call once it is there.
WATCHED = {
    "torch._dynamo.device_interface": "register_interface",
    "torch._dynamo.trace_rules": "register_trace_rules",
    "torch._inductor.decomposition": "register_decompositions",
}


def install() -> None:
    missing = {name for name in WATCHED if name not in sys.modules}
    for name in WATCHED.keys() - missing:
        _register(name)
    if missing:
        sys.meta_path.insert(0, _Finder(missing))
    inductor = sys.modules.get("torch._inductor.codegen.common")
    if inductor is not None and inductor.init_backend_registration.cache_info().currsize:
        inductor_attribute("Scheduling")  # it has collected its backends, and will not ask again


def inductor_attribute(name: str) -> None:
    """Called for `torch.mybackend.Scheduling`, which Inductor asks for once, when it collects its backends.

    Registers explicitly instead of answering: only so can the version that enters Inductor's cache keys be given.
    """
    if name == "Scheduling" and "torch._inductor.codegen.common" in sys.modules:
        from mybackend.compile.registration import register_backend

        register_backend()


def _register(watched: str) -> None:
    from mybackend.compile import registration

    getattr(registration, WATCHED[watched])()


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, missing: set[str]) -> None:
        self._missing = missing

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._missing:
            return None
        self._missing.remove(name)
        if not self._missing:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """The module's own loader, with our registration after it."""

    def __init__(self, original: importlib.abc.Loader) -> None:
        self._original = original

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._original.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._original.exec_module(module)
        _register(module.__name__)
