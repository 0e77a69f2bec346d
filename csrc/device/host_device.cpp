#include "csrc/device/host_device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "csrc/device/host_config.h"
#include "csrc/device/host_kernels.h"

namespace mybackend::device::host {
namespace {

thread_local int device_of_thread = 0;
thread_local Status last_error = Status::Success;

// A line of its own: kernels of one device must not slow down another's.
struct alignas(64) Record {
  ErrorRecord record{};
};
Record records[kMostDevices];
std::atomic<uint64_t> peers[kMostDevices];  // bit p of peers[d]: d has enabled access to p

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

Status fail(Status status) {
  if (status != Status::Success) last_error = status;
  return status;
}

int current_device() {
  return device_of_thread;
}
bool valid_device(int device) {
  return device >= 0 && device < config().devices;
}
void adopt_device(int device) {
  device_of_thread = device;
}

Status get_device_count(int* count) {
  *count = config().devices;
  return *count > 0 ? Status::Success : fail(Status::NoDevice);
}

Status get_device(int* device) {
  *device = device_of_thread;
  return Status::Success;
}

Status set_device(int device) {
  if (!valid_device(device)) return fail(Status::InvalidDevice);
  device_of_thread = device;
  return Status::Success;
}

Status get_device_properties(Properties* properties, int device) {
  if (!valid_device(device)) return fail(Status::InvalidDevice);
  Properties p{};
  const std::string name = cpu_name();
  std::memcpy(p.name, name.data(), std::min(name.size(), sizeof(p.name) - 1));
  p.total_memory = config().memory_per_device;
  p.major = isa_level();
  p.minor = 0;
  p.multi_processor_count = int(std::max(1u, std::thread::hardware_concurrency()));
  p.max_threads_per_block = 1;
  p.max_threads_per_multi_processor = 1;
  p.warp_size = 1;
  p.shared_memory_per_block = 48 << 10;  // a kernel that fits here fits every GPU
  p.l2_cache_size = int(std::max(0l, sysconf(_SC_LEVEL2_CACHE_SIZE)));
  p.integrated = true;
  *properties = p;
  return Status::Success;
}

Status device_can_access_peer(int* can, int device, int peer) {
  if (!valid_device(device) || !valid_device(peer)) return fail(Status::InvalidDevice);
  *can = device != peer;
  return Status::Success;
}

Status device_enable_peer_access(int peer) {
  const int device = current_device();
  if (!valid_device(device) || !valid_device(peer) || device == peer) return fail(Status::InvalidDevice);
  const uint64_t bit = uint64_t{1} << peer;
  return peers[device].fetch_or(bit) & bit ? fail(Status::PeerAccessAlreadyEnabled) : Status::Success;
}

Status get_last_error() {
  const Status status = last_error;
  last_error = Status::Success;
  return status;
}

Status error_record(ErrorRecord** record, int device) {
  if (!valid_device(device)) return fail(Status::InvalidDevice);
  *record = &records[device].record;
  return Status::Success;
}

}  // namespace mybackend::device::host
