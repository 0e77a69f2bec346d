// Checks what a node returned against what the nodes after it expect.
#pragma once

#include "csrc/engine/node.h"

namespace mybackend::engine {

// Brings the gradients into the shape, type and device that the edges expect, or throws with upstream's text.
// Gradients that conform already, which is nearly all, cost a comparison.
void validate(const Node& node, variable_list& outputs);

}  // namespace mybackend::engine
