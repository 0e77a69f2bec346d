#include "csrc/engine/policies.h"

#include <c10/util/Exception.h>

#include <mutex>

namespace mybackend::engine {
namespace {

struct Named {
  std::string name;
  const core::Policy* policy;
};

struct Registry {
  std::mutex mutex;
  std::vector<Named> all{{"sequence", nullptr}, {"stable", new core::StablePolicy}, {"memory", new core::MemoryPolicy}};
};

Registry& registry() {
  static Registry* const registry = new Registry;
  return *registry;
}

}  // namespace

void register_policy(const std::string& name, const core::Policy* policy) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  TORCH_CHECK_VALUE(!name.empty(), "register_policy: expected a name, but got ''");
  for (const Named& known : registry().all) {
    TORCH_CHECK_VALUE(known.name != name, "register_policy: there is a policy '", name, "' already");
  }
  registry().all.push_back({name, policy});
}

std::vector<std::string> policy_names() {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  std::vector<std::string> names;
  for (const Named& known : registry().all) names.push_back(known.name);
  return names;
}

const core::Policy* policy_named(const std::string& name) {
  std::string names;
  const std::lock_guard<std::mutex> lock(registry().mutex);
  for (const Named& known : registry().all) {
    if (known.name == name) return known.policy;
    names += (names.empty() ? "'" : ", '") + known.name + "'";
  }
  TORCH_CHECK_VALUE(false, "policy: expected one of ", names, ", but got '", name, "'");
}

std::string name_of(const core::Policy* policy) {
  const std::lock_guard<std::mutex> lock(registry().mutex);
  for (const Named& known : registry().all) {
    if (known.policy == policy) return known.name;
  }
  TORCH_INTERNAL_ASSERT(false, "a policy that is not registered");
}

}  // namespace mybackend::engine
