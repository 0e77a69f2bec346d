#include "csrc/aten/scalar.h"

#include <ATen/Dispatch_v2.h>

#include <cstring>

namespace mybackend::aten {

void hold(const c10::Scalar& value, DType dtype, char* bytes) {
  AT_DISPATCH_V2(static_cast<c10::ScalarType>(dtype), "mybackend scalar", AT_WRAP([&] {
                   const scalar_t held = value.to<scalar_t>();
                   std::memcpy(bytes, &held, sizeof(held));
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 AT_EXPAND(AT_FLOAT8_TYPES), c10::kHalf, c10::kBFloat16, c10::kComplexHalf, c10::kBool);
}

}  // namespace mybackend::aten
