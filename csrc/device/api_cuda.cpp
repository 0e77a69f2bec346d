// The CUDA table: the CUDA runtime as it is. Built into libmb_driver_cuda.so with csrc/kernels and a static cudart.
//
// Status has cudaError_t's values and the handles are CUDA's own, so each entry only casts.
#include <cuda_runtime.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "csrc/device/api.h"
#include "csrc/device/kernel.h"

namespace mybackend::device {
namespace {

Status from(cudaError_t error) {
  return static_cast<Status>(error);
}
cudaError_t to(Status status) {
  return static_cast<cudaError_t>(status);
}
cudaStream_t to(Stream stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}
cudaEvent_t to(Event event) {
  return reinterpret_cast<cudaEvent_t>(event);
}
cudaGraph_t to(Graph graph) {
  return reinterpret_cast<cudaGraph_t>(graph);
}
cudaGraphExec_t to(GraphExec exec) {
  return reinterpret_cast<cudaGraphExec_t>(exec);
}

// An answer, not a failure: it must not be found as the last error by a later check.
Status answer(cudaError_t error) {
  if (error == cudaErrorNotReady) (void)cudaGetLastError();
  return from(error);
}

static_assert(int(Status::OutOfMemory) == cudaErrorMemoryAllocation);
static_assert(int(Status::InvalidDevice) == cudaErrorInvalidDevice);
static_assert(int(Status::NoDevice) == cudaErrorNoDevice);
static_assert(int(Status::InvalidResourceHandle) == cudaErrorInvalidResourceHandle);
static_assert(int(Status::IllegalState) == cudaErrorIllegalState);
static_assert(int(Status::NotReady) == cudaErrorNotReady);
static_assert(int(Status::PeerAccessAlreadyEnabled) == cudaErrorPeerAccessAlreadyEnabled);
static_assert(int(Status::DeviceAssert) == cudaErrorAssert);
static_assert(int(Status::NotPermitted) == cudaErrorNotPermitted);
static_assert(int(Status::NotSupported) == cudaErrorNotSupported);
static_assert(int(Status::StreamCaptureUnsupported) == cudaErrorStreamCaptureUnsupported);
static_assert(int(Status::StreamCaptureInvalidated) == cudaErrorStreamCaptureInvalidated);
static_assert(int(Status::StreamCaptureMerge) == cudaErrorStreamCaptureMerge);
static_assert(int(Status::StreamCaptureUnmatched) == cudaErrorStreamCaptureUnmatched);
static_assert(int(Status::StreamCaptureUnjoined) == cudaErrorStreamCaptureUnjoined);
static_assert(int(Status::StreamCaptureIsolation) == cudaErrorStreamCaptureIsolation);
static_assert(int(Status::CapturedEvent) == cudaErrorCapturedEvent);
static_assert(int(Status::Unknown) == cudaErrorUnknown);
static_assert(int(CopyKind::HostToDevice) == cudaMemcpyHostToDevice && int(CopyKind::Default) == cudaMemcpyDefault);
static_assert(unsigned(kEventBlockingSync) == cudaEventBlockingSync);
static_assert(unsigned(kEventDisableTiming) == cudaEventDisableTiming);

Status get_device_properties(Properties* properties, int device) {
  cudaDeviceProp cuda;
  if (const cudaError_t error = cudaGetDeviceProperties(&cuda, device); error != cudaSuccess) return from(error);
  Properties p{};
  static_assert(sizeof(p.name) == sizeof(cuda.name));
  std::memcpy(p.name, cuda.name, sizeof(p.name));
  p.total_memory = cuda.totalGlobalMem;
  p.major = cuda.major;
  p.minor = cuda.minor;
  p.multi_processor_count = cuda.multiProcessorCount;
  p.max_threads_per_block = cuda.maxThreadsPerBlock;
  p.max_threads_per_multi_processor = cuda.maxThreadsPerMultiProcessor;
  p.warp_size = cuda.warpSize;
  p.shared_memory_per_block = cuda.sharedMemPerBlock;
  p.l2_cache_size = cuda.l2CacheSize;
  p.integrated = cuda.integrated != 0;
  *properties = p;
  return Status::Success;
}

Status pointer_get_attributes(PointerAttributes* attributes, const void* pointer) {
  cudaPointerAttributes cuda;
  if (const cudaError_t error = cudaPointerGetAttributes(&cuda, pointer); error != cudaSuccess) return from(error);
  switch (cuda.type) {
    case cudaMemoryTypeDevice:
    case cudaMemoryTypeManaged:
      *attributes = {PointerAttributes::Type::Device, cuda.device};
      break;
    case cudaMemoryTypeHost:
      *attributes = {PointerAttributes::Type::Host, cuda.device};
      break;
    default:
      *attributes = {PointerAttributes::Type::Unregistered, -1};
  }
  return Status::Success;
}

// Pinned memory that the kernels of every device can write. Made per device on first use and kept.
Status error_record(ErrorRecord** record, int device) {
  constexpr int kMostDevices = 64;
  static std::mutex making;
  static std::atomic<ErrorRecord*> records[kMostDevices];
  if (device < 0 || device >= kMostDevices) return Status::InvalidDevice;
  *record = records[device].load(std::memory_order_acquire);
  if (*record != nullptr) return Status::Success;
  std::lock_guard lock(making);
  *record = records[device].load(std::memory_order_relaxed);
  if (*record != nullptr) return Status::Success;
  void* pinned = nullptr;
  const cudaError_t error = cudaHostAlloc(&pinned, sizeof(ErrorRecord), cudaHostAllocPortable | cudaHostAllocMapped);
  if (error != cudaSuccess) return from(error);
  *record = new (pinned) ErrorRecord{};
  records[device].store(*record, std::memory_order_release);
  return Status::Success;
}

constexpr Api kCudaApi{
    .name = "cuda",

    .get_device_count = [](int* count) { return from(cudaGetDeviceCount(count)); },
    .get_device = [](int* device) { return from(cudaGetDevice(device)); },
    .set_device = [](int device) { return from(cudaSetDevice(device)); },
    .get_device_properties = &get_device_properties,
    .device_synchronize = [] { return from(cudaDeviceSynchronize()); },
    .device_can_access_peer = [](int* can, int device,
                                 int peer) { return from(cudaDeviceCanAccessPeer(can, device, peer)); },
    .device_enable_peer_access = [](int peer) { return from(cudaDeviceEnablePeerAccess(peer, 0)); },

    .malloc = [](void** pointer, size_t bytes) { return from(cudaMalloc(pointer, bytes)); },
    .free = [](void* pointer) { return from(cudaFree(pointer)); },
    .mem_get_info = [](size_t* free_bytes,
                       size_t* total_bytes) { return from(cudaMemGetInfo(free_bytes, total_bytes)); },
    .host_alloc = [](void** pointer,
                     size_t bytes) { return from(cudaHostAlloc(pointer, bytes, cudaHostAllocPortable)); },
    .host_free = [](void* pointer) { return from(cudaFreeHost(pointer)); },
    .pointer_get_attributes = &pointer_get_attributes,
    .memcpy_async =
        [](void* destination, const void* source, size_t bytes, CopyKind kind, Stream stream) {
          return from(cudaMemcpyAsync(destination, source, bytes, static_cast<cudaMemcpyKind>(kind), to(stream)));
        },
    .memcpy_peer_async =
        [](void* destination, int destination_device, const void* source, int source_device, size_t bytes,
           Stream stream) {
          return from(cudaMemcpyPeerAsync(destination, destination_device, source, source_device, bytes, to(stream)));
        },
    .memset_async = [](void* destination, int value, size_t bytes,
                       Stream stream) { return from(cudaMemsetAsync(destination, value, bytes, to(stream))); },

    .stream_create =
        [](Stream* stream, int priority) {
          return from(
              cudaStreamCreateWithPriority(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking, priority));
        },
    .stream_destroy = [](Stream stream) { return from(cudaStreamDestroy(to(stream))); },
    .stream_query = [](Stream stream) { return answer(cudaStreamQuery(to(stream))); },
    .stream_synchronize = [](Stream stream) { return from(cudaStreamSynchronize(to(stream))); },
    .stream_wait_event = [](Stream stream, Event event) { return from(cudaStreamWaitEvent(to(stream), to(event), 0)); },
    .stream_priority_range = [](int* least,
                                int* greatest) { return from(cudaDeviceGetStreamPriorityRange(least, greatest)); },
    .launch_host_function = [](Stream stream, HostFunction function,
                               void* user_data) { return from(cudaLaunchHostFunc(to(stream), function, user_data)); },

    .event_create =
        [](Event* event, unsigned flags) {
          return from(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags));
        },
    .event_destroy = [](Event event) { return from(cudaEventDestroy(to(event))); },
    .event_record = [](Event event, Stream stream) { return from(cudaEventRecord(to(event), to(stream))); },
    .event_query = [](Event event) { return answer(cudaEventQuery(to(event))); },
    .event_synchronize = [](Event event) { return from(cudaEventSynchronize(to(event))); },
    .event_elapsed_time = [](float* milliseconds, Event start,
                             Event end) { return answer(cudaEventElapsedTime(milliseconds, to(start), to(end))); },

    .stream_begin_capture =
        [](Stream stream) { return from(cudaStreamBeginCapture(to(stream), cudaStreamCaptureModeRelaxed)); },
    .stream_end_capture =
        [](Stream stream, Graph* graph) {
          return from(cudaStreamEndCapture(to(stream), reinterpret_cast<cudaGraph_t*>(graph)));
        },
    .stream_is_capturing =
        [](Stream stream, bool* capturing) {
          // An invalidated capture is one until it is ended.
          cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
          const cudaError_t error = cudaStreamIsCapturing(to(stream), &status);
          *capturing = status != cudaStreamCaptureStatusNone;
          return from(error);
        },
    .graph_instantiate =
        [](GraphExec* exec, Graph graph) {
          return from(cudaGraphInstantiateWithFlags(reinterpret_cast<cudaGraphExec_t*>(exec), to(graph), 0));
        },
    .graph_launch = [](GraphExec exec, Stream stream) { return from(cudaGraphLaunch(to(exec), to(stream))); },
    .graph_exec_destroy = [](GraphExec exec) { return from(cudaGraphExecDestroy(to(exec))); },
    .graph_destroy = [](Graph graph) { return from(cudaGraphDestroy(to(graph))); },

    .get_last_error = [] { return from(cudaGetLastError()); },
    .get_error_name = [](Status status) { return cudaGetErrorName(to(status)); },
    .get_error_string = [](Status status) { return cudaGetErrorString(to(status)); },
    .error_record = &error_record,

    .find_kernel = [](const char* name) { return find_in_library(name); },
};

}  // namespace
}  // namespace mybackend::device

extern "C" __attribute__((visibility("default"))) const mybackend::device::Api* mb_driver_table() {
  return &mybackend::device::kCudaApi;
}
