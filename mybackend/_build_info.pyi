# What the build writes into _build_info.py.
TORCH_VERSION: str
CUDA: bool
CUDA_ARCH: str
HOST_ISA: list[str]
COMPILER: str
