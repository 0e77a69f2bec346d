// The sum of the gradients that arrive at one input of a node.
#pragma once

#include "csrc/engine/node.h"

namespace mybackend::engine {

// Adds `gradient` to `sum`, or moves it there if it is the first. An undefined gradient adds nothing.
// Upstream's rule: never changes a tensor that anyone else holds; adds in place where the engine holds the last
// reference to a dense tensor and no graph is recorded.
void accumulate_next(Tensor& sum, Tensor&& gradient);

inline void accumulate(Tensor& sum, Tensor&& gradient) {
  if (!sum.defined()) {
    sum = std::move(gradient);
  } else if (gradient.defined()) {
    accumulate_next(sum, std::move(gradient));
  }
}

}  // namespace mybackend::engine
