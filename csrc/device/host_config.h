// What the environment asks of the host driver; read once, on first use.
//
//   MYBACKEND_HOST_DEVICES=2         devices shown, 0 to 64
//   MYBACKEND_HOST_MEMORY=4G         memory of each device: bytes, or with K, M, G, T (powers of 1024)
//   MYBACKEND_HOST_STREAMS=inline    or async: no launch runs inline, each is delayed at random
//   MYBACKEND_HOST_SEED=0            of those delays
//   MYBACKEND_HOST_ISA=v3|v4         kernel library to load (host_kernels.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mybackend::device::host {

constexpr int kMostDevices = 64;

struct Config {
  int devices;
  size_t memory_per_device;
  bool async;
  uint64_t seed;
  std::string isa;  // empty: the best this CPU has
};

// Throws std::runtime_error that names the variable when a value makes no sense.
const Config& config();

}  // namespace mybackend::device::host
