#include "csrc/engine/settings.h"

#include <mutex>

namespace mybackend::engine {
namespace {

std::mutex& observer_mutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

}  // namespace

Settings& settings() {
  static Settings* const settings = new Settings;
  return *settings;
}

void Settings::set_observer(std::shared_ptr<core::Observer> observer) {
  std::lock_guard<std::mutex> lock(observer_mutex());
  observed_ = observer != nullptr;
  observer_ = std::move(observer);
}

std::shared_ptr<core::Observer> Settings::observer() const {
  if (!observed_.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard<std::mutex> lock(observer_mutex());
  return observer_;
}

}  // namespace mybackend::engine
