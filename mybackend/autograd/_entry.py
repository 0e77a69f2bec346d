"""Where Python enters the engine: what enable() writes into torch.*, and disable() takes back.

Needed as long as torch has no registration point for an engine on the Python side: `set_default_engine_stub` reaches
callers in C++ only.

- `Variable._execution_engine`: `torch.autograd.graph._engine_run_backward`, which `torch.autograd` holds under a second
  name, looks it up at every call, so both names and all who call `run_backward` themselves come here.
- three questions of torch._C about the running backward: upstream answers from thread-local variables whose setters are
  hidden in libtorch, where it would find the node that stands for our whole run.
- `set_autograd_compiler`: while compiled autograd is on, backward is handed to the stock engine, which holds its hook.
"""

from typing import Any

import torch

from mybackend import _C

__all__ = ["replace", "restore"]

_compiler = torch._C._dynamo.compiled_autograd
_questions = torch._C
_originals: dict[tuple[Any, str], Any] = {}


class _ImperativeEngine(torch._C._ImperativeEngine):
    """Upstream's engine object, whose run_backward is ours; queue_callback and is_checkpoint_valid work for both."""

    run_backward = staticmethod(_C.run_backward)  # type: ignore[assignment]


def replace() -> None:
    _write(torch.autograd.Variable, "_execution_engine", _ImperativeEngine())
    _write(_questions, "_current_autograd_node", _current_autograd_node)
    _write(_questions, "_current_graph_task_execution_order", _current_graph_task_execution_order)
    _write(_questions, "_will_engine_execute_node", _will_engine_execute_node)
    _write(_compiler, "set_autograd_compiler", _set_autograd_compiler)
    compiler, dynamic = _original(_compiler, "set_autograd_compiler")(None, False)
    _set_autograd_compiler(compiler, dynamic)


def restore() -> None:
    for (owner, name), value in _originals.items():
        setattr(owner, name, value)
    _originals.clear()


def _write(owner: Any, name: str, value: Any) -> None:
    _originals[owner, name] = getattr(owner, name)
    setattr(owner, name, value)


def _original(owner: Any, name: str) -> Any:
    """What `name` was, also for a caller who got hold of ours and calls it after restore()."""
    return _originals.get((owner, name)) or getattr(owner, name)


def _current_autograd_node() -> Any:
    node = _C.engine_current_node()
    return _original(_questions, "_current_autograd_node")() if node is None else node


def _current_graph_task_execution_order() -> list[Any]:
    order = _C.engine_execution_order()
    return _original(_questions, "_current_graph_task_execution_order")() if order is None else order


def _will_engine_execute_node(node: Any) -> bool:
    answer = _C.engine_will_execute(node)
    return _original(_questions, "_will_engine_execute_node")(node) if answer is None else answer


def _set_autograd_compiler(compiler: Any, dynamic: bool) -> tuple[Any, bool]:
    before: tuple[Any, bool] = _original(_compiler, "set_autograd_compiler")(compiler, dynamic)
    _C.engine_set_compiled_autograd(compiler is not None)
    return before
