// Generator: Philox-4x32-10 as a counter, one default generator for each device.
//
// State is (seed, offset), 16 bytes, the layout of CUDA's. The offset counts 32-bit words already drawn from each
// Philox subsequence and is a multiple of 4. A kernel that fills n elements gives element (or group of elements) i
// subsequence i and reserves the words it draws from each:
//
//   const auto [seed, offset] = philox(generator, words);
//
// so its numbers depend on seed, offset and index, never on the driver, the number of threads or the block size.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "csrc/runtime/device.h"

namespace mybackend::runtime {

struct PhiloxState {
  uint64_t seed;
  uint64_t offset;
};

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(DeviceIndex device);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override { return offset_; }
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Takes `words` words of every subsequence. The caller holds mutex_.
  PhiloxState reserve(uint64_t words);

  static c10::DeviceType device_type() { return kDeviceType; }

 private:
  GeneratorImpl* clone_impl() const override;

  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

const at::Generator& default_generator(DeviceIndex device = -1);
at::Generator make_generator(DeviceIndex device = -1);

// Reserves `words` words of every subsequence of the generator (nullopt: the default one of the current device), under
// its mutex. Raises for a generator of another device, and during graph capture, where replays would repeat the
// numbers.
PhiloxState philox(const std::optional<at::Generator>& generator, uint64_t words);

}  // namespace mybackend::runtime
