// TensorLists: what the caller of a multi-tensor kernel passes. Tensor t of every list has numel[t] elements, which lie
// one after the other and in the same order in all lists; the tensors of one list share a dtype.
//
// Ownership: pointers are borrowed for the call; what a launch needs of them travels with the kernel.
#pragma once

#include <cstdint>

#include "csrc/device/dtype.h"

namespace mybackend {

struct TensorLists {
  static constexpr int kMostLists = 5;
  int64_t count = 0;                   // tensors in a list
  const int64_t* numel = nullptr;      // numel[tensor]
  void* const* data[kMostLists] = {};  // data[list][tensor]
  DType dtype[kMostLists] = {};        // of a list's tensors
};

}  // namespace mybackend
