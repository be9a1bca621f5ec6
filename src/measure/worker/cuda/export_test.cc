// SPDX-License-Identifier: Apache-2.0
// From a captured graph to a launch plan, and why a graph cannot become one.
#if KERNELPRO_HAVE_CUDA

#include <functional>

#include "measure/worker/cuda/capture.h"
#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {
namespace {

struct Export : FakeContext {
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    auto made = ScratchMapping::make(cu(), 0, layout);
    ASSERT_TRUE(made);
    scratch = std::move(*made);
    fake::define("k", {{8, 16}});
    ASSERT_EQ(cu().ModuleLoadData(&module, fake::image({"k"}).c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cu().ModuleGetFunction(&function, module, "k"), CUDA_SUCCESS);
    ASSERT_EQ(cu().GraphCreate(&graph, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (graph != nullptr) cu().GraphDestroy(graph);
    if (module != nullptr) cu().ModuleUnload(module);
    scratch = ScratchMapping();
    FakeContext::TearDown();
  }

  struct Pair {
    std::uint64_t first, second;
  };
  CUgraphNode add_kernel(std::uint64_t pointer, Pair pair = {}) {
    void* parameters[] = {&pointer, &pair};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function;
    params.gridDimX = 5;
    params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = 64;
    params.blockDimY = 2;
    params.blockDimZ = 1;
    params.sharedMemBytes = 256;
    params.kernelParams = parameters;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cu().GraphAddKernelNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    return node;
  }
  CUgraphNode add_copy(const std::function<void(CUDA_MEMCPY3D*)>& change) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = x;
    copy.dstDevice = y;
    copy.WidthInBytes = 64;
    copy.Height = copy.Depth = 1;
    change(&copy);
    CUgraphNode node = nullptr;
    EXPECT_EQ(cu().GraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, nullptr), CUDA_SUCCESS);
    return node;
  }
  void attribute(CUgraphNode node, CUlaunchAttributeID id,
                 const std::function<void(CUlaunchAttributeValue*)>& set) {
    CUlaunchAttributeValue value{};
    set(&value);
    EXPECT_EQ(cu().GraphKernelNodeSetAttribute(node, id, &value), CUDA_SUCCESS);
  }
  LaunchPlan plan() {
    auto exported = export_graph(cu(), graph, layout);
    EXPECT_TRUE(exported) << exported.error().reason;
    return exported ? *exported : LaunchPlan();
  }
  std::string broken_rule() {
    const auto exported = export_graph(cu(), graph, layout);
    if (exported) return "none";
    EXPECT_FALSE(exported.error().reason.empty());
    return exported.error().rule;
  }
  static std::string bytes(std::uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }

  const AddressLayout layout = toy_layout(1000);
  const std::uint64_t x = layout.slots[0].address, y = layout.slots[1].address;
  ScratchMapping scratch;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUgraph graph = nullptr;
};

TEST_F(Export, KeepsAllOfALaunch) {
  cu().FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99'000);
  cu().FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 60);
  cu().FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  CUgraphNode node = add_kernel(x + 8, {7, y});
  attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, [](CUlaunchAttributeValue* v) {
    v->clusterDim = {5, 1, 1};
  });
  attribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            [](CUlaunchAttributeValue* v) { v->cooperative = 1; });
  attribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY,
            [](CUlaunchAttributeValue* v) { v->priority = -2; });
  attribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            [](CUlaunchAttributeValue* v) {
              v->clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
            });
  const LaunchPlan exported = plan();
  ASSERT_EQ(exported.nodes.size(), 1u);
  const PlanNode& n = exported.nodes[0];
  EXPECT_EQ(n.kind, PlanNode::Kind::kKernel);
  EXPECT_EQ(n.function, "k");
  EXPECT_EQ(n.grid, (std::array<std::uint32_t, 3>{5, 1, 1}));
  EXPECT_EQ(n.block, (std::array<std::uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(n.cluster, (std::array<std::uint32_t, 3>{5, 1, 1}));
  EXPECT_EQ(n.dynamic_shared, 256u);
  EXPECT_EQ(n.max_dynamic_shared, 99'000);
  EXPECT_EQ(n.shared_carveout, 60);
  EXPECT_TRUE(n.non_portable_cluster);
  EXPECT_TRUE(n.cooperative);
  EXPECT_EQ(n.priority, -2);
  EXPECT_EQ(n.cluster_policy, CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
  ASSERT_EQ(n.parameters.size(), 2u);
  EXPECT_EQ(n.parameters[0].bytes, bytes(x + 8));
  EXPECT_EQ(n.parameters[1].bytes, bytes(7) + bytes(y));
}

TEST_F(Export, KeepsCopiesMemsetsAndEdges) {
  const CUgraphNode first = add_kernel(x);
  const CUgraphNode second = add_copy([&](CUDA_MEMCPY3D* copy) {
    copy->srcPitch = 200;
    copy->srcHeight = 3;
    copy->srcXInBytes = 4;
    copy->srcY = 1;
    copy->srcZ = 2;
    copy->dstPitch = 100;
    copy->dstHeight = 2;
    copy->Height = 2;
  });
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = y + 4;
  set.value = 9;
  set.elementSize = 2;
  set.width = 10;
  set.height = 1;
  CUgraphNode third = nullptr;
  ASSERT_EQ(cu().GraphAddMemsetNode(&third, graph, nullptr, 0, &set, nullptr), CUDA_SUCCESS);
  CUgraphEdgeData data{};
  data.from_port = 1;
  data.type = 1;
  ASSERT_EQ(cu().GraphAddDependencies(graph, &third, &first, nullptr, 1), CUDA_SUCCESS);
  ASSERT_EQ(cu().GraphAddDependencies(graph, &first, &second, &data, 1), CUDA_SUCCESS);
  const LaunchPlan exported = plan();
  ASSERT_EQ(exported.nodes.size(), 3u);
  const PlanNode &copy = exported.nodes[1], &memset = exported.nodes[2];
  EXPECT_EQ(copy.source.bytes, bytes(x + 4 + (2 * 3 + 1) * 200)) << "offsets become addresses";
  EXPECT_EQ(copy.destination.bytes, bytes(y));
  EXPECT_EQ(copy.source_pitch, 200u);
  EXPECT_EQ(copy.source_height, 3u);
  EXPECT_EQ(copy.destination_pitch, 100u);
  EXPECT_EQ(copy.width, 64u);
  EXPECT_EQ(copy.height, 2u);
  EXPECT_EQ(memset.destination.bytes, bytes(y + 4));
  EXPECT_EQ(memset.value, 9u);
  EXPECT_EQ(memset.element_bytes, 2u);
  EXPECT_EQ(memset.width, 10u);
  ASSERT_EQ(exported.edges.size(), 2u);
  EXPECT_EQ(exported.edges[0].from, 2);
  EXPECT_EQ(exported.edges[0].to, 0);
  EXPECT_EQ(exported.edges[1].from_port, 1);
  EXPECT_EQ(exported.edges[1].type, 1);
  EXPECT_EQ(exported.problem(), "");
}

TEST_F(Export, RefusesMemoryThatIsNotTheTasks) {
  CUdeviceptr foreign = 0;
  ASSERT_EQ(cu().MemAlloc(&foreign, 4096), CUDA_SUCCESS);
  const std::uint64_t host = 0x7fff12345678;
  fake::add_host_memory(host);
  // A number that is no address the driver knows is just a number.
  add_kernel(x, {0x123456789abcdef0, 5});
  EXPECT_EQ(broken_rule(), "none");
  add_kernel(x, {0, foreign});
  EXPECT_EQ(broken_rule(), "foreign-memory") << "inside a struct too";
  cu().GraphDestroy(graph);
  cu().GraphCreate(&graph, 0);
  add_kernel(host);
  EXPECT_EQ(broken_rule(), "foreign-memory");
  cu().GraphDestroy(graph);
  cu().GraphCreate(&graph, 0);
  add_copy([&](CUDA_MEMCPY3D* copy) { copy->dstDevice = foreign; });
  EXPECT_EQ(broken_rule(), "foreign-memory");
  cu().GraphDestroy(graph);
  cu().GraphCreate(&graph, 0);
  add_copy([&](CUDA_MEMCPY3D* copy) { copy->srcMemoryType = CU_MEMORYTYPE_HOST; });
  EXPECT_EQ(broken_rule(), "host-copy");
  cu().MemFree(foreign);
}

TEST_F(Export, RefusesNodesThatAPlanCannotHold) {
  for (const CUgraphNodeType type :
       {CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}) {
    fake::add_node(graph, type);
    EXPECT_EQ(broken_rule(), "graph-node") << static_cast<int>(type);
    cu().GraphDestroy(graph);
    cu().GraphCreate(&graph, 0);
  }
}

TEST_F(Export, RefusesAttributesThatAPlanCannotHold) {
  const std::pair<CUlaunchAttributeID, std::function<void(CUlaunchAttributeValue*)>> cases[] = {
      {CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
       [](CUlaunchAttributeValue* v) { v->accessPolicyWindow.num_bytes = 1; }},
      {CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
       [](CUlaunchAttributeValue* v) { v->memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE; }},
      {CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
       [](CUlaunchAttributeValue* v) {
         v->preferredClusterDim = {2, 1, 1};
       }},
      {CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
       [](CUlaunchAttributeValue* v) { v->deviceUpdatableKernelNode.deviceUpdatable = 1; }},
  };
  for (const auto& [id, set] : cases) {
    attribute(add_kernel(x), id, set);
    EXPECT_EQ(broken_rule(), "launch-attribute") << static_cast<int>(id);
    cu().GraphDestroy(graph);
    cu().GraphCreate(&graph, 0);
  }
}

TEST_F(Export, ReportsADriverThatFails) {
  add_copy([](CUDA_MEMCPY3D*) {});
  add_kernel(x);
  for (const char* call : {"GraphGetNodes", "GraphGetEdges", "GraphNodeGetType",
                           "GraphKernelNodeGetParams", "GraphMemcpyNodeGetParams", "FuncGetName"}) {
    fake::fail(call, CUDA_ERROR_UNKNOWN);
    EXPECT_EQ(broken_rule(), "capture") << call;
  }
  EXPECT_EQ(broken_rule(), "none");
}

}  // namespace
}  // namespace kernelpro::testing

#endif
