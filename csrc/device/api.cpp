// Which driver is in use: a third party's, the one MYBACKEND_DRIVER names, a GPU that answers, else the host.
#include "csrc/device/api.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>

#include "csrc/device/library_path.h"

namespace mybackend::device {
namespace {

std::atomic<const Api*> in_use{nullptr};
std::mutex choosing;
const Api* installed = nullptr;  // by set_driver; guarded by `choosing`

constexpr const char* kCudaLibrary = "libmb_driver_cuda.so";

// The CUDA table when its library is there and a GPU answers; otherwise nullptr, and `why` says what is missing.
const Api* find_cuda(std::string* why) {
  const std::string path = beside(reinterpret_cast<const void*>(&api), kCudaLibrary);
  // Never closed once opened: kernels stay registered with the CUDA runtime inside.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = std::string("the CUDA half of mybackend cannot be loaded (it is built where nvcc is found): ") + dlerror();
    return nullptr;
  }
  const auto table = reinterpret_cast<const Api* (*)()>(dlsym(library, "mb_driver_table"));
  if (table == nullptr) {
    *why = path + " is not a driver of this version, rebuild mybackend";
    return nullptr;
  }
  const Api* cuda = table();
  int count = 0;
  const Status status = cuda->get_device_count(&count);
  if (status == Status::Success && count > 0) return cuda;
  cuda->get_last_error();
  *why = std::string("no GPU answers: ") + (status == Status::Success ? "none found" : cuda->get_error_string(status));
  return nullptr;
}

const Api& choose() {
  if (installed != nullptr) return *installed;
  const char* variable = std::getenv("MYBACKEND_DRIVER");
  const std::string forced = variable == nullptr ? "" : variable;
  if (!forced.empty() && forced != "host" && forced != "cuda")
    throw std::runtime_error("MYBACKEND_DRIVER='" + forced + "' is unknown: expected host or cuda");
  if (forced != "host") {
    std::string why;
    if (const Api* cuda = find_cuda(&why)) return *cuda;
    if (forced == "cuda") throw std::runtime_error("MYBACKEND_DRIVER=cuda cannot be used: " + why);
  }
  return host_api();
}

const Api& choose_once() {
  std::lock_guard lock(choosing);
  if (const Api* chosen = in_use.load(std::memory_order_relaxed)) return *chosen;
  const Api& chosen = choose();
  in_use.store(&chosen, std::memory_order_release);
  return chosen;
}

}  // namespace

const Api& api() {
  const Api* chosen = in_use.load(std::memory_order_acquire);
  return chosen != nullptr ? *chosen : choose_once();
}

void set_driver(const Api& table) {
  std::lock_guard lock(choosing);
  if (in_use.load(std::memory_order_relaxed) != nullptr)
    throw std::logic_error(
        "set_driver was called after mybackend's driver had been chosen; install it before first use");
  installed = &table;
}

}  // namespace mybackend::device
