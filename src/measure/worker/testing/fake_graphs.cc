// SPDX-License-Identifier: Apache-2.0
// The fake driver's graphs.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>

#include "measure/worker/testing/fake_state.h"

namespace kernelpro::fake {

namespace {

Graph* graph_of(CUgraph handle) {
  return state().graphs.has(handle) ? reinterpret_cast<Graph*>(handle) : nullptr;
}
Node* node_of(CUgraphNode handle) { return reinterpret_cast<Node*>(handle); }

CUgraphNode add(Graph* graph, CUgraphNodeType type) {
  graph->nodes.push_back(std::make_unique<Node>());
  graph->nodes.back()->type = type;
  return reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
}

// Nodes in an order that the edges allow, the last one that may run first; fewer on a cycle.
std::vector<Node*> order_of(const Graph& graph) {
  std::map<Node*, int> waits;
  for (const Edge& edge : graph.edges) ++waits[edge.to];
  std::vector<Node*> left, order;
  for (const auto& node : graph.nodes) left.push_back(node.get());
  for (;;) {
    const auto ready =
        std::find_if(left.rbegin(), left.rend(), [&](Node* node) { return waits[node] == 0; });
    if (ready == left.rend()) return order;
    Node* node = *ready;
    left.erase(std::next(ready).base());
    order.push_back(node);
    for (const Edge& edge : graph.edges) {
      if (edge.from == node) --waits[edge.to];
    }
  }
}

}  // namespace

}  // namespace kernelpro::fake

using namespace kernelpro::fake;

KP_FAKE(GraphCreate, CUgraph* graph, unsigned) {
  KP_FAKE_ENTER(GraphCreate);
  *graph = reinterpret_cast<CUgraph>(state().graphs.add());
  return CUDA_SUCCESS;
}
KP_FAKE(GraphDestroy, CUgraph graph) {
  state().leave("GraphDestroy");
  if (!state().graphs.remove(graph)) state().complain("an unknown graph is destroyed");
  return state().broken;
}

KP_FAKE(GraphAddKernelNode, CUgraphNode* made, CUgraph graph, const CUgraphNode*, std::size_t,
        const CUDA_KERNEL_NODE_PARAMS* params) {
  KP_FAKE_ENTER(GraphAddKernelNode);
  auto* function = reinterpret_cast<Function*>(params->func);
  if (graph_of(graph) == nullptr || !state().functions.has(function)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Launch launch;
  launch.kernel = function->name;
  launch.grid = {params->gridDimX, params->gridDimY, params->gridDimZ};
  launch.block = {params->blockDimX, params->blockDimY, params->blockDimZ};
  launch.shared = params->sharedMemBytes;
  if (const CUresult bad = check_launch(*function, launch); bad != CUDA_SUCCESS) return bad;
  read_parameters(*function->kernel, params->kernelParams, &launch);
  *made = add(graph_of(graph), CU_GRAPH_NODE_TYPE_KERNEL);
  Node* node = node_of(*made);
  node->function = function;
  node->launch = std::move(launch);
  for (std::string& value : node->launch.parameters) node->pointers.push_back(value.data());
  return CUDA_SUCCESS;
}
KP_FAKE(GraphAddMemcpyNode, CUgraphNode* made, CUgraph graph, const CUgraphNode*, std::size_t,
        const CUDA_MEMCPY3D* copy, CUcontext) {
  KP_FAKE_ENTER(GraphAddMemcpyNode);
  if (graph_of(graph) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool device =
      copy->srcMemoryType == CU_MEMORYTYPE_DEVICE && copy->dstMemoryType == CU_MEMORYTYPE_DEVICE;
  if (device && !fits(*copy)) return CUDA_ERROR_INVALID_VALUE;
  *made = add(graph_of(graph), CU_GRAPH_NODE_TYPE_MEMCPY);
  node_of(*made)->copy = *copy;
  return CUDA_SUCCESS;
}
KP_FAKE(GraphAddMemsetNode, CUgraphNode* made, CUgraph graph, const CUgraphNode*, std::size_t,
        const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  KP_FAKE_ENTER(GraphAddMemsetNode);
  if (graph_of(graph) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!fits(*set)) return CUDA_ERROR_INVALID_VALUE;
  *made = add(graph_of(graph), CU_GRAPH_NODE_TYPE_MEMSET);
  node_of(*made)->set = *set;
  return CUDA_SUCCESS;
}
KP_FAKE(GraphAddEmptyNode, CUgraphNode* made, CUgraph graph, const CUgraphNode*, std::size_t) {
  KP_FAKE_ENTER(GraphAddEmptyNode);
  if (graph_of(graph) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *made = add(graph_of(graph), CU_GRAPH_NODE_TYPE_EMPTY);
  return CUDA_SUCCESS;
}
KP_FAKE(GraphAddDependencies, CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
        const CUgraphEdgeData* data, std::size_t count) {
  KP_FAKE_ENTER(GraphAddDependencies);
  if (graph_of(graph) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (std::size_t i = 0; i < count; ++i) {
    graph_of(graph)->edges.push_back(
        {node_of(from[i]), node_of(to[i]), data == nullptr ? CUgraphEdgeData{} : data[i]});
  }
  return CUDA_SUCCESS;
}

KP_FAKE(GraphGetNodes, CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  KP_FAKE_ENTER(GraphGetNodes);
  const auto& all = graph_of(graph)->nodes;
  for (std::size_t i = 0; nodes != nullptr && i < std::min(*count, all.size()); ++i) {
    nodes[i] = reinterpret_cast<CUgraphNode>(all[i].get());
  }
  *count = all.size();
  return CUDA_SUCCESS;
}
KP_FAKE(GraphGetEdges, CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
        std::size_t* count) {
  KP_FAKE_ENTER(GraphGetEdges);
  const auto& all = graph_of(graph)->edges;
  for (std::size_t i = 0; from != nullptr && i < std::min(*count, all.size()); ++i) {
    from[i] = reinterpret_cast<CUgraphNode>(all[i].from);
    to[i] = reinterpret_cast<CUgraphNode>(all[i].to);
    data[i] = all[i].data;
  }
  *count = all.size();
  return CUDA_SUCCESS;
}
KP_FAKE(GraphNodeGetType, CUgraphNode node, CUgraphNodeType* type) {
  KP_FAKE_ENTER(GraphNodeGetType);
  *type = node_of(node)->type;
  return CUDA_SUCCESS;
}
KP_FAKE(GraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  KP_FAKE_ENTER(GraphKernelNodeGetParams);
  Node* n = node_of(node);
  *params = {};
  params->func = reinterpret_cast<CUfunction>(n->function);
  params->gridDimX = n->launch.grid[0];
  params->gridDimY = n->launch.grid[1];
  params->gridDimZ = n->launch.grid[2];
  params->blockDimX = n->launch.block[0];
  params->blockDimY = n->launch.block[1];
  params->blockDimZ = n->launch.block[2];
  params->sharedMemBytes = n->launch.shared;
  params->kernelParams = n->pointers.data();
  return CUDA_SUCCESS;
}
KP_FAKE(GraphKernelNodeGetAttribute, CUgraphNode node, CUlaunchAttributeID id,
        CUlaunchAttributeValue* value) {
  KP_FAKE_ENTER(GraphKernelNodeGetAttribute);
  const auto& known = node_of(node)->attributes;
  const auto found = known.find(static_cast<int>(id));
  *value = found == known.end() ? CUlaunchAttributeValue{} : found->second;
  return CUDA_SUCCESS;
}
KP_FAKE(GraphKernelNodeSetAttribute, CUgraphNode node, CUlaunchAttributeID id,
        const CUlaunchAttributeValue* value) {
  KP_FAKE_ENTER(GraphKernelNodeSetAttribute);
  Node* n = node_of(node);
  apply_attribute(id, *value, &n->launch);
  n->attributes[static_cast<int>(id)] = *value;
  return check_launch(*n->function, n->launch);
}
KP_FAKE(GraphMemcpyNodeGetParams, CUgraphNode node, CUDA_MEMCPY3D* copy) {
  KP_FAKE_ENTER(GraphMemcpyNodeGetParams);
  *copy = node_of(node)->copy;
  return CUDA_SUCCESS;
}
KP_FAKE(GraphMemsetNodeGetParams, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* set) {
  KP_FAKE_ENTER(GraphMemsetNodeGetParams);
  *set = node_of(node)->set;
  return CUDA_SUCCESS;
}

KP_FAKE(GraphInstantiate, CUgraphExec* exec, CUgraph graph, unsigned long long) {
  KP_FAKE_ENTER(GraphInstantiate);
  if (graph_of(graph) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::vector<Node*> order = order_of(*graph_of(graph));
  if (order.size() != graph_of(graph)->nodes.size()) return CUDA_ERROR_INVALID_VALUE;
  Exec* made = state().execs.add();
  for (const Node* node : order) made->order.push_back(*node);
  *exec = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}
KP_FAKE(GraphExecDestroy, CUgraphExec exec) {
  state().leave("GraphExecDestroy");
  if (!state().execs.remove(exec)) state().complain("an unknown executable graph is destroyed");
  return state().broken;
}
KP_FAKE(GraphUpload, CUgraphExec exec, CUstream stream) {
  KP_FAKE_ENTER(GraphUpload);
  return state().execs.has(exec) && state().good_stream(stream) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_HANDLE;
}
KP_FAKE(GraphLaunch, CUgraphExec exec, CUstream stream) {
  KP_FAKE_ENTER(GraphLaunch);
  if (!state().execs.has(exec) || !state().good_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  for (const Node& node : reinterpret_cast<Exec*>(exec)->order) {
    CUresult done = CUDA_SUCCESS;
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      done = state().run(node.function, node.launch, "run");
    } else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
      done = state().copy(node.copy);
    } else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
      done = state().set(node.set);
    }
    if (done != CUDA_SUCCESS) return done;
    if (state().broken != CUDA_SUCCESS) break;  // told by the next call
  }
  return CUDA_SUCCESS;
}

#endif
