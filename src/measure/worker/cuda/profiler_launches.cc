// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/profiler_launches.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace kernelpro {

namespace {
// Launches of one kernel are mostly alike.
constexpr std::size_t kMostOfOne = 4;
// Share of a launch's time that is its kernel's, however long starts take.
constexpr double kLeastShare = 0.1;

double blocks(const PlanNode& node) { return 1.0 * node.grid[0] * node.grid[1] * node.grid[2]; }
}  // namespace

std::vector<int> plan_order(const LaunchPlan& plan) {
  std::vector<int> waits(plan.nodes.size(), 0);
  std::vector<std::vector<int>> after(plan.nodes.size());
  for (const PlanEdge& edge : plan.edges) {
    after[static_cast<std::size_t>(edge.from)].push_back(edge.to);
    ++waits[static_cast<std::size_t>(edge.to)];
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int to : after[static_cast<std::size_t>(next)]) {
      if (--waits[static_cast<std::size_t>(to)] == 0) ready.push(to);
    }
  }
  return order;
}

std::vector<int> chosen_launches(const LaunchPlan& plan, std::size_t most,
                                 const std::vector<double>& us) {
  std::vector<int> kernels;
  for (const int i : plan_order(plan)) {
    if (plan.nodes[static_cast<std::size_t>(i)].kind == PlanNode::Kind::kKernel) {
      kernels.push_back(i);
    }
  }
  if (kernels.size() <= most) return kernels;
  const auto node = [&](int i) -> const PlanNode& {
    return plan.nodes[static_cast<std::size_t>(i)];
  };
  const bool timed = us.size() == plan.nodes.size();
  const auto size = [&](std::size_t k) {
    return timed ? us[static_cast<std::size_t>(kernels[k])] : blocks(node(kernels[k]));
  };
  std::vector<std::size_t> by_size(kernels.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  const auto larger = [&](std::size_t a, std::size_t b) { return size(a) > size(b); };
  if (timed) std::stable_sort(by_size.begin(), by_size.end(), larger);
  // One launch of each kernel before all others.
  std::map<std::string, std::size_t> launches;
  std::vector<std::pair<bool, std::size_t>> ranked;  // whether it repeats, place in `kernels`
  for (const std::size_t k : by_size) {
    const std::size_t before = launches[node(kernels[k]).function]++;
    if (!timed || before < kMostOfOne) ranked.emplace_back(before > 0, k);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? !a.first : larger(a.second, b.second);
  });
  std::vector<std::size_t> places;
  for (std::size_t k = 0; k < std::min(most, ranked.size()); ++k) {
    places.push_back(ranked[k].second);
  }
  std::sort(places.begin(), places.end());
  std::vector<int> chosen;
  for (const std::size_t place : places) chosen.push_back(kernels[place]);
  return chosen;
}

void add_timed_launches(const LaunchPlan& plan, const std::vector<double>& us,
                        std::vector<LaunchCounters>* launches) {
  constexpr const char* kTime = "gpu__time_duration.sum";  // ns
  if (us.size() != plan.nodes.size()) return;
  const auto node_of = [&](int i) -> const PlanNode& {
    return plan.nodes[static_cast<std::size_t>(i)];
  };
  // Counted are those that seemed the longest, by chance perhaps: their like tell what they take.
  std::map<std::pair<std::string, double>, std::vector<double>> alike;
  for (const int i : plan_order(plan)) {
    if (node_of(i).kind != PlanNode::Kind::kKernel) continue;
    alike[{node_of(i).function, blocks(node_of(i))}].push_back(us[static_cast<std::size_t>(i)]);
  }
  for (auto& [like, times] : alike) std::sort(times.begin(), times.end());
  std::set<int> counted;
  std::vector<double> starts;  // us
  for (const LaunchCounters& launch : *launches) {
    counted.insert(launch.node);
    const auto time = launch.values.find(kTime);
    if (time == launch.values.end() || launch.node < 0) continue;
    const std::vector<double>& times = alike[{launch.function, blocks(node_of(launch.node))}];
    if (times.empty()) continue;
    starts.push_back(times[times.size() / 2] - 1e-3 * time->second);
  }
  std::sort(starts.begin(), starts.end());
  const double start = starts.empty() ? 0 : std::max(0.0, starts[starts.size() / 2]);
  for (const int i : plan_order(plan)) {
    const PlanNode& node = node_of(i);
    if (node.kind != PlanNode::Kind::kKernel || counted.contains(i)) continue;
    const double taken = us[static_cast<std::size_t>(i)];
    const double time = std::max(taken - start, kLeastShare * taken);
    if (time > 0) launches->push_back({node.function, i, {{kTime, 1e3 * time}}});
  }
}

Result<PlanLauncher> PlanLauncher::build(const CudaDriver& cu, std::span<const std::string> images,
                                         const LaunchPlan& plan, const AddressLayout& layout) {
  const std::string problem = plan.problem();
  if (!problem.empty()) return plan_misfit(problem);
  PlanLauncher launcher;
  launcher.cu_ = &cu;
  for (const std::string& image : images) {
    CUmodule module = nullptr;
    const CUresult loaded = cu.ModuleLoadData(&module, image.data());
    if (loaded != CUDA_SUCCESS) return plan_misfit("the cubin does not load", loaded);
    launcher.modules_.push_back(module);
  }
  for (const PlanNode& plan_node : plan.nodes) {
    Node& node = launcher.nodes_.emplace_back();
    node.plan = plan_node;
    if (plan_node.kind == PlanNode::Kind::kKernel) {
      const auto image = static_cast<std::size_t>(plan_node.image);
      if (image >= images.size()) return plan_misfit(plan_node.function + " is in no image");
      KP_ASSIGN(node.kernel, kernel_node(cu, launcher.modules_[image], plan_node, layout));
    } else if (plan_node.kind == PlanNode::Kind::kMemcpy) {
      KP_ASSIGN(node.copy, memcpy_node(plan_node, layout));
    } else if (plan_node.kind == PlanNode::Kind::kMemset) {
      KP_ASSIGN(node.set, memset_node(plan_node, layout));
    }
  }
  return launcher;
}

CUresult PlanLauncher::launch_kernel(Node& node, CUstream stream) const {
  std::vector<void*> pointers = node.kernel.pointers();
  CUlaunchConfig config{};
  config.gridDimX = node.plan.grid[0];
  config.gridDimY = node.plan.grid[1];
  config.gridDimZ = node.plan.grid[2];
  config.blockDimX = node.plan.block[0];
  config.blockDimY = node.plan.block[1];
  config.blockDimZ = node.plan.block[2];
  config.sharedMemBytes = node.plan.dynamic_shared;
  config.hStream = stream;
  config.attrs = node.kernel.attributes.data();
  config.numAttrs = static_cast<unsigned>(node.kernel.attributes.size());
  return cu_->LaunchKernelEx(&config, node.kernel.function, pointers.data(), nullptr);
}

CUresult PlanLauncher::run_memset(const CUDA_MEMSET_NODE_PARAMS& set, CUstream stream) const {
  // One row has no pitch; the driver needs one that holds it.
  const std::size_t pitch =
      set.height > 1 ? set.pitch : std::max(set.pitch, set.width * set.elementSize);
  switch (set.elementSize) {
    case 1:
      return cu_->MemsetD2D8Async(set.dst, pitch, static_cast<unsigned char>(set.value), set.width,
                                  set.height, stream);
    case 2:
      return cu_->MemsetD2D16Async(set.dst, pitch, static_cast<unsigned short>(set.value),
                                   set.width, set.height, stream);
    default:
      return cu_->MemsetD2D32Async(set.dst, pitch, set.value, set.width, set.height, stream);
  }
}

CUresult PlanLauncher::launch(int index, CUstream stream) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  switch (node.plan.kind) {
    case PlanNode::Kind::kKernel:
      return launch_kernel(node, stream);
    case PlanNode::Kind::kMemcpy:
      return cu_->Memcpy3DAsync(&node.copy, stream);
    case PlanNode::Kind::kMemset:
      return run_memset(node.set, stream);
    case PlanNode::Kind::kEmpty:
      break;
  }
  return CUDA_SUCCESS;
}

PlanLauncher::PlanLauncher(PlanLauncher&& other) noexcept { *this = std::move(other); }

PlanLauncher& PlanLauncher::operator=(PlanLauncher&& other) noexcept {
  std::swap(cu_, other.cu_);
  std::swap(modules_, other.modules_);
  std::swap(nodes_, other.nodes_);
  return *this;
}

PlanLauncher::~PlanLauncher() {
  if (cu_ == nullptr) return;
  for (const CUmodule module : modules_) cu_->ModuleUnload(module);
}

}  // namespace kernelpro

#endif
