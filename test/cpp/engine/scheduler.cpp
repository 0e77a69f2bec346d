// Scheduler: the invariants S1 to S5 of csrc/engine/core/scheduler.h, with fake nodes on several lanes and threads.
#include "csrc/engine/core/scheduler.h"

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "csrc/engine/core/thread_pool.h"
#include "test/cpp/check.h"
#include "test/cpp/engine/fake_graph.h"

using mybackend::engine::core::Ready;
using mybackend::engine::core::Scheduler;
using mybackend::engine::core::ThreadPool;
using test::FakePlan;

namespace {

Scheduler& scheduler() {
  static Scheduler& made =
      *new Scheduler({[](uint32_t, std::function<void()> serve) { std::thread(std::move(serve)).detach(); },
                      [](std::function<void()> job) {
                        static ThreadPool& pool = *new ThreadPool;
                        pool.run(std::move(job));
                      }});
  return made;
}

std::array<std::atomic<int>, 8> on_lane{};  // nodes that run now, by lane
std::atomic<bool> crowded{false};           // two ran at once on a lane other than the CPU's

struct OnLane {
  uint32_t lane;
  explicit OnLane(uint32_t lane_) : lane(lane_) {
    if (++on_lane[lane] > 1 && lane != Scheduler::kCpu) crowded = true;
  }
  ~OnLane() { --on_lane[lane]; }
};

// A backward through a graph of fake nodes.
class FakeJob : public Scheduler::Job {
 public:
  explicit FakeJob(const std::vector<std::unique_ptr<test::FakeNode>>& nodes, uint32_t depth = 0) : depth_(depth) {
    plan.add_root(nodes.back().get());
    plan.expand(0);
    ++plan.entries[0].waiting;
    waiting_ = std::vector<std::atomic<uint32_t>>(plan.entries.size());
    for (uint32_t i = 0; i < plan.entries.size(); ++i) waiting_[i] = plan.entries[i].waiting;
  }
  void start() {
    scheduler().begin(*this);
    arrive(0);
    scheduler().work(*this, nullptr);
  }
  void run(const Ready& node) override {
    const auto& entry = plan.entries[node.index];
    {
      const OnLane here(entry.node->lane);
      std::this_thread::yield();
      ++ran;
    }
    if (inside) inside(node.index);
    for (uint32_t at = 0; at < entry.edges; ++at) arrive(plan.edges[entry.edges_at + at].target);
  }
  void help(const std::function<void()>& serve) override { serve(); }
  void fail() override { ++failures; }

  FakePlan plan;
  std::atomic<uint32_t> ran{0};
  std::atomic<int> failures{0};
  std::function<void(uint32_t)> inside;

 private:
  void arrive(uint32_t index) {
    if (--waiting_[index] != 0) return;
    const auto& entry = plan.entries[index];
    scheduler().make_ready(*this, entry.node->lane, {entry.sequence, depth_, index, this});
  }
  std::vector<std::atomic<uint32_t>> waiting_;
  const uint32_t depth_;
};

}  // namespace

TEST_CASE("S3 all nodes of a job have run when work() returns") {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto nodes = test::random_graph(200, 4, seed);
    FakeJob job(nodes);
    job.cpu_limit = 1 + seed % 3;
    job.start();
    CHECK_EQ(job.ran.load(), job.plan.entries.size());
    CHECK_EQ(Scheduler::held(), Scheduler::kCpu);
  }
  CHECK(!crowded);
}

TEST_CASE("S1 jobs of several threads never run two nodes of a lane at once") {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (uint32_t seed = 0; seed < 10; ++seed) {
        const auto nodes = test::random_graph(100, 3, 100 * i + seed);
        FakeJob job(nodes);
        job.start();
        if (job.ran != job.plan.entries.size()) crowded = true;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(!crowded);
}

TEST_CASE("S2 jobs that nest on each other's lanes do not block each other") {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      const auto outer = test::random_graph(20, 4, i);
      const auto inner = test::random_graph(20, 4, 50 + i);
      FakeJob job(outer);
      job.inside = [&](uint32_t) { FakeJob(inner, 1).start(); };
      job.start();
    });
  }
  for (auto& thread : threads) thread.join();
  for (uint32_t lane = 0; lane < 4; ++lane) CHECK_EQ(on_lane[lane].load(), 0);
}

TEST_CASE("S4 after a failure no further node of the job starts, and it is reported once") {
  const auto nodes = test::random_graph(300, 3, 5);
  FakeJob job(nodes);
  job.cpu_limit = 2;
  job.inside = [&](uint32_t) {
    if (job.ran >= 50) throw std::runtime_error("no");
  };
  job.start();
  CHECK_EQ(job.failures.load(), 1);
  CHECK(job.ran < 60);
  FakeJob next(nodes);
  next.start();
  CHECK_EQ(next.ran.load(), next.plan.entries.size());
}

TEST_CASE("S5 a seat passes between threads that sit on one lane alone") {
  std::atomic<int> turns{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int node = 0; node < 500; ++node) {
        scheduler().sit(1, nullptr);
        const OnLane here(1);
        ++turns;
      }
      scheduler().sit(Scheduler::kCpu, nullptr);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(turns.load(), 2000);
  CHECK(!crowded);
}

TEST_CASE("S6 nodes of two lanes run at once, though the CPU node that makes the second ready comes after the first") {
  // root -> {lane 1, CPU -> lane 2}: with the owner inside of the first, nobody would run the CPU node.
  std::vector<std::unique_ptr<test::FakeNode>> nodes;
  for (uint64_t sequence = 0; sequence < 4; ++sequence) {
    nodes.push_back(std::make_unique<test::FakeNode>());
    nodes.back()->sequence = sequence;
  }
  nodes[0]->lane = 2;
  nodes[1]->edges = {{nodes[0].get(), 0}};
  nodes[2]->lane = 1;
  nodes[3]->edges = {{nodes[2].get(), 0}, {nodes[1].get(), 0}};
  for (int turn = 0; turn < 20; ++turn) {
    scheduler().forget_threads();  // a worker that has yet to start is slower than the owner
    FakeJob job(nodes);
    std::atomic<int> inside{0};
    std::atomic<bool> apart{false};
    job.inside = [&](uint32_t index) {
      if (job.plan.entries[index].node->lane == Scheduler::kCpu) return;
      ++inside;
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      while (inside != 2 && !apart) {
        if (std::chrono::steady_clock::now() > until) apart = true;
        std::this_thread::yield();
      }
    };
    job.start();
    CHECK(!apart);
    if (apart) break;
  }
}

TEST_CASE("S6 a lane is served while its worker waits for a backward on another thread") {
  std::vector<std::unique_ptr<test::FakeNode>> nodes;
  nodes.push_back(std::make_unique<test::FakeNode>());
  nodes[0]->lane = 1;
  FakeJob outer(nodes), inner(nodes, 1);
  outer.inside = [&](uint32_t) {
    const Scheduler::Away away(scheduler());
    const uint32_t seat = Scheduler::held();
    scheduler().sit(Scheduler::kCpu, nullptr);
    std::thread([&] { inner.start(); }).join();
    scheduler().sit(seat, nullptr);
  };
  outer.start();
  CHECK_EQ(outer.ran.load(), 1u);
  CHECK_EQ(inner.ran.load(), 1u);
}

TEST_CASE("who waits for a seat can be called away, and then holds none") {
  std::atomic<bool> sits{false}, leave{false};
  std::thread holder([&] {
    scheduler().sit(2, nullptr);
    sits = true;
    while (!leave) std::this_thread::yield();
    scheduler().sit(Scheduler::kCpu, nullptr);
  });
  while (!sits) std::this_thread::yield();
  bool thrown = false;
  try {
    scheduler().sit(2, [] { throw std::runtime_error("interrupt"); });
  } catch (std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK_EQ(Scheduler::held(), Scheduler::kCpu);
  leave = true;
  holder.join();
  scheduler().sit(2, nullptr);
  CHECK_EQ(Scheduler::held(), 2u);
  scheduler().sit(Scheduler::kCpu, nullptr);
}

TEST_CASE("a scheduler that forgot its threads starts new ones") {
  scheduler().forget_threads();
  CHECK_EQ(scheduler().workers(), 0u);
  const auto nodes = test::random_graph(100, 3, 9);
  FakeJob job(nodes);
  job.start();
  CHECK_EQ(job.ran.load(), job.plan.entries.size());
  CHECK(scheduler().workers() > 0);
}
