#include "csrc/runtime/compiled_kernel.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "csrc/device/host_kernels.h"
#include "csrc/runtime/cuda_module.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {
namespace {

// A piece of fewer elements than this costs more to hand to another core than to run.
constexpr int64_t kGrain = 32768;

bool on_host() {
  static const bool host = std::strcmp(device::api().name, "host") == 0;
  return host;
}

void* find_in_library(const std::string& path, const std::string& name) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  TORCH_CHECK(library != nullptr, "mybackend.compile: a compiled kernel cannot be loaded: ", dlerror());
  void* entry = dlsym(library, (name + "_run").c_str());
  TORCH_CHECK(entry != nullptr, "mybackend.compile: ", path, " has no kernel '", name, "'; remove that file");
  return entry;
}

}  // namespace

CompiledKernel::CompiledKernel(LaunchPlan plan) : plan_(std::move(plan)) {
  for (const std::string& message : plan_.messages) messages_.push_back(remember_message(message));
}

void CompiledKernel::load(const std::string& path) {
  entry_ = on_host() ? find_in_library(path, plan_.name) : cuda::load_function(path, plan_.name);
}

int64_t CompiledKernel::evaluate(const Product& product, const Slot* slots) const {
  int64_t value = 1;
  for (int64_t factor : product) value *= factor >= 0 ? factor : slots[-factor].integer;
  return value;
}

void CompiledKernel::launch(DeviceIndex device, Slot* slots) const {
  const int64_t items = evaluate(plan_.items, slots);
  if (items <= 0) return;
  const int64_t work = std::max<int64_t>(1, evaluate(plan_.work, slots));
  slots[0].pointer = error_record(device);
  for (size_t i = 0; i < messages_.size(); i++) slots[1 + plan_.signature.size() + i].integer = messages_[i];
  const DeviceScope scope(device);
  const device::Stream stream = current_stream(device);
  if (on_host()) {
    device::host::launch_in_units(stream, slots, this->slots() * sizeof(Slot),
                                  reinterpret_cast<device::host::Body>(entry_), items,
                                  std::max<int64_t>(1, kGrain / work), plan_.unit);
  } else {
    cuda::launch_function(entry_, plan_.shape, items, work, slots, this->slots(), stream);
  }
  if (plan_.can_fail) check_device_errors(device);
}

}  // namespace mybackend::runtime
