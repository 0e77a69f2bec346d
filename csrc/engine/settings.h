// What users choose for the backwards that start afterwards; set from Python (mybackend/autograd).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "csrc/engine/core/observer.h"
#include "csrc/engine/core/policy.h"

namespace mybackend::engine {

struct Settings {
  std::atomic<uint32_t> cpu_workers{1};              // threads that run one backward's CPU nodes
  std::atomic<const core::Policy*> policy{nullptr};  // none: by sequence number; policies are never freed
  std::atomic<bool> watched{false};                  // backwards can be listed while they run (watch.h)
  void set_observer(std::shared_ptr<core::Observer> observer);
  std::shared_ptr<core::Observer> observer() const;

 private:
  std::atomic<bool> observed_{false};
  std::shared_ptr<core::Observer> observer_;  // guarded by a mutex of settings.cpp
};

Settings& settings();

}  // namespace mybackend::engine
