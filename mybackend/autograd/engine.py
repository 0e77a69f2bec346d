"""Choosing the engine. It belongs to the process: all threads see the change."""

import contextlib
import os
import threading
from collections.abc import Iterator

from mybackend import _C
from mybackend.autograd import _entry, policy, watching, workers

__all__ = ["disable", "enable", "is_enabled", "use_engine"]

_lock = threading.RLock()
_ENGINES = ("stock", "mybackend")


def enable() -> None:
    """Runs every backward that starts from now on, of any device, on mybackend's engine."""
    with _lock:
        if not _C.engine_installed():
            _entry.replace()
            _C.engine_install()


def disable() -> None:
    """Gives PyTorch its own engine back. A backward that runs meanwhile ends on the engine on which it began."""
    with _lock:
        if _C.engine_installed():
            _C.engine_uninstall()
            _entry.restore()


def is_enabled() -> bool:
    """Whether mybackend's engine runs backward."""
    return _C.engine_installed()


@contextlib.contextmanager
def use_engine(name: str) -> Iterator[None]:
    """Within the `with` block backward runs on the engine `name`, "mybackend" or "stock"; afterwards as before.

    Raises:
        ValueError: there is no engine of this name.
    """
    if name not in _ENGINES:
        raise ValueError(f"use_engine: expected one of {', '.join(map(repr, _ENGINES))}, but got {name!r}")
    before = is_enabled()
    _set(name == "mybackend")
    try:
        yield
    finally:
        _set(before)


def _set(enabled: bool) -> None:
    if enabled:
        enable()
    else:
        disable()


def from_environment() -> None:
    """Called once, when mybackend is imported: what MYBACKEND_ENGINE and its like ask for."""
    policy.from_environment()
    workers.from_environment()
    watching.start_from_environment()
    name = os.environ.get("MYBACKEND_ENGINE", "")
    if name not in ("", *_ENGINES):
        raise ValueError(f"MYBACKEND_ENGINE: expected one of {', '.join(_ENGINES)}, but got {name!r}")
    if name == "mybackend":
        enable()
    elif name == "":
        _C.on_first_use(enable)
