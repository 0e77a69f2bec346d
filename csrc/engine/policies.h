// Policies by name: the built-in ones and those that plugins add. None is ever taken away, since a backward may still
// use it. Threads: all of it may be called by any.
#pragma once

#include <string>
#include <vector>

#include "csrc/engine/core/policy.h"

namespace mybackend::engine {

// `policy` has to live until the process ends. Throws a ValueError if `name` is empty or taken.
void register_policy(const std::string& name, const core::Policy* policy);

// In the order in which they were registered, the built-in ones first.
std::vector<std::string> policy_names();

// Null stands for "sequence", upstream's order, which needs no policy. Throws a ValueError if there is none.
const core::Policy* policy_named(const std::string& name);
std::string name_of(const core::Policy* policy);

}  // namespace mybackend::engine
