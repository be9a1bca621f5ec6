// SPDX-License-Identifier: Apache-2.0
// What reaches the driver from a launch plan: as a graph, and launch by launch for the profiler.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/graph.h"

#include <functional>

#include "measure/worker/cuda/profiler_launches.h"
#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {
namespace {

constexpr std::uint64_t kElements = 1000;

struct Graphs : FakeContext {
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    mapped = MappedLayout::make(cu(), 0, layout);
    fake::define("add", {{8, 8, 4}, [](fake::Launch& launch) {
                           float* x = launch.memory<float>(0, kElements);
                           float* y = launch.memory<float>(1, kElements);
                           for (std::size_t i = 0; y != nullptr && i < kElements; ++i) {
                             y[i] = x[i] + launch.value<float>(2);
                           }
                         }});
    fake::define("count", {{8}, [](fake::Launch& launch) {
                             int* calls = launch.memory<int>(0, 1);
                             if (calls != nullptr) *calls = ++(*launch.globals)["calls"];
                           }});
    fake::define("big", {{}, nullptr, 10, 3000});
  }
  void TearDown() override {
    mapped = MappedLayout();
    FakeContext::TearDown();
  }
  Result<ReplayGraph> build(const LaunchPlan& plan, const std::string& cubin = "") {
    return ReplayGraph::build(cu(), cubin.empty() ? fake::image({"add", "count", "big"}) : cubin,
                              plan, layout);
  }
  // Why the plan does not fit.
  std::string misfit(const LaunchPlan& plan) {
    const auto graph = build(plan);
    if (graph) return "it fits";
    EXPECT_EQ(graph.error().kind, ErrorKind::kBadInput) << graph.error().message;
    const std::string prefix = "the launch plan does not fit its code: ";
    EXPECT_TRUE(graph.error().message.starts_with(prefix)) << graph.error().message;
    return graph.error().message.substr(std::min(prefix.size(), graph.error().message.size()));
  }
  float* x() { return at<float>(layout.slots[0].address); }
  float* y() { return at<float>(layout.slots[1].address); }

  const AddressLayout layout = toy_layout(kElements, 4096);
  MappedLayout mapped;
};

PlanNode plus(int from, int to, float by) {
  return kernel("add", {tensor(from), tensor(to), constant(by)});
}

TEST_F(Graphs, GiveAKernelWhatThePlanSays) {
  PlanNode node = plus(0, 1, 1.5f);
  node.grid = {7, 2, 3};
  node.block = {32, 4, 2};
  node.cluster = {1, 2, 3};
  node.cluster_policy = 2;
  node.cooperative = true;
  node.priority = -3;
  node.dynamic_shared = 1024;
  node.shared_carveout = 40;
  const auto graph = build(in_a_row({node}));
  ASSERT_TRUE(graph) << graph.error().text();
  ASSERT_EQ(graph->launch(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(fake::launches().size(), 1u);
  const fake::Launch& launch = fake::launches()[0];
  EXPECT_EQ(launch.grid, node.grid);
  EXPECT_EQ(launch.block, node.block);
  EXPECT_EQ(launch.cluster, node.cluster);
  EXPECT_EQ(launch.cluster_policy, 2);
  EXPECT_TRUE(launch.cooperative);
  EXPECT_EQ(launch.priority, -3);
  EXPECT_EQ(launch.shared, 1024u);
  EXPECT_EQ(launch.carveout, 40);
  EXPECT_EQ(launch.value<std::uint64_t>(0), layout.slots[0].address);
  EXPECT_EQ(launch.value<std::uint64_t>(1), layout.slots[1].address);
  EXPECT_EQ(launch.value<float>(2), 1.5f);
}

TEST_F(Graphs, AddOffsetsToTensorsAndTheWorkspace) {
  const auto graph =
      build(in_a_row({kernel("add", {tensor(1, 40), workspace(64), constant(0.f)})}));
  ASSERT_TRUE(graph) << graph.error().text();
  ASSERT_EQ(graph->launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fake::launches()[0].value<std::uint64_t>(0), layout.slots[1].address + 40);
  EXPECT_EQ(fake::launches()[0].value<std::uint64_t>(1), layout.slots[2].address + 64);
}

// The fake runs nodes without an edge between them last to first.
TEST_F(Graphs, KeepTheOrderThatEdgesDemand) {
  PlanNode clear;
  clear.kind = PlanNode::Kind::kMemset;
  clear.destination = tensor(0);
  clear.value = 0x40000000;  // 2.0f
  clear.element_bytes = 4;
  clear.width = kElements;
  PlanNode copy;
  copy.kind = PlanNode::Kind::kMemcpy;
  copy.source = tensor(1);
  copy.destination = workspace();
  copy.width = copy.source_pitch = copy.destination_pitch = 4 * kElements;
  copy.source_height = copy.destination_height = 1;
  const auto graph = build(in_a_row({clear, plus(0, 1, 3), PlanNode(), copy}));
  ASSERT_TRUE(graph) << graph.error().text();
  for (std::size_t i = 0; i < kElements; ++i) x()[i] = y()[i] = -1;
  ASSERT_EQ(graph->launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(x()[kElements - 1], 2);
  EXPECT_EQ(y()[kElements - 1], 5);
  EXPECT_EQ(at<float>(layout.slots[2].address)[kElements - 1], 5);
}

TEST_F(Graphs, KeepThePortsOfProgrammaticEdges) {
  LaunchPlan plan = in_a_row({plus(0, 1, 1), plus(1, 1, 1)});
  plan.edges[0].from_port = 1;
  plan.edges[0].type = 1;
  EXPECT_TRUE(build(plan));
  plan.edges[0].to = 9;
  EXPECT_EQ(misfit(plan), "an edge to nowhere");
}

TEST_F(Graphs, OptInToLargeSharedMemory) {
  PlanNode node = plus(0, 1, 1);
  node.dynamic_shared = 200 * 1024;
  const auto graph = build(in_a_row({node}));
  ASSERT_TRUE(graph) << graph.error().text();
  ASSERT_EQ(graph->launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(fake::launches()[0].shared, 200u * 1024);
  node.dynamic_shared = 300 * 1024;
  EXPECT_EQ(misfit(in_a_row({node})),
            "add asks for 307200 bytes of dynamic shared memory, more than the GPU gives");
  // A captured plan's own limit holds, even if it is too small.
  node.dynamic_shared = 60 * 1024;
  node.max_dynamic_shared = 50 * 1024;
  EXPECT_TRUE(contains(misfit(in_a_row({node})), "INVALID_VALUE"));
}

TEST_F(Graphs, OptInToLargeClusters) {
  PlanNode node = plus(0, 1, 1);
  node.cluster = {16, 1, 1};
  node.grid = {16, 1, 1};
  EXPECT_NE(misfit(in_a_row({node})), "it fits");
  node.non_portable_cluster = true;
  EXPECT_TRUE(build(in_a_row({node})));
}

TEST_F(Graphs, RefusePlansThatDoNotFitTheirCode) {
  EXPECT_EQ(misfit(in_a_row({kernel("other", {})})),
            "the kernel other is not in the cubin (a library's kernel?)");
  EXPECT_EQ(misfit(in_a_row({kernel("add", {tensor(0), tensor(1)})})),
            "add takes more parameters than the plan gives");
  EXPECT_EQ(misfit(in_a_row({kernel("count", {tensor(0), tensor(1)})})),
            "count takes fewer parameters than the plan gives");
  EXPECT_EQ(misfit(in_a_row({kernel("add", {tensor(0), tensor(1), constant(1.0)})})),
            "add: parameter 2 has 4 bytes, the plan gives 8");
  EXPECT_EQ(misfit(LaunchPlan()), "no kernel launch");
  PlanNode set;
  set.kind = PlanNode::Kind::kMemset;
  set.width = 4;
  set.destination = constant(kReferenceBase);
  EXPECT_EQ(misfit(in_a_row({plus(0, 1, 1), set})),
            "a memset outside the tensors and the workspace");
  set.destination = constant(kCandidateBase);  // inside, but nothing is mapped there
  EXPECT_TRUE(misfit(in_a_row({plus(0, 1, 1), set})).starts_with("a memset: "));
  PlanNode copy;
  copy.kind = PlanNode::Kind::kMemcpy;
  copy.width = 4;
  copy.source = tensor(0);
  copy.destination = constant(std::uint64_t{0});
  EXPECT_EQ(misfit(in_a_row({plus(0, 1, 1), copy})),
            "a copy outside the tensors and the workspace");
  const auto damaged = build(in_a_row({plus(0, 1, 1)}), "not a cubin");
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind, ErrorKind::kBadInput);
}

TEST_F(Graphs, StartWithFreshGlobals) {
  const LaunchPlan plan = in_a_row({kernel("count", {tensor(0)})});
  const auto first = build(plan);
  ASSERT_TRUE(first);
  int* calls = at<int>(layout.slots[0].address);
  ASSERT_EQ(first->launch(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(first->launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(*calls, 2);
  const auto second = build(plan);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->launch(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(*calls, 1);
}

TEST_F(Graphs, KnowTheLargestLocalMemory) {
  const auto graph = build(in_a_row({plus(0, 1, 1), kernel("big", {}), plus(0, 1, 1)}));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->local_bytes(), 3000);
  EXPECT_EQ(graph->resident_blocks(plus(0, 1, 1)), 8);
  EXPECT_EQ(graph->resident_blocks(kernel("other", {})), 0);
}

TEST_F(Graphs, ThatAreEmptyDoNotLaunch) {
  const ReplayGraph empty;
  EXPECT_EQ(empty.launch(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(empty.upload(nullptr), CUDA_ERROR_INVALID_HANDLE);
}

// A plan is not at fault when memory is short, the GPU fails, or an earlier kernel broke the
// context.
TEST_F(Graphs, DoNotBlameThePlanForTheMachine) {
  const LaunchPlan plan = in_a_row({plus(0, 1, 1)});
  for (const char* call : {"ModuleLoadData", "ModuleGetFunction", "GraphAddKernelNode",
                           "GraphCreate", "GraphInstantiate"}) {
    for (const CUresult result : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ECC_UNCORRECTABLE,
                                  CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED}) {
      fake::fail(call, result);
      const auto graph = build(plan);
      ASSERT_FALSE(graph) << call;
      EXPECT_EQ(graph.error().kind, ErrorKind::kEnvironment) << call << graph.error().message;
    }
  }
}

TEST_F(Graphs, LeaveNothingBehindWhateverFails) {
  PlanNode set;
  set.kind = PlanNode::Kind::kMemset;
  set.width = 4;
  set.destination = tensor(0);
  PlanNode cooperative = plus(0, 1, 1);
  cooperative.cooperative = true;
  const LaunchPlan plan = in_a_row({set, cooperative, PlanNode()});
  // How much local memory it needs is a fact that may be missing, and the last parameter is known
  // by the next one's absence.
  with_every_call_failing([&] { return build(plan).has_value(); },
                          {"FuncGetAttribute", "ModuleGetFunction", "FuncGetParamInfo"});
  with_every_call_failing(
      [&] { return PlanLauncher::build(cu(), fake::image({"add"}), plan, layout).has_value(); },
      {"FuncGetParamInfo"});
}

// The profiler must measure the same launches.
TEST_F(Graphs, MatchLaunchesOneByOne) {
  PlanNode set;
  set.kind = PlanNode::Kind::kMemset;
  set.destination = tensor(0, 8);
  set.value = 0x3f80;
  set.element_bytes = 2;
  set.width = 3;
  set.height = 5;
  set.destination_pitch = 64;
  PlanNode special = plus(0, 1, 2);
  special.cluster = {2, 1, 1};
  special.cooperative = true;
  special.priority = 1;
  special.dynamic_shared = 100 * 1024;
  special.shared_carveout = 70;
  PlanNode copy;
  copy.kind = PlanNode::Kind::kMemcpy;
  copy.source = tensor(1, 16);
  copy.destination = workspace();
  copy.width = 12;
  copy.height = 4;
  copy.depth = 2;
  copy.source_pitch = 40;
  copy.source_height = 5;
  copy.destination_pitch = 16;
  copy.destination_height = 4;
  const LaunchPlan plan =
      in_a_row({plus(1, 0, 1), set, special, copy, kernel("count", {workspace(8)})});
  const auto contents = [&](const std::function<void()>& run) {
    for (const AddressLayout::Slot& slot : layout.slots) {
      for (std::uint64_t i = 0; i < slot.bytes; ++i) {
        *at<unsigned char>(slot.address + i) = static_cast<unsigned char>(i % 60);
      }
    }
    fake::clear_log();
    run();
    std::string bytes;
    for (const AddressLayout::Slot& slot : layout.slots) {
      bytes.append(at<char>(slot.address), slot.bytes);
    }
    return std::pair(bytes, fake::launches());
  };
  const auto graph = build(plan);
  ASSERT_TRUE(graph) << graph.error().text();
  auto launcher = PlanLauncher::build(cu(), fake::image({"add", "count"}), plan, layout);
  ASSERT_TRUE(launcher) << launcher.error().text();
  const auto whole = contents([&] { EXPECT_EQ(graph->launch(nullptr), CUDA_SUCCESS); });
  const auto single = contents([&] {
    for (const int i : plan_order(plan)) EXPECT_EQ(launcher->launch(i, nullptr), CUDA_SUCCESS);
  });
  EXPECT_EQ(whole.first, single.first);
  ASSERT_EQ(whole.second.size(), 3u);
  ASSERT_EQ(single.second.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const fake::Launch &a = whole.second[i], &b = single.second[i];
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.grid, b.grid);
    EXPECT_EQ(a.block, b.block);
    EXPECT_EQ(a.cluster, b.cluster);
    EXPECT_EQ(a.shared, b.shared);
    EXPECT_EQ(a.carveout, b.carveout);
    EXPECT_EQ(a.cooperative, b.cooperative);
    EXPECT_EQ(a.priority, b.priority);
    EXPECT_EQ(a.parameters, b.parameters);
  }
}

TEST_F(Graphs, EncodeTensorMapsForTheLayout) {
  fake::define("tiled", {{kTensorMapBytes}});
  PlanParameter parameter = tensor(1, 256);
  parameter.map = PlanTensorMap{7, 2, {32, 16}, {128}, {8, 4}, 1};
  const auto graph = ReplayGraph::build(cu(), fake::image({"tiled"}),
                                        in_a_row({kernel("tiled", {parameter})}), layout);
  ASSERT_TRUE(graph) << graph.error().text();
  ASSERT_EQ(graph->launch(nullptr), CUDA_SUCCESS);
  const auto map = fake::launches()[0].value<CUtensorMap>(0);
  EXPECT_EQ(map.opaque[0], layout.slots[1].address + 256);
  EXPECT_EQ(map.opaque[1], 7u);
  EXPECT_EQ(map.opaque[2], 2u);
  EXPECT_EQ(map.opaque[3], 1u);
  EXPECT_EQ(map.opaque[4], 32ull << 32 | 8);
  EXPECT_EQ(map.opaque[5], 16ull << 32 | 4);
  EXPECT_EQ(map.opaque[10], 128u);
}

}  // namespace
}  // namespace kernelpro::testing

#endif
