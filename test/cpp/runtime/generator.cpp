// The generator: reservations do not overlap, state goes round, clones are independent.
#include "csrc/runtime/generator.h"

#include <algorithm>
#include <thread>

#include "test/cpp/check.h"

using namespace mybackend;

namespace {

TEST_CASE("reservations of several threads never overlap") {
  const at::Generator generator = runtime::make_generator(0);
  std::vector<std::vector<uint64_t>> offsets(4);
  std::vector<std::thread> threads;
  for (auto& mine : offsets)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; i++) mine.push_back(runtime::philox(generator, 5).offset);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const auto& mine : offsets) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); i++) CHECK_EQ(all[i], 8 * i);
}

TEST_CASE("a state read is the state set") {
  at::Generator generator = runtime::make_generator(0);
  generator.set_current_seed(42);
  generator.set_offset(12);
  at::Generator other = runtime::make_generator(0);
  other.get<runtime::GeneratorImpl>()->set_state(*generator.get<runtime::GeneratorImpl>()->get_state());
  CHECK_EQ(other.current_seed(), uint64_t{42});
  CHECK_EQ(other.get_offset(), uint64_t{12});
}

TEST_CASE("a clone goes its own way") {
  at::Generator generator = runtime::make_generator(0);
  const at::Generator clone = generator.clone();
  static_cast<void>(runtime::philox(generator, 4));
  CHECK_EQ(clone.get_offset(), uint64_t{0});
  CHECK_EQ(generator.get_offset(), uint64_t{4});
}

TEST_CASE("a seed starts the numbers anew") {
  at::Generator generator = runtime::make_generator(0);
  static_cast<void>(runtime::philox(generator, 4));
  generator.set_current_seed(7);
  CHECK_EQ(generator.get_offset(), uint64_t{0});
}

}  // namespace
