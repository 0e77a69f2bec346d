// The clock of the engine's records.
#pragma once

#include <cstdint>

namespace mybackend::engine {

int64_t now_ns();  // CLOCK_MONOTONIC, as Python's time.monotonic_ns()

}  // namespace mybackend::engine
