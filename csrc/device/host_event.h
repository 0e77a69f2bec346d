// Events of the host driver. A record on an idle stream is complete at once and costs no allocation; otherwise the
// event shares a Completion with the stream's queue, so it may be recorded again or destroyed while that is pending.
#pragma once

#include "csrc/device/api.h"

namespace mybackend::device::host {

void lock_events_for_fork();
void unlock_events_after_fork();
void reset_events_in_child();

Status event_create(Event* event, unsigned flags);
Status event_destroy(Event event);
Status event_record(Event event, Stream stream);
Status event_query(Event event);
Status event_synchronize(Event event);
Status event_elapsed_time(float* milliseconds, Event start, Event end);
Status stream_wait_event(Stream stream, Event event);

}  // namespace mybackend::device::host
