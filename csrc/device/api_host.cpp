// The host table: CUDA runtime semantics on CPU threads. One concept each in host_*.h; this only lists them.
#include "csrc/device/api.h"
#include "csrc/device/host_capture.h"
#include "csrc/device/host_config.h"
#include "csrc/device/host_copy.h"
#include "csrc/device/host_device.h"
#include "csrc/device/host_event.h"
#include "csrc/device/host_kernels.h"
#include "csrc/device/host_memory.h"
#include "csrc/device/host_status.h"
#include "csrc/device/host_stream.h"

namespace mybackend::device {
namespace {

constexpr Api kHostApi{
    .name = "host",

    .get_device_count = &host::get_device_count,
    .get_device = &host::get_device,
    .set_device = &host::set_device,
    .get_device_properties = &host::get_device_properties,
    .device_synchronize = &host::device_synchronize,
    .device_can_access_peer = &host::device_can_access_peer,
    .device_enable_peer_access = &host::device_enable_peer_access,

    .malloc = &host::malloc,
    .free = &host::free,
    .mem_get_info = &host::mem_get_info,
    .host_alloc = &host::host_alloc,
    .host_free = &host::host_free,
    .pointer_get_attributes = &host::pointer_get_attributes,
    .memcpy_async = &host::memcpy_async,
    .memcpy_peer_async = &host::memcpy_peer_async,
    .memset_async = &host::memset_async,

    .stream_create = &host::stream_create,
    .stream_destroy = &host::stream_destroy,
    .stream_query = &host::stream_query,
    .stream_synchronize = &host::stream_synchronize,
    .stream_wait_event = &host::stream_wait_event,
    .stream_priority_range = &host::stream_priority_range,
    .launch_host_function = &host::launch_host_function,

    .event_create = &host::event_create,
    .event_destroy = &host::event_destroy,
    .event_record = &host::event_record,
    .event_query = &host::event_query,
    .event_synchronize = &host::event_synchronize,
    .event_elapsed_time = &host::event_elapsed_time,

    .stream_begin_capture = &host::stream_begin_capture,
    .stream_end_capture = &host::stream_end_capture,
    .stream_is_capturing = &host::stream_is_capturing,
    .graph_instantiate = &host::graph_instantiate,
    .graph_launch = &host::graph_launch,
    .graph_exec_destroy = &host::graph_exec_destroy,
    .graph_destroy = &host::graph_destroy,

    .get_last_error = &host::get_last_error,
    .get_error_name = &host::get_error_name,
    .get_error_string = &host::get_error_string,
    .error_record = &host::error_record,

    .find_kernel = &host::find_kernel,
};

}  // namespace

const Api& host_api() {
  host::config();  // a mistaken variable is reported here rather than by some later call
  host::isa_level();
  return kHostApi;
}

}  // namespace mybackend::device
