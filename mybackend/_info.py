"""`python -m mybackend info`: versions, driver and devices, for a bug report."""

import os
import platform

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    import torch

    import mybackend
    from mybackend import _build_info

    rows = [
        ("torch", torch.__version__),
        ("built against", _build_info.TORCH_VERSION),
        ("python", platform.python_version()),
        ("compiler", _build_info.COMPILER),
        ("host kernels", ", ".join(_build_info.HOST_ISA)),
        ("CUDA half", f"built for {_build_info.CUDA_ARCH}" if _build_info.CUDA else "not built"),
        ("package", os.path.dirname(mybackend.__file__)),
    ]
    try:
        rows.append(("driver", mybackend.driver()))
    except RuntimeError as error:
        rows.append(("driver", f"unavailable: {error}"))
    for index in range(mybackend.device_count()):
        properties = mybackend.get_device_properties(index)
        memory = properties.total_memory / 2**30
        rows.append(
            (
                f"mybackend:{index}",
                f"{properties.name}, {properties.multi_processor_count} processors, {memory:.1f} GiB",
            )
        )
    rows += [(name, value) for name, value in sorted(os.environ.items()) if name.startswith("MYBACKEND_")]
    for name, value in rows:
        print(f"{name + ':':16} {value}")
    if torch.version.cuda is not None:
        print(
            "\nThis torch has CUDA. torch knows one accelerator in a process, and with mybackend loaded that is "
            "mybackend: use a CPU-only torch, or TORCH_DEVICE_BACKEND_AUTOLOAD=0 for programs that use torch.cuda."
        )
