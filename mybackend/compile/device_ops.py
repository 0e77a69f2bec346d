"""Lines of generated Python that concern the device: guards, streams, synchronisation."""

from __future__ import annotations

from torch._inductor.codegen.common import DeviceOpOverrides

__all__ = ["DeviceOps"]


class DeviceOps(DeviceOpOverrides):
    """An index may come as text, where the rank is only known when the code runs."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"from mybackend.compile.runtime import get_raw_stream as {name}"

    def set_device(self, device_idx: int | str) -> str:
        return f"torch.mybackend.set_device({device_idx})"

    def synchronize(self) -> str:
        return "torch.mybackend.synchronize()"

    def device_guard(self, device_idx: int | str) -> str:
        return f"torch.mybackend.device({device_idx})"

    def current_stream(self) -> str:
        return "torch.mybackend.current_stream()"

    def current_device_idx_expr(self) -> str:
        return "torch.mybackend.current_device()"

    def stream_handle(self, stream_name: str) -> str:
        return f"{stream_name}.native_handle"
