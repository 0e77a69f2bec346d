#include "csrc/runtime/allocator.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <mutex>
#include <unordered_map>

#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {
namespace {

// A deleter runs in destructors: a failure (the driver shutting down) leaves the block unused and is not raised.
void free_block(void* context) noexcept {
  if (context == nullptr) return;
  Block* block = static_cast<Block*>(context);
  DeviceCache* cache = block->pool->cache;
  void* const data = block->data;
  const int64_t size = static_cast<int64_t>(block->size);
  try {
    cache->free(block);
    c10::reportMemoryUsageToProfiler(data, -size, cache->allocated_bytes(), cache->reserved_bytes(),
                                     c10::Device(kDeviceType, cache->device()));
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE("mybackend: memory could not be given back: ", error.what());
  }
}

c10::DataPtr owner_of(Block* block) {
  const DeviceCache& cache = *block->pool->cache;
  const c10::Device where(kDeviceType, cache.device());
  c10::reportMemoryUsageToProfiler(block->data, static_cast<int64_t>(block->size), cache.allocated_bytes(),
                                   cache.reserved_bytes(), where);
  return {block->data, block, &free_block, where};
}

// A smaller result is copied in less time than its memory changes hands.
constexpr size_t kWorthAdopting = 1 << 10;

struct RawBlocks {
  std::mutex mutex;
  std::unordered_map<void*, Block*> by_address;
};
RawBlocks& raw_blocks() {
  static RawBlocks* blocks = new RawBlocks;
  return *blocks;
}

// A lock held by another thread at the time of fork would stay held in the child.
void lock_all() {
  raw_blocks().mutex.lock();
  for (DeviceIndex device = 0; device < kMaxDevices; device++) allocator().cache(device).lock().lock();
}
void unlock_all() {
  for (DeviceIndex device = 0; device < kMaxDevices; device++) allocator().cache(device).lock().unlock();
  raw_blocks().mutex.unlock();
}

Block* block_of(const c10::DataPtr& pointer) {
  if (pointer.get_deleter() != &free_block) return nullptr;
  return static_cast<Block*>(pointer.get_context());
}

}  // namespace

Allocator::Allocator() {
  for (int device = 0; device < kMaxDevices; device++)
    caches_[device] = new DeviceCache(static_cast<DeviceIndex>(device));
}

Allocator& allocator() {
  static Allocator* the_allocator = [] {
    Allocator* made = new Allocator;
    return made;
  }();
  return *the_allocator;
}

DeviceCache& Allocator::cache(DeviceIndex device) {
  return *caches_[device];
}

c10::DataPtr Allocator::allocate(size_t bytes) {
  return allocate_on(bytes, current_device());
}

c10::DataPtr Allocator::allocate_on(size_t bytes, DeviceIndex device) {
  const c10::Device where(kDeviceType, device);
  if (bytes == 0) {
    check_device_index(device);
    return {nullptr, nullptr, &free_block, where};
  }
  return owner_of(caches_[device]->allocate(bytes, current_stream(device)));
}

c10::DataPtr Allocator::adopt(c10::DataPtr& memory, size_t bytes, DeviceIndex device) {
  if (bytes < kWorthAdopting || memory.get() != memory.get_context()) return {};
  Block* block = caches_[device]->adopt(memory, bytes, current_stream(device));
  return block != nullptr ? owner_of(block) : c10::DataPtr();
}

bool Allocator::is_simple_data_ptr(const c10::DataPtr& pointer) const {
  const Block* block = block_of(pointer);
  return pointer.get() == nullptr || (block != nullptr && block->data == pointer.get());
}

void Allocator::copy_data(void* destination, const void* source, size_t bytes) const {
  MB_DEVICE_CHECK(device::api().memcpy_async(destination, source, bytes, device::CopyKind::DeviceToDevice,
                                             current_stream(current_device())));
}

void Allocator::emptyCache(c10::MempoolId_t pool) {
  for (DeviceIndex device = 0; device < device_count(); device++) caches_[device]->empty_cache(pool);
}

void Allocator::recordStream(const c10::DataPtr& pointer, c10::Stream stream) {
  if (Block* block = block_of(pointer)) block->pool->cache->record_stream(block, stream);
}

c10::CachingDeviceAllocator::DeviceStats Allocator::getDeviceStats(DeviceIndex device) {
  check_device_index(device);
  return caches_[device]->stats();
}

void Allocator::resetAccumulatedStats(DeviceIndex device) {
  check_device_index(device);
  caches_[device]->reset_accumulated_stats();
}

void Allocator::resetPeakStats(DeviceIndex device) {
  check_device_index(device);
  caches_[device]->reset_peak_stats();
}

std::pair<size_t, size_t> Allocator::getMemoryInfo(DeviceIndex device) {
  check_device_index(device);
  DeviceScope scope(device);
  size_t free = 0, total = 0;
  MB_DEVICE_CHECK(device::api().mem_get_info(&free, &total));
  return {free, total};
}

void* Allocator::raw_alloc(size_t bytes, c10::Stream stream) {
  if (bytes == 0) return nullptr;
  check_device_index(stream.device_index());
  Block* block = caches_[stream.device_index()]->allocate(bytes, handle_of(stream));
  std::lock_guard<std::mutex> guard(raw_blocks().mutex);
  raw_blocks().by_address[block->data] = block;
  return block->data;
}

void Allocator::raw_delete(void* pointer) {
  if (pointer == nullptr) return;
  Block* block = nullptr;
  {
    std::lock_guard<std::mutex> guard(raw_blocks().mutex);
    const auto found = raw_blocks().by_address.find(pointer);
    TORCH_CHECK(found != raw_blocks().by_address.end(), "invalid device pointer: ", pointer);
    block = found->second;
    raw_blocks().by_address.erase(found);
  }
  block->pool->cache->free(block);
}

std::vector<c10::CachingDeviceAllocator::SegmentInfo> Allocator::snapshot() {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> all;
  for (DeviceIndex device = 0; device < device_count(); device++) {
    auto segments = caches_[device]->snapshot();
    all.insert(all.end(), std::make_move_iterator(segments.begin()), std::make_move_iterator(segments.end()));
  }
  return all;
}

}  // namespace mybackend::runtime

namespace {
const int kForkHandlers =
    pthread_atfork(mybackend::runtime::lock_all, mybackend::runtime::unlock_all, mybackend::runtime::unlock_all);
}
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &mybackend::runtime::allocator())
