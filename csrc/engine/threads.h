// The engine's threads: the pool for deep reentrant backwards, and what a fork does to it.
#pragma once

#include <functional>

#include "csrc/engine/interrupt.h"

namespace mybackend::engine {

// Runs `work` on a thread of the pool, with the nesting depth of the caller, and waits. Meanwhile signals that reach
// the main thread are passed on through `interrupt`.
void run_on_another_thread(const std::function<void()>& work, Interrupt& interrupt);

}  // namespace mybackend::engine
