// Plan: every node has one index, whatever its sequence number is.
#include "csrc/engine/core/plan.h"

#include "test/cpp/check.h"
#include "test/cpp/engine/fake_graph.h"

using test::FakeNode;
using test::FakePlan;

TEST_CASE("a plan counts the edges to each node and finds every node again") {
  FakePlan plan;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const auto nodes = test::random_graph(200, 1, seed);
    plan.clear();
    plan.add_root(nodes.back().get());
    plan.expand(0);
    std::vector<uint32_t> waiting(plan.entries.size());
    for (const auto& entry : plan.entries) {
      for (const auto& edge : entry.node->edges) ++waiting[plan.find(edge.function)];
    }
    for (uint32_t i = 0; i < plan.entries.size(); ++i) {
      CHECK_EQ(plan.find(plan.entries[i].node), i);
      CHECK_EQ(plan.entries[i].waiting, waiting[i]);
    }
    CHECK(!plan.ties);
  }
}

TEST_CASE("accumulators, all of one number, are kept apart and are no ties") {
  std::vector<std::unique_ptr<FakeNode>> leaves;
  FakeNode root;
  for (int i = 0; i < 500; ++i) {
    leaves.push_back(std::make_unique<FakeNode>());
    leaves.back()->sequence = UINT64_MAX;
    root.edges.push_back({leaves.back().get(), 0});
  }
  FakePlan plan;
  plan.add_root(&root);
  plan.expand(0);
  CHECK_EQ(plan.entries.size(), 501u);
  CHECK(!plan.ties);
}

TEST_CASE("nodes that two threads numbered alike are kept apart and are ties") {
  FakeNode a, b, root;
  root.sequence = 2;
  a.sequence = b.sequence = 1;
  root.edges = {{&a, 0}, {&b, 0}, {&a, 0}};
  FakePlan plan;
  plan.add_root(&root);
  plan.expand(0);
  CHECK_EQ(plan.entries.size(), 3u);
  CHECK_EQ(plan.entries[plan.find(&a)].waiting, 2u);
  CHECK_EQ(plan.entries[plan.find(&b)].waiting, 1u);
  CHECK(plan.ties);
}

TEST_CASE("a node that was out of the table's reach at first is found again once the table has grown") {
  FakeNode old, root;
  std::vector<std::unique_ptr<FakeNode>> chain;
  for (uint32_t i = 0; i < 2000; ++i) {
    chain.push_back(std::make_unique<FakeNode>());
    chain.back()->sequence = 20'000 - i;
    if (i > 0) chain[i - 1]->edges = {{chain.back().get(), 0}};
  }
  chain.back()->edges = {{&old, 0}};
  old.sequence = 10'000;
  root.sequence = 20'001;
  root.edges = {{&old, 0}, {chain.front().get(), 0}};
  FakePlan plan;
  plan.add_root(&root);
  plan.expand(0);
  CHECK_EQ(plan.entries.size(), 2002u);
  CHECK_EQ(plan.entries[plan.find(&old)].waiting, 2u);
}

TEST_CASE("nodes less deep than asked for are counted but not followed") {
  const auto nodes = test::random_graph(100, 1, 7);
  FakePlan plan;
  plan.add_root(nodes.back().get());
  const uint64_t least = nodes.back()->depth / 2;
  plan.expand(least);
  for (const auto& entry : plan.entries) {
    if (entry.node->depth < least) CHECK_EQ(entry.edges, 0u);
  }
  CHECK_EQ(plan.find(nodes.front().get()), FakePlan::kNone);
}

TEST_CASE("the topological order has every node after those that have an edge to it") {
  const auto nodes = test::random_graph(300, 1, 3);
  FakePlan plan;
  plan.add_root(nodes.back().get());
  plan.expand(0);
  std::vector<uint32_t> order;
  plan.topological_order(order);
  CHECK_EQ(order.size(), plan.entries.size());
  std::vector<size_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (uint32_t i = 0; i < plan.entries.size(); ++i) {
    for (uint32_t at = 0; at < plan.entries[i].edges; ++at) {
      CHECK(position[i] < position[plan.edges[plan.entries[i].edges_at + at].target]);
    }
  }
}
