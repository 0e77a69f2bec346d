"""Reusable checks for a device backend and for plugins: OpInfo samples on a device against torch's CPU."""

from mybackend.testing.opinfo import Case, cases, check_backward, check_forward

__all__ = ["Case", "cases", "check_backward", "check_forward"]
