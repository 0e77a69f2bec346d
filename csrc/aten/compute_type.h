// The scalar type arithmetic is done in: float for half and bfloat16, everything else in itself.
#pragma once

#include "csrc/aten/iterator.h"

namespace mybackend::aten {

inline at::ScalarType compute_type(at::ScalarType type) {
  return static_cast<at::ScalarType>(compute_dtype(to_dtype(type)));
}

}  // namespace mybackend::aten
