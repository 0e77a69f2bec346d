#include "csrc/runtime/cuda_module.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "csrc/runtime/compiled_kernel.h"

namespace mybackend::runtime::cuda {
namespace {

// The few functions of the driver API that are used; names and signatures are CUDA's.
struct DriverApi {
  int (*library_load)(void** library, const void* code, void*, void*, unsigned, void*, void*, unsigned);
  int (*library_get_kernel)(void** kernel, void* library, const char* name);
  int (*launch)(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared_bytes, void* stream, void** parameters, void** extra);
  int (*error_string)(int error, const char** text);

  static const DriverApi& get() {
    static const DriverApi api = open();
    return api;
  }

  void check(int error, const std::string& what) const {
    if (error == 0) return;
    const char* text = nullptr;
    error_string(error, &text);
    TORCH_CHECK(false, "mybackend.compile: ", what, " failed: ", text == nullptr ? "unknown CUDA error" : text, " (",
                error, ")");
  }

 private:
  static DriverApi open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(library != nullptr, "mybackend.compile: CUDA's driver library cannot be opened: ", dlerror());
    DriverApi api{};
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      TORCH_CHECK(function != nullptr, "mybackend.compile: CUDA's driver has no ", name,
                  "; CUDA 12 or newer is needed");
    };
    find(api.library_load, "cuLibraryLoadData");
    find(api.library_get_kernel, "cuLibraryGetKernel");
    find(api.launch, "cuLaunchKernel");
    find(api.error_string, "cuGetErrorString");
    return api;
  }
};

void* library_of(const std::string& path) {
  static std::mutex lock;
  static std::unordered_map<std::string, void*> libraries;
  std::lock_guard<std::mutex> guard(lock);
  void*& library = libraries[path];
  if (library == nullptr) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> code{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    TORCH_CHECK(!code.empty(), "mybackend.compile: ", path, " cannot be read");
    code.push_back('\0');  // PTX is text
    DriverApi::get().check(
        DriverApi::get().library_load(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "loading " + path);
  }
  return library;
}

unsigned round_up_to_warps(int64_t threads) {
  return unsigned(std::clamp<int64_t>((threads + 31) / 32 * 32, 32, 512));
}

}  // namespace

void* load_function(const std::string& path, const std::string& name) {
  void* kernel = nullptr;
  DriverApi::get().check(DriverApi::get().library_get_kernel(&kernel, library_of(path), name.c_str()),
                         "finding kernel '" + name + "' in " + path);
  return kernel;
}

void launch_function(void* function, LaunchShape shape, int64_t items, int64_t work, Slot* slots, size_t slot_count,
                     device::Stream stream) {
  constexpr int64_t kMaxBlocks = (int64_t(1) << 31) - 1;
  unsigned threads = shape == LaunchShape::Lanes ? 128 : 256;
  if (shape == LaunchShape::Rows) threads = round_up_to_warps((work + 3) / 4);
  const int64_t blocks = shape == LaunchShape::Rows ? items : (items + threads - 1) / threads;
  std::vector<void*> parameters(slot_count);
  for (size_t i = 0; i < slot_count; i++) parameters[i] = slots + i;
  DriverApi::get().check(DriverApi::get().launch(function, unsigned(std::min(blocks, kMaxBlocks)), 1, 1, threads, 1, 1,
                                                 0, reinterpret_cast<void*>(stream), parameters.data(), nullptr),
                         "launching a compiled kernel");
}

}  // namespace mybackend::runtime::cuda
