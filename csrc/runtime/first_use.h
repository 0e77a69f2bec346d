// The first use of a device in this process.
#pragma once

namespace mybackend::runtime {

// `callback` is called once, by the thread that makes the first context (device.h), which may hold locks: it must not
// wait for anything.
void on_first_context(void (*callback)());

}  // namespace mybackend::runtime
