#include "csrc/device/host_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "csrc/device/host_config.h"
#include "csrc/device/host_device.h"
#include "csrc/device/host_parallel.h"
#include "csrc/device/host_stream.h"
#include "csrc/device/library_path.h"

namespace mybackend::device::host {
namespace {

// Pieces of `grain` blocks or more that begin at multiples of `unit`.
void run_kernel(const void* kernel, Body body, int64_t blocks, int64_t grain, int64_t unit) {
  if (blocks <= grain || blocks <= unit) return body(kernel, 0, blocks);
  struct Pieces {
    const void* kernel;
    Body body;
    int64_t blocks, unit;
  } pieces{kernel, body, blocks, unit};
  parallel_for(
      0, (blocks + unit - 1) / unit, (grain + unit - 1) / unit,
      [](void* ctx, int64_t begin, int64_t end) {
        const Pieces& p = *static_cast<const Pieces*>(ctx);
        p.body(p.kernel, begin * p.unit, std::min(end * p.unit, p.blocks));
      },
      &pieces);
}

// A launch that could not run inline, with its own copy of the kernel.
class KernelWork final : public Work {
 public:
  KernelWork(const void* kernel, size_t bytes, Body body, int64_t blocks, int64_t grain, int64_t unit)
      : kernel_(static_cast<std::byte*>(::operator new(bytes, kAlignment))),
        body_(body),
        blocks_(blocks),
        grain_(grain),
        unit_(unit) {
    std::memcpy(kernel_.get(), kernel, bytes);
  }
  void run() override { run_kernel(kernel_.get(), body_, blocks_, grain_, unit_); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Release {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  std::unique_ptr<std::byte, Release> kernel_;
  Body body_;
  int64_t blocks_, grain_, unit_;
};

void launch(Stream handle, const void* kernel, size_t bytes, Body body, int64_t blocks, int64_t grain) {
  launch_in_units(handle, kernel, bytes, body, blocks, grain, 1);
}

constexpr HostRuntime runtime{&launch};

#if defined(__x86_64__)
bool can_run(int level) {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("movbe") &&
                  __builtin_cpu_supports("lzcnt");
  if (level == 3) return v3;
  return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int choose_level() {
  const std::string& forced = config().isa;
  if (forced.empty()) return can_run(4) ? 4 : can_run(3) ? 3 : 0;
  const int level = forced == "v3" ? 3 : forced == "v4" ? 4 : 0;
  if (level == 0) throw std::runtime_error("MYBACKEND_HOST_ISA='" + forced + "' is not understood: expected v3 or v4");
  if (!can_run(level))
    throw std::runtime_error("MYBACKEND_HOST_ISA=" + forced + ", but this CPU cannot run x86-64-" + forced + " code");
  return level;
}

std::string library_file() {
  const int level = choose_level();
  if (level == 0)
    throw std::runtime_error(
        "mybackend's host driver needs a CPU with x86-64-v3 (AVX2, FMA, BMI, F16C); this one lacks it");
  return "libmb_kernels_host_v" + std::to_string(level) + ".so";
}
#else
int choose_level() {
  return 0;
}
std::string library_file() {
  return "libmb_kernels_host_native.so";
}
#endif

using FindFunction = void* (*)(const char*);

FindFunction open_library() {
  const std::string path = beside(&runtime, library_file().c_str());
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw std::runtime_error("mybackend's host kernel library cannot be loaded, rebuild mybackend: " +
                             std::string(dlerror()));
  auto init = reinterpret_cast<void (*)(const HostRuntime*)>(dlsym(library, "mb_kernel_library_init"));
  auto find = reinterpret_cast<FindFunction>(dlsym(library, "mb_kernel_library_find"));
  if (init == nullptr || find == nullptr) {
    dlclose(library);
    throw std::runtime_error("mybackend: " + path + " is not a kernel library of this version, rebuild mybackend");
  }
  init(&runtime);
  return find;
}

}  // namespace

int isa_level() {
  static const int level = choose_level();
  return level;
}

void* find_kernel(const char* name) {
  static const FindFunction find = open_library();
  return find(name);
}

const HostRuntime& kernel_runtime() {
  return runtime;
}

void launch_in_units(Stream handle, const void* kernel, size_t bytes, Body body, int64_t blocks, int64_t grain,
                     int64_t unit) {
  StreamHandle& stream = resolve(handle);
  if (Inline own{stream}) [[likely]] {
    run_kernel(kernel, body, blocks, grain, unit);
    return;
  }
  send(stream, std::make_unique<KernelWork>(kernel, bytes, body, blocks, grain, unit));  // a failure is the last error
}

}  // namespace mybackend::device::host
