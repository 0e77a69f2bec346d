"""What test_opinfo.py knows to differ: GAPS[operator of OpInfo][dtype, or dtype-shapes] is the reason."""

import torch
from torch.torch_version import TorchVersion

GAPS: dict[str, dict[str, str]] = {
    name: dict.fromkeys(("float32", "bfloat16", "int64", "bool", "complex64"), "sparse")
    for name in ("sparse.mm.reduce", "sparse.sampled_addmm", "to_sparse")
}
for name in ("nn.functional.adaptive_avg_pool2d", "nn.functional.interpolate.area"):
    GAPS[name] = dict.fromkeys(
        ("float32-dynamic", "bfloat16-dynamic"), "Inductor's lowering compares symbolic sizes, on the CPU too"
    )
for name in ("native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update"):
    GAPS[name] = {"bfloat16": "saved statistics are float32, as on CUDA and in eager code here"}
for name in ("sort", "argsort"):
    GAPS[name] = dict.fromkeys(("bfloat16", "bool"), "the order of equal elements of an unstable sort")
for name in ("linalg.lstsq", "linalg.lstsq.grad_oriented"):
    GAPS[name] = dict.fromkeys(("float32", "complex64"), "no driver but gels, as on CUDA")
GAPS["narrow"] = dict.fromkeys(
    ("float32", "bfloat16", "int64", "bool", "complex64"), "Dynamo loses the symbol of a start that is on a device"
)
if TorchVersion(torch.__version__) < "2.12":
    for name in ("cdist", "nn.functional.pdist"):
        GAPS[name] = {"float32": "torch 2.11 refuses devices it does not know"}
