// The CPU fallback: operators without a kernel of ours run on the CPU, counted by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace mybackend::aten {

// How often each operator ran on the CPU since the start or the last reset; names as in "aten::histc".
std::map<std::string, int64_t> fallbacks();
void reset_fallbacks();

}  // namespace mybackend::aten
