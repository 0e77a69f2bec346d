// Kernels that mybackend.compile has generated: loaded from a compiled object, put on the current stream.
//
// On the host driver an object is a shared library with one entry `void name_run(const void* slots, int64_t begin,
// int64_t end)` for each kernel: the items [begin, end) of a launch. Under CUDA it is a cubin (or PTX) loaded through
// the driver API, which is opened at run time. Every argument takes one slot of eight bytes; the first slot is the
// device's ErrorRecord, then come the call's arguments, then the numbers of the messages of the kernel's assertions.
//
// Ownership: a loaded object stays loaded for the life of the process, since work in flight may still be in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/runtime/device.h"

namespace mybackend::runtime {

union Slot {
  void* pointer;
  int64_t integer;
  double real;
};
static_assert(sizeof(Slot) == 8);

// How the items of a launch are spread over a GPU: an item is a thread's, a block's, or a lane's of an outer reduction.
enum class LaunchShape : int { Elements = 0, Rows = 1, Lanes = 2 };

// A number that is the product of constants (>= 0) and of integer arguments (-1 - their position).
using Product = std::vector<int64_t>;

struct LaunchPlan {
  std::string name;
  std::string signature;  // of the call's arguments: 'p' tensor, 'i' integer, 'd' number
  Product items;
  Product work;  // elements each item visits
  LaunchShape shape;
  int64_t unit;  // on the host, items that one thread has together
  bool can_fail;
  std::vector<std::string> messages;
};

class CompiledKernel {
 public:
  explicit CompiledKernel(LaunchPlan plan);

  const LaunchPlan& plan() const { return plan_; }
  size_t slots() const { return 1 + plan_.signature.size() + messages_.size(); }
  bool loaded() const { return entry_ != nullptr; }
  // Raises when the object at `path` cannot be loaded or lacks this kernel.
  void load(const std::string& path);
  // `slots` holds the call's arguments from slots[1] on; the others are filled in here. Precondition: loaded.
  void launch(DeviceIndex device, Slot* slots) const;

 private:
  int64_t evaluate(const Product& product, const Slot* slots) const;

  LaunchPlan plan_;
  std::vector<int64_t> messages_;
  void* entry_ = nullptr;
};

}  // namespace mybackend::runtime
