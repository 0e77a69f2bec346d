"""The order in which the engine runs nodes that may run: `policies()`, `set_policy()`, `use_policy()`.

| policy     | order |
|------------|-------|
| `sequence` | upstream's: what forward made last goes first, leaves before all; ties as a binary heap leaves them |
| `stable`   | the same, but leaves that one node makes ready go in the order of that node's inputs |
| `memory`   | the node that frees most, or adds least, of what gradients hold goes first |

Gradients are the same but for rounding, where sums are added up in another order.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mybackend import _C

__all__ = ["get_policy", "policies", "set_policy", "use_policy"]


def policies() -> list[str]:
    """Names of the policies that set_policy() takes."""
    return ["sequence", "stable", "memory"]


def get_policy() -> str:
    """The policy of backwards that begin now; `sequence` unless something else was set."""
    return _C.engine_policy()


def set_policy(name: str) -> None:
    """Chooses the policy of all backwards that begin from now on. Raises ValueError if there is none of this name."""
    _C.engine_set_policy(name)


@contextmanager
def use_policy(name: str) -> Iterator[None]:
    """set_policy() for a `with` block."""
    before = get_policy()
    set_policy(name)
    try:
        yield
    finally:
        set_policy(before)


def from_environment() -> None:
    """Sets what MYBACKEND_ENGINE_POLICY asks for; called when mybackend is imported."""
    name = os.environ.get("MYBACKEND_ENGINE_POLICY", "")
    if name and name not in policies():
        raise ValueError(f"MYBACKEND_ENGINE_POLICY={name!r}: expected one of {', '.join(policies())}")
    if name:
        set_policy(name)
