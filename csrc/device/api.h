// The device API: CUDA runtime semantics as one table of functions.
//
// Everything above this header (allocator, streams, events, guard, generator, graphs, engine) is written once against
// `api()`. Two tables exist: api_cuda.cpp fills one from the CUDA runtime, api_host.cpp one from CPU threads; a third
// party may install its own with `set_driver` before first use. A function means what the CUDA runtime function of the
// same name means; where the host differs it says so here.
//
// Ownership: handles are created and destroyed by the caller. Errors are returned, never thrown; `MB_CHECK` (check.h)
// turns them into exceptions. No ATen, no c10.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mybackend::device {

struct StreamHandle;
struct EventHandle;
struct GraphHandle;
struct GraphExecHandle;
using Stream = StreamHandle*;  // nullptr is the default stream of the current device
using Event = EventHandle*;
using Graph = GraphHandle*;
using GraphExec = GraphExecHandle*;

// Values are those of cudaError_t, so the CUDA table only casts.
enum class Status : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  InitializationError = 3,
  InvalidDevice = 101,
  NoDevice = 100,
  InvalidResourceHandle = 400,
  IllegalState = 401,
  NotReady = 600,
  PeerAccessAlreadyEnabled = 704,
  DeviceAssert = 710,
  NotPermitted = 800,
  NotSupported = 801,
  StreamCaptureUnsupported = 900,
  StreamCaptureInvalidated = 901,
  StreamCaptureMerge = 902,
  StreamCaptureUnmatched = 903,
  StreamCaptureUnjoined = 904,
  StreamCaptureIsolation = 905,
  CapturedEvent = 907,
  Unknown = 999,
};

enum class CopyKind : int { HostToHost = 0, HostToDevice = 1, DeviceToHost = 2, DeviceToDevice = 3, Default = 4 };

enum EventFlags : unsigned { kEventDefault = 0, kEventBlockingSync = 1, kEventDisableTiming = 2 };

struct Properties {
  char name[256];
  size_t total_memory;        // bytes
  int major, minor;           // compute capability on CUDA; ISA level on the host (x86-64-v`major`)
  int multi_processor_count;  // SMs; on the host the number of cores
  int max_threads_per_block;  // 1 on the host
  int max_threads_per_multi_processor;
  int warp_size;                   // 1 on the host
  size_t shared_memory_per_block;  // bytes
  int l2_cache_size;               // bytes
  bool integrated;                 // device memory is host memory
};

struct PointerAttributes {
  enum class Type : int { Unregistered = 0, Host = 1, Device = 2 } type;
  int device;  // -1 unless `type` is Device (or Host memory pinned by a device)
};

// The first failure a kernel reports, e.g. an index out of range: see errors.h for codes and `fail()`.
struct ErrorRecord {
  int code;           // 0: none; first writer wins (compare and swap)
  int64_t values[4];  // meaning depends on `code`
};

using HostFunction = void (*)(void* user_data);

struct Api {
  const char* name;  // "host" or "cuda"

  // Devices. The current device is thread-local, as in CUDA.
  Status (*get_device_count)(int* count);
  Status (*get_device)(int* device);
  Status (*set_device)(int device);
  Status (*get_device_properties)(Properties* properties, int device);
  Status (*device_synchronize)();
  Status (*device_can_access_peer)(int* can, int device, int peer);
  Status (*device_enable_peer_access)(int peer);

  // Memory. malloc takes memory of the current device, at least 256-byte aligned.
  Status (*malloc)(void** pointer, size_t bytes);
  Status (*free)(void* pointer);
  Status (*mem_get_info)(size_t* free_bytes, size_t* total_bytes);
  Status (*host_alloc)(void** pointer, size_t bytes);  // pinned
  Status (*host_free)(void* pointer);
  Status (*pointer_get_attributes)(PointerAttributes* attributes, const void* pointer);
  // A copy from or to pageable host memory has completed when the call returns, as CUDA's from-pageable does in effect.
  Status (*memcpy_async)(void* destination, const void* source, size_t bytes, CopyKind kind, Stream stream);
  Status (*memcpy_peer_async)(void* destination, int destination_device, const void* source, int source_device,
                              size_t bytes, Stream stream);
  Status (*memset_async)(void* destination, int value, size_t bytes, Stream stream);

  // Streams. All are non-blocking with respect to the default stream.
  Status (*stream_create)(Stream* stream, int priority);
  Status (*stream_destroy)(Stream stream);
  Status (*stream_query)(Stream stream);  // Success or NotReady
  Status (*stream_synchronize)(Stream stream);
  Status (*stream_wait_event)(Stream stream, Event event);
  Status (*stream_priority_range)(int* least, int* greatest);
  Status (*launch_host_function)(Stream stream, HostFunction function, void* user_data);

  // Events.
  Status (*event_create)(Event* event, unsigned flags);
  Status (*event_destroy)(Event event);
  Status (*event_record)(Event event, Stream stream);
  Status (*event_query)(Event event);
  Status (*event_synchronize)(Event event);
  Status (*event_elapsed_time)(float* milliseconds, Event start, Event end);

  // Capture: work sent to a capturing stream is recorded, not run. The mode is relaxed: malloc and free are allowed
  // meanwhile. Waiting for, or querying, a capturing stream invalidates the capture.
  Status (*stream_begin_capture)(Stream stream);
  Status (*stream_end_capture)(Stream stream, Graph* graph);
  Status (*stream_is_capturing)(Stream stream, bool* capturing);
  Status (*graph_instantiate)(GraphExec* exec, Graph graph);
  Status (*graph_launch)(GraphExec exec, Stream stream);
  Status (*graph_exec_destroy)(GraphExec exec);
  Status (*graph_destroy)(Graph graph);

  // Errors. A failed call stays the thread's last error until get_last_error reads it, as does a launch that could not
  // be made; NotReady is an answer and does not. `error_record` is memory that kernels of this device can write and the
  // host can read.
  Status (*get_last_error)();
  const char* (*get_error_name)(Status status);
  const char* (*get_error_string)(Status status);
  Status (*error_record)(ErrorRecord** record, int device);

  // Address of the kernel called `name` in this driver's build of csrc/kernels, or nullptr (kernel.h). The one function
  // that throws: std::runtime_error when there is no kernel library that this machine can use.
  void* (*find_kernel)(const char* name);
};

// The table in use. Chosen once, on first call: MYBACKEND_DRIVER=host|cuda forces one; otherwise a GPU that answers
// wins. Throws std::runtime_error when the forced driver is absent or unknown.
const Api& api();

// Installs a third-party table. Throws std::logic_error once `api()` has been called.
void set_driver(const Api& table);

// The host table, whatever is in use; tests of the host driver ask for it directly.
const Api& host_api();

}  // namespace mybackend::device
