// Number: a scalar argument of a kernel, already rounded to the type the kernel computes in.
#pragma once

#include <cstring>

#include "csrc/device/dtype.h"

namespace mybackend {

struct Number {
  alignas(16) char bytes[16];

  // T is the compute type the number was made for (csrc/aten/scalar.h).
  template <class T>
  T as() const {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
};

}  // namespace mybackend
