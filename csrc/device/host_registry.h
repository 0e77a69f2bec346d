// All streams of the host driver. Made on first use, never destroyed: workers may outlive main.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "csrc/device/host_stream.h"

namespace mybackend::device::host {

class Registry {
 public:
  static Registry& get();

  StreamHandle& default_stream(int device) { return *default_streams_[size_t(device)]; }
  std::shared_ptr<StreamHandle> add(int device);
  void remove(const StreamHandle* stream);
  std::vector<std::shared_ptr<StreamHandle>> all();
  bool idle(int device);

  void lock_for_fork();
  void unlock_after_fork();
  void reset_in_child();

 private:
  Registry();

  std::mutex mutex_;
  std::vector<std::shared_ptr<StreamHandle>> streams_;
  std::vector<std::shared_ptr<StreamHandle>> default_streams_;  // constant after construction
  int next_id_ = 0;
};

// Workers that are serving a stream; at process exit they are asked to stop, and are waited for a moment.
class Workers {
 public:
  static Workers& get();

  void started();
  void ended();
  void forget_in_child();

 private:
  static void stop_at_exit();

  std::atomic<int> running_{0};
  std::once_flag at_exit_;
};

}  // namespace mybackend::device::host
