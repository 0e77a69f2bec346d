// The part of scatter_elements that multiplies or takes the maximum or minimum: scatter_reduce and index_reduce.
//
// A file of its own because of the time it takes to compile. NaN wins over every number, as in ATen.
#include "csrc/kernels/scatter_walk.h"

namespace mybackend::kernels {

void scatter_reduce_elements(Stream stream, const IndexOperands& o, Update update) {
  using Reals = Join<Floats, Halves, Integers, Booleans>;
  const char* name = "scatter_reduce_";
  if (update == Update::Multiply)
    return visit<Join<Reals, Complexes>>(
        o.dtype, name, [&](auto type) { scatter::run<typename decltype(type)::type, scatter::Multiply>(stream, o); });
  visit<Reals>(o.dtype, name, [&](auto type) {
    using T = typename decltype(type)::type;
    if (update == Update::Maximum)
      scatter::run<T, scatter::Maximum>(stream, o);
    else
      scatter::run<T, scatter::Minimum>(stream, o);
  });
}

}  // namespace mybackend::kernels
