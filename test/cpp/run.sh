#!/bin/sh
# Builds and runs the C++ tests: all of them, or `plain`, `address` or `thread`.
set -eu
exec make -C "$(dirname "$0")" -j"$(nproc)" "${@:-all}"
