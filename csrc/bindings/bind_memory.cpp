#include "csrc/bindings/bind.h"
#include "csrc/runtime/allocator.h"
#include "csrc/runtime/host_allocator.h"

namespace mybackend::bindings {
namespace {

using runtime::allocator;
using runtime::resolve_device_index;

// The layout of torch.cuda.memory_snapshot.
py::list snapshot() {
  py::list segments;
  for (const auto& segment : allocator().snapshot()) {
    py::list blocks;
    size_t address = segment.address;
    for (const auto& block : segment.blocks) {
      py::dict entry;
      entry["address"] = address;
      entry["size"] = block.size;
      entry["requested_size"] = block.requested_size;
      entry["state"] = block.allocated ? "active_allocated" : block.active ? "active_pending_free" : "inactive";
      entry["frames"] = py::list();
      blocks.append(entry);
      address += block.size;
    }
    py::dict entry;
    entry["device"] = int(segment.device);
    entry["address"] = segment.address;
    entry["total_size"] = segment.total_size;
    entry["allocated_size"] = segment.allocated_size;
    entry["active_size"] = segment.active_size;
    entry["requested_size"] = segment.requested_size;
    entry["stream"] = reinterpret_cast<intptr_t>(segment.stream);
    entry["segment_type"] = segment.is_large ? "large" : "small";
    entry["segment_pool_id"] =
        py::make_tuple(segment.owner_private_pool_id.first, segment.owner_private_pool_id.second);
    entry["is_expandable"] = false;
    entry["frames"] = py::list();
    entry["blocks"] = blocks;
    segments.append(entry);
  }
  return segments;
}

py::dict as_dict(const c10::CachingAllocator::Stat& stat) {
  py::dict entry;
  entry["current"] = stat.current;
  entry["peak"] = stat.peak;
  entry["allocated"] = stat.allocated;
  entry["freed"] = stat.freed;
  return entry;
}

py::dict as_dict(const c10::CachingAllocator::DurationStat& stat) {
  py::dict entry;
  entry["total"] = stat.total;
  entry["max"] = stat.max;
  entry["min"] = stat.min;
  entry["count"] = stat.count;
  entry["avg"] = stat.count == 0 ? 0 : stat.total / stat.count;
  return entry;
}

py::dict host_stats() {
  const at::HostStats stats = runtime::host_allocator().get_stats();
  py::dict entry;
  entry["num_host_alloc"] = stats.num_host_alloc;
  entry["num_host_free"] = stats.num_host_free;
  entry["active_requests"] = as_dict(stats.active_requests);
  entry["active_bytes"] = as_dict(stats.active_bytes);
  entry["allocations"] = as_dict(stats.allocations);
  entry["allocated_bytes"] = as_dict(stats.allocated_bytes);
  entry["host_alloc_time"] = as_dict(stats.host_alloc_time);
  entry["host_free_time"] = as_dict(stats.host_free_time);
  return entry;
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("mem_get_info", torch::wrap_pybind_function(
                            [](int64_t device) { return allocator().getMemoryInfo(resolve_device_index(device)); }));
  m.def("memory_snapshot", torch::wrap_pybind_function(snapshot));
  m.def("empty_cache", torch::wrap_pybind_function_no_gil([] { allocator().emptyCache(); }));
  m.def("set_memory_fraction", torch::wrap_pybind_function([](double fraction, int64_t device) {
          allocator().cache(resolve_device_index(device)).set_memory_fraction(fraction);
        }));
  m.def("memory_fraction", torch::wrap_pybind_function([](int64_t device) {
          return allocator().cache(resolve_device_index(device)).memory_fraction();
        }));
  m.def("raw_alloc", torch::wrap_pybind_function_no_gil([](size_t bytes, c10::Stream stream) {
          return reinterpret_cast<intptr_t>(allocator().raw_alloc(bytes, stream));
        }));
  m.def("raw_delete", torch::wrap_pybind_function_no_gil(
                          [](intptr_t pointer) { allocator().raw_delete(reinterpret_cast<void*>(pointer)); }));
  m.def("host_memory_stats", torch::wrap_pybind_function(host_stats));
  m.def("reset_peak_host_memory_stats",
        torch::wrap_pybind_function([] { runtime::host_allocator().reset_peak_stats(); }));
  m.def("reset_accumulated_host_memory_stats",
        torch::wrap_pybind_function([] { runtime::host_allocator().reset_accumulated_stats(); }));
}

}  // namespace mybackend::bindings
