// ReadyHeap: the order of ready nodes, ties included.
#include "csrc/engine/core/ready_heap.h"

#include <queue>
#include <random>

#include "test/cpp/check.h"

using mybackend::engine::core::Ready;
using mybackend::engine::core::ReadyHeap;

TEST_CASE("deeper backwards come first, then higher keys") {
  ReadyHeap heap;
  heap.push({9, 0, 1, nullptr});
  heap.push({1, 1, 2, nullptr});
  heap.push({5, 1, 3, nullptr});
  CHECK_EQ(heap.pop().index, 3u);
  CHECK_EQ(heap.pop().index, 2u);
  CHECK_EQ(heap.pop().index, 1u);
}

TEST_CASE("equal nodes leave in the order of std::priority_queue") {
  std::mt19937 random(1);
  ReadyHeap heap;
  std::priority_queue<Ready> queue;
  for (uint32_t i = 0; i < 5000; ++i) {
    if (random() % 3 != 0 || heap.empty()) {
      const Ready ready{random() % 4, static_cast<uint32_t>(random() % 2), i, nullptr};
      heap.push(ready);
      queue.push(ready);
    } else {
      CHECK_EQ(heap.pop().index, queue.top().index);
      queue.pop();
    }
  }
}

TEST_CASE("what a failed backward leaves behind is dropped, the rest stays") {
  ReadyHeap heap;
  int failed = 0;
  for (uint32_t i = 0; i < 20; ++i) heap.push({i, 0, i, i % 2 ? &failed : nullptr});
  heap.drop(&failed);
  CHECK_EQ(heap.size(), 10u);
  CHECK_EQ(heap.pop().index, 18u);
}
