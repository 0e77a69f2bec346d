"""Which autograd engine runs backward: PyTorch's or this package's, for every device of the process.

    mybackend.autograd.enable()                    # from here on every backward runs on mybackend's engine
    with mybackend.autograd.use_engine("stock"):   # but not these
        loss.backward()

The first use of the mybackend device enables it as well, unless MYBACKEND_ENGINE=stock; MYBACKEND_ENGINE=mybackend
enables it as soon as mybackend is imported. Results, order of execution and errors are those of PyTorch's engine;
docs/engine.md tells what differs.

    with mybackend.autograd.trace() as trace:      # what did it do?
        loss.backward()
    print(trace.explain())
"""

from mybackend.autograd.engine import disable, enable, is_enabled, use_engine
from mybackend.autograd.policy import Candidate, get_policy, policies, register_policy, set_policy, use_policy
from mybackend.autograd.tracing import Trace, explain, trace
from mybackend.autograd.watching import set_watchdog, watchdog
from mybackend.autograd.workers import get_cpu_workers, set_cpu_workers, use_cpu_workers

__all__ = [
    "Candidate",
    "Trace",
    "disable",
    "enable",
    "explain",
    "get_cpu_workers",
    "get_policy",
    "is_enabled",
    "policies",
    "register_policy",
    "set_cpu_workers",
    "set_policy",
    "set_watchdog",
    "trace",
    "use_cpu_workers",
    "use_engine",
    "use_policy",
    "watchdog",
]
