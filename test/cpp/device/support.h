// Shared words of the driver's tests.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "csrc/device/api.h"
#include "csrc/device/host_kernels.h"
#include "csrc/device/portable.h"
#include "test/cpp/check.h"

namespace test {

using namespace mybackend::device;

// The host driver with kernels that are linked into the test.
inline const Api& driver() {
  static const Api& table = []() -> const Api& {
    host_runtime_slot() = &host::kernel_runtime();
    return host_api();
  }();
  return table;
}

#define CHECK_OK(expression) CHECK_EQ(expression, ::mybackend::device::Status::Success)

struct OwnStream {
  OwnStream() { CHECK_OK(driver().stream_create(&handle, 0)); }
  ~OwnStream() { CHECK_OK(driver().stream_destroy(handle)); }
  operator Stream() const { return handle; }
  Stream handle = nullptr;
};

struct OwnEvent {
  explicit OwnEvent(unsigned flags = kEventDefault) { CHECK_OK(driver().event_create(&handle, flags)); }
  ~OwnEvent() { CHECK_OK(driver().event_destroy(handle)); }
  operator Event() const { return handle; }
  Event handle = nullptr;
};

template <class T>
struct OwnMemory {
  explicit OwnMemory(size_t count) { CHECK_OK(driver().malloc(reinterpret_cast<void**>(&data), count * sizeof(T))); }
  ~OwnMemory() { CHECK_OK(driver().free(data)); }
  operator T*() const { return data; }
  T* data = nullptr;
};

// Keeps a stream busy from `hold` until `open`: sent by a thread of its own, since on an idle stream it runs inline.
class Gate {
 public:
  ~Gate() { open(); }
  void hold(Stream stream) {
    sender_ = std::thread([=, this] {
      CHECK_OK(driver().launch_host_function(stream, [](void* self) { static_cast<Gate*>(self)->wait(); }, this));
    });
    reached_.wait(false);
  }
  void open() {
    open_ = true;
    open_.notify_all();
    if (sender_.joinable()) sender_.join();
    done_.wait(false);
  }

 private:
  void wait() {
    reached_ = true;
    reached_.notify_all();
    open_.wait(false);
    done_ = true;
    done_.notify_all();
  }
  std::atomic<bool> reached_{false}, open_{false}, done_{false};
  std::thread sender_;
};

// data[i] = data[i] * 3 + add: its effect depends on the order in which it runs.
struct Step {
  int64_t* data;
  int64_t n;
  int64_t add;
  MB_DEVICE void operator()(Block block) const {
    block.each(n, [=, this](int64_t i) { data[block.index * n + i] = data[block.index * n + i] * 3 + add; });
  }
};

inline void send_step(Stream stream, int64_t* data, int64_t add) {
  launch(stream, {1, 32, 1}, Step{data, 1, add});
}

// Copies one number, so that the order of two streams can be seen.
struct Forward {
  const int64_t* from;
  int64_t* to;
  MB_DEVICE void operator()(Block block) const {
    block.each(1, [=, this](int64_t) { *to = *from; });
  }
};

struct Assign {
  int64_t* to;
  int64_t value;
  MB_DEVICE void operator()(Block block) const {
    block.each(1, [=, this](int64_t) { *to = value; });
  }
};

template <class T>
T read(const T* device, Stream stream = nullptr) {
  T value{};
  CHECK_OK(driver().memcpy_async(&value, device, sizeof(T), CopyKind::DeviceToHost, stream));
  CHECK_OK(driver().stream_synchronize(stream));
  return value;
}

template <class T>
void write(T* device, T value, Stream stream = nullptr) {
  CHECK_OK(driver().memcpy_async(device, &value, sizeof(T), CopyKind::HostToDevice, stream));
  CHECK_OK(driver().stream_synchronize(stream));
}

}  // namespace test
