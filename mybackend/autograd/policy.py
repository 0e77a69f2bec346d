"""The order in which the engine runs nodes that may run: `policies()`, `set_policy()`, `use_policy()`, and policies of
one's own: `register_policy()`.

| policy     | order |
|------------|-------|
| `sequence` | upstream's: what forward made last goes first, leaves before all; ties as a binary heap leaves them |
| `stable`   | the same, but leaves that one node makes ready go in the order of that node's inputs |
| `memory`   | the node that frees most, or adds least, of what gradients hold goes first |

Gradients are the same but for rounding, where sums are added up in another order.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mybackend import _C
from mybackend._C import Candidate

__all__ = ["Candidate", "get_policy", "policies", "register_policy", "set_policy", "use_policy"]


def policies() -> list[str]:
    """Names of the policies that set_policy() takes, in the order in which they were registered."""
    return _C.engine_policies()


def register_policy(name: str, key: Callable[[Candidate], int] | Any) -> None:
    """Adds the policy `name`, for as long as the process lives: of the nodes that may run, the one with the largest key
    goes first.

    `key` is called once for each node that may run, with the GIL, by the thread that runs the node before it. It gets a
    `Candidate` and returns an int from 0 to 2**64 - 1:
        sequence   when forward made the node: a larger number was made later; 2**64 - 1 for a node that fills `.grad`
        bytes_in   of the gradients that the node takes
        bytes_out  of the gradients that it makes and that no other node has begun to add up
        arrival    how many nodes could run before this one could
    Instead of a function it may be a capsule named "mybackend::engine::core::Policy" with a pointer to an object of
    that class (csrc/engine/core/policy.h), which costs a virtual call instead of the GIL. It may never be freed.

    Raises:
        ValueError: there is a policy of this name.
        TypeError: `key` is neither a function nor such a capsule.
    """
    _C.engine_register_policy(name, key)


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
