"""Which autograd engine runs backward: PyTorch's or this package's, for every device of the process.

    mybackend.autograd.enable()                    # from here on every backward runs on mybackend's engine
    with mybackend.autograd.use_engine("stock"):   # but not these
        loss.backward()

The first use of the mybackend device enables it as well, unless MYBACKEND_ENGINE=stock; MYBACKEND_ENGINE=mybackend
enables it as soon as mybackend is imported. Results, order of execution and errors are those of PyTorch's engine;
docs/engine.md tells what differs.
"""

from mybackend.autograd.engine import disable, enable, is_enabled, use_engine

__all__ = ["disable", "enable", "is_enabled", "use_engine"]
