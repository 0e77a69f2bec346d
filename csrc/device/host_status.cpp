#include "csrc/device/host_status.h"

namespace mybackend::device::host {
namespace {

struct Text {
  Status status;
  const char* name;
  const char* message;
};

constexpr Text kTexts[] = {
    {Status::Success, "cudaSuccess", "no error"},
    {Status::InvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {Status::OutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {Status::InitializationError, "cudaErrorInitializationError", "initialization error"},
    {Status::NoDevice, "cudaErrorNoDevice", "no device is detected"},
    {Status::InvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {Status::InvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {Status::IllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {Status::NotReady, "cudaErrorNotReady", "device not ready"},
    {Status::PeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {Status::DeviceAssert, "cudaErrorAssert", "device-side assert triggered"},
    {Status::NotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {Status::NotSupported, "cudaErrorNotSupported", "operation not supported"},
    {Status::StreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {Status::StreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {Status::StreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {Status::StreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {Status::StreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {Status::StreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {Status::CapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {Status::Unknown, "cudaErrorUnknown", "unknown error"},
};

const Text* find(Status status) {
  for (const Text& text : kTexts)
    if (text.status == status) return &text;
  return nullptr;
}

}  // namespace

const char* get_error_name(Status status) {
  const Text* text = find(status);
  return text != nullptr ? text->name : "unrecognized error code";
}

const char* get_error_string(Status status) {
  const Text* text = find(status);
  return text != nullptr ? text->message : "unrecognized error code";
}

}  // namespace mybackend::device::host
