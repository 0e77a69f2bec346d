// A forked child can use the host driver: it inherits memory and handles, not the workers and not their pending work.
#pragma once

namespace mybackend::device::host {

// Called once, when the registry is made.
void watch_forks();

}  // namespace mybackend::device::host
