// Anomaly mode: which node returned NaN, and which backward made a node.
#pragma once

#include "csrc/engine/node.h"

namespace mybackend::engine {

// Throws upstream's error if a gradient has a NaN.
void check_for_nan(const Node& node, const variable_list& outputs);

// Under create_graph: says of every node reachable from `outputs` and made since `first` (a sequence number of this
// thread) that `parent` made it, so that an error in it also shows the trace of what made it. Upstream asks the
// thread-local current node when a node is made, which here is the driver of the whole run.
void assign_parent(Node& parent, const variable_list& outputs, uint64_t first);

}  // namespace mybackend::engine
