#include "csrc/runtime/generator.h"

#include <ATen/Utils.h>

#include <array>
#include <cstring>
#include <mutex>

#include "csrc/runtime/stream.h"

namespace mybackend::runtime {
namespace {

constexpr size_t kStateBytes = sizeof(uint64_t) + sizeof(int64_t);

}  // namespace

GeneratorImpl::GeneratorImpl(DeviceIndex device)
    : c10::GeneratorImpl(c10::Device(kDeviceType, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void GeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t GeneratorImpl::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom(true);
  set_current_seed(random);
  return random;
}

void GeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
  offset_ = offset;
}

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  const size_t bytes = static_cast<size_t>(state.numel());
  // As on CUDA, a state may be the seed alone.
  TORCH_CHECK(bytes == kStateBytes || bytes == sizeof(uint64_t), "RNG state is wrong size");
  const auto* data = static_cast<const uint8_t*>(state.data());
  uint64_t seed = 0, offset = 0;
  std::memcpy(&seed, data, sizeof(seed));
  if (bytes == kStateBytes) std::memcpy(&offset, data + sizeof(seed), sizeof(offset));
  set_current_seed(seed);
  set_offset(offset);
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  const at::Tensor state = at::detail::empty_cpu({static_cast<int64_t>(kStateBytes)}, at::kByte, std::nullopt,
                                                 std::nullopt, std::nullopt, std::nullopt);
  auto* data = static_cast<uint8_t*>(state.data_ptr());
  std::memcpy(data, &seed_, sizeof(seed_));
  std::memcpy(data + sizeof(seed_), &offset_, sizeof(offset_));
  return state.getIntrusivePtr();
}

PhiloxState GeneratorImpl::reserve(uint64_t words) {
  const PhiloxState state{seed_, offset_};
  offset_ += (words + 3) / 4 * 4;
  return state;
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  auto* copy = new GeneratorImpl(device().index());
  copy->seed_ = seed_;
  copy->offset_ = offset_;
  return copy;
}

const at::Generator& default_generator(DeviceIndex device) {
  static std::array<at::Generator, kMaxDevices>* generators = new std::array<at::Generator, kMaxDevices>;
  static std::array<std::once_flag, kMaxDevices> made;
  const DeviceIndex index = resolve_device_index(device);
  std::call_once(made[index], [&] { (*generators)[index] = at::make_generator<GeneratorImpl>(index); });
  return (*generators)[index];
}

at::Generator make_generator(DeviceIndex device) {
  return at::make_generator<GeneratorImpl>(resolve_device_index(device));
}

PhiloxState philox(const std::optional<at::Generator>& generator, uint64_t words) {
  const DeviceIndex device = current_device();
  TORCH_CHECK(!is_capturing(current_stream(device)),
              "mybackend: random numbers cannot be drawn while a graph is captured: every replay would repeat them");
  GeneratorImpl* impl = at::get_generator_or_default<GeneratorImpl>(generator, default_generator(device));
  TORCH_CHECK(impl->device().index() == device, "Expected a generator of device mybackend:", static_cast<int>(device),
              " but found ", impl->device());
  std::lock_guard<std::mutex> guard(impl->mutex_);
  return impl->reserve(words);
}

}  // namespace mybackend::runtime
