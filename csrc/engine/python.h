// What the engine needs of Python, as a table that the bindings fill: this layer is linked without it.
// Every entry has a default that does nothing, so that the engine also serves a process without Python.
#pragma once

namespace mybackend::engine {

struct Python {
  bool (*holds_gil)() = [] { return false; };
  // Whether this is the thread on which Python runs signal handlers.
  bool (*is_main_thread)() = [] { return false; };
  // Runs pending signal handlers; throws what they raise. Only on the main thread, without the GIL.
  void (*check_signals)() = [] {};
  // Gives a thread of ours a Python thread state for as long as it lives: a pending exception lives in it.
  void* (*attach_thread)() = []() -> void* { return nullptr; };
  void (*detach_thread)(void* state) = [](void*) {};
  // Takes the GIL and gives it back: how long that takes is what a node in Python would wait.
  void (*wait_for_gil)() = [] {};
  // Makes the caller's contextvars current on this thread of ours; the caller's are in torch's thread-local objects.
  void* (*enter_context)() = []() -> void* { return nullptr; };
  void (*leave_context)(void* context) = [](void*) {};
};

Python& python();

}  // namespace mybackend::engine
