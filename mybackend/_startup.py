"""Start-up in order: check the build, load the C++ half, name the device, hang the module into torch, patch torch.

Imports nothing that `import torch` has not imported already: it runs inside every `import torch`.
"""

import importlib.util
import types

import torch

NAME = "mybackend"
failure: BaseException | None = None  # why an import of mybackend failed in this process


def load() -> None:
    """Loads mybackend._C, whose static initialisers register the kernels, and gives PrivateUse1 our name.

    Raises what an earlier import raised, if there was one.
    """
    if failure is not None:
        raise failure
    _check_build()
    current = torch._C._get_privateuse1_backend_name()
    if current not in ("privateuseone", NAME) or (current == NAME and hasattr(torch, NAME)):
        raise ImportError(
            f"PrivateUse1, the device type that mybackend uses, is already taken by '{current}'. Only one such backend "
            f"can be loaded into a process: uninstall one, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one "
            f"you want."
        )
    import mybackend._C  # noqa: F401

    if current != NAME:
        torch.utils.rename_privateuse1_backend(NAME)


def register(module: types.ModuleType) -> None:
    """Makes the package `torch.mybackend` and adds Tensor.mybackend(), .is_mybackend and their like."""
    torch._register_device_module(NAME, module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)

    from mybackend import _patches

    _patches.apply()

    from mybackend.autograd import engine

    engine.from_environment()


def _check_build() -> None:
    if importlib.util.find_spec("mybackend._build_info") is None:
        raise ImportError(
            "mybackend is not built. In its source directory run `make build`, or `pip install . --no-build-isolation`."
        )
    from mybackend._build_info import TORCH_VERSION

    if torch.__version__ != TORCH_VERSION:
        raise ImportError(
            f"mybackend was built against torch {TORCH_VERSION} but torch {torch.__version__} is installed. Rebuild: "
            f"`pip install . --no-build-isolation --force-reinstall --no-deps` in its source directory, or install "
            f"torch=={TORCH_VERSION}."
        )
