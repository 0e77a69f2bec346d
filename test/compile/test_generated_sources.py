"""The same generated text compiles for a GPU: a sample here, every source of the suite under `make nvcc-sources`."""

from __future__ import annotations

import shutil

import pytest
import torch
import torch.nn.functional as F
from compile_for_gpu import compile_for_gpu


def gather(x, w, i):
    padded = F.pad(x, (1, 0))[:9, None, :8]
    return F.embedding(i, w).half().float() + padded, torch.zeros_like(w).index_add(0, i[0], x[:8, :8])


SAMPLE = {
    "pointwise": lambda x, w, i: (x.sin() * x.bfloat16()).tanh() + torch.special.erfcx(x),
    "rows": lambda x, w, i: (x.softmax(-1), x.argmax(1), x.var(1), F.layer_norm(x, (70,))),
    "lanes": lambda x, w, i: (x.softmax(0), x.argmin(0), x.std(0), (x > 0).any(0)),
    "indices": gather,
    "scans": lambda x, w, i: (x.cumsum(1), x.bfloat16().cumsum(0), x.cummax(1), x.softmax(1).logcumsumexp(1)),
    "tiles": lambda x, w, i: (x.t() * x.view(70, 33), x.bfloat16().t() + x.view(70, 33)),
    "chunks": lambda x, w, i: (x[:, :64].expand(10, 33, 64) * 2, x[:, :64].expand(10, 33, 64).bfloat16() + 1),
    "segments": lambda x, w, i: torch._foreach_mul(torch._foreach_add([x, w, x.t()], 1), [2.0, 3.0, 4.0]),
    "random": lambda x, w, i: F.dropout(x, 0.5) + torch.randn_like(x),
}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_source_compiles_for_a_gpu(device, name, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x, w, i = torch.randn(33, 70, device=device), torch.randn(50, 8, device=device), torch.randint(0, 50, (9, 8))
    torch.compile(SAMPLE[name], fullgraph=True)(x, w, i.to(device))
    torch.mybackend.synchronize()
    sources = list((tmp_path / "mybackend").glob("*.cpp"))
    assert sources
    assert [compile_for_gpu(source) for source in sources] == [None] * len(sources)
