#include "csrc/device/host_fork.h"

#include <pthread.h>

#include "csrc/device/host_capture.h"
#include "csrc/device/host_event.h"
#include "csrc/device/host_memory.h"
#include "csrc/device/host_registry.h"

namespace mybackend::device::host {
namespace {

// Every lock is taken before the fork, so that what it guards is consistent in the child. No code of the driver holds
// one of these while it takes another, hence any order is safe.
void prepare() {
  Registry::get().lock_for_fork();
  lock_memory_for_fork();
  lock_events_for_fork();
  lock_captures_for_fork();
}

void parent() {
  unlock_captures_after_fork();
  unlock_events_after_fork();
  unlock_memory_after_fork();
  Registry::get().unlock_after_fork();
}

void child() {
  reset_captures_in_child();
  reset_events_in_child();
  reset_memory_in_child();
  Registry::get().reset_in_child();
  Workers::get().forget_in_child();
}

}  // namespace

void watch_forks() {
  pthread_atfork(&prepare, &parent, &child);
}

}  // namespace mybackend::device::host
