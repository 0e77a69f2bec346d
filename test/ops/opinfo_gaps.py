"""What test_opinfo.py knows to be missing: a row is taken away when the operator is served.

GAPS: (operator of OpInfo, check) -> what is wrong. The check is a dtype's name for results, or gradient, out, in_place,
errors. FALLBACKS: operators of ATen that the counted CPU fallback runs.
"""

GAPS = {
    ("fft.hfft", "float32"): "the process crashes",
    ("matrix_exp", "float32"): "refused: tensors on two devices",
    ("nn.functional.rrelu", "float32"): "no kernel: aten::rrelu_with_noise",
    ("sparse.mm.reduce", "float32"): "sparse",
    ("sparse.sampled_addmm", "float32"): "sparse",
}

FALLBACKS = frozenset(
    {
        "aten::channel_shuffle",
        "aten::cholesky",
        "aten::multi_margin_loss",
        "aten::multilabel_margin_loss_forward",
        "aten::segment_reduce",
    }
)
