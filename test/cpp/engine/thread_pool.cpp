// ThreadPool: threads are reused, and a job that waits for another never keeps it from running.
#include "csrc/engine/core/thread_pool.h"

#include <future>

#include "test/cpp/check.h"

using mybackend::engine::core::ThreadPool;

namespace {

void nest(ThreadPool& pool, int levels) {
  if (levels == 0) return;
  std::promise<void> done;
  pool.run([&] {
    nest(pool, levels - 1);
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace

TEST_CASE("jobs may wait for jobs to any depth, and their threads are reused") {
  ThreadPool& pool = *new ThreadPool;
  nest(pool, 30);
  const size_t threads = pool.threads();
  CHECK(threads <= 31);
  for (int i = 0; i < 20; ++i) nest(pool, 20);
  CHECK(pool.threads() <= threads + 20);
}

TEST_CASE("a pool that forgot its threads starts new ones") {
  ThreadPool& pool = *new ThreadPool;
  nest(pool, 2);
  pool.forget_threads();
  CHECK_EQ(pool.threads(), 0u);
  nest(pool, 2);
  CHECK(pool.threads() > 0);
}
