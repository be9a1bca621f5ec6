// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/device_code.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/files.h"
#include "core/evidence/metrics.h"
#include "core/machine/architecture.h"
#include "core/plan/kernel_name.h"
#include "profile/code/cubin.h"
#include "profile/code/disassemble.h"
#include "profile/sass/occupancy.h"
#include "profile/sass/sass.h"

namespace kernelpro {

namespace {

double volume(const std::array<std::uint32_t, 3>& v) {
  return static_cast<double>(v[0]) * v[1] * v[2];
}

void put(Evidence* e, const std::string& name, double value, const std::string& source) {
  if (std::isfinite(value) && find_metric(name) != nullptr) {
    e->set(name, value, source);
  }
}

void add_ptxas(const KernelResources& r, Evidence* e) {
  put(e, "launch__registers_per_thread", r.registers, "ptxas");
  put(e, "ptxas.stack_bytes", r.stack_bytes, "ptxas");
  if (r.spill_store_bytes >= 0) put(e, "ptxas.spill_store_bytes", r.spill_store_bytes, "ptxas");
  if (r.spill_load_bytes >= 0) put(e, "ptxas.spill_load_bytes", r.spill_load_bytes, "ptxas");
  put(e, "ptxas.shared_bytes", r.shared_bytes, "ptxas");
  put(e, "launch__shared_mem_per_block_static", r.shared_bytes, "ptxas");
}

// The launch of `kernel` with the most threads; null if it is never launched.
const PlanNode* largest_launch(const LaunchPlan& plan, const std::string& kernel) {
  const PlanNode* largest = nullptr;
  const auto threads = [](const PlanNode& n) { return volume(n.grid) * volume(n.block); };
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != PlanNode::Kind::kKernel || node.function != kernel) continue;
    if (largest == nullptr || threads(node) > threads(*largest)) largest = &node;
  }
  return largest;
}

double total_threads(const LaunchPlan& plan, const std::string& kernel) {
  double all = 0;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind == PlanNode::Kind::kKernel && node.function == kernel) {
      all += volume(node.grid) * volume(node.block);
    }
  }
  return all;
}

void add_launch(const PlanNode& node, Evidence* e) {
  put(e, "launch__grid_size", volume(node.grid), "launch plan");
  put(e, "launch__block_size", volume(node.block), "launch plan");
  put(e, "launch__shared_mem_per_block_dynamic", node.dynamic_shared, "launch plan");
  put(e, "launch__cluster_size", std::max(1.0, volume(node.cluster)), "launch plan");
}

// Adds the kernels of a cubin by name, or a note.
void read_sass(const std::string& cubin, const std::vector<std::string>& only, std::string* tool,
               Evidence* call, std::map<std::string, SassFunction>* kernels) {
  const Result<Disassembly> disassembly = disassemble_cubin(cubin, only);
  if (!disassembly) {
    call->note_missing({Family::kSass, disassembly.error().message, disassembly.error().next});
    return;
  }
  *tool = disassembly->tool;
  for (SassFunction& function : parse_sass(disassembly->text)) {
    if (!function.entry || function.code.empty()) continue;
    const std::string name = function.name;
    (*kernels)[name] = std::move(function);
  }
}

// The kernels that a plan launches from its image number `image`, if they are in `only` (empty:
// all).
std::vector<std::string> launched_from(const LaunchPlan& plan, int image,
                                       const std::vector<std::string>& only) {
  std::set<std::string> names;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != PlanNode::Kind::kKernel || node.image != image) continue;
    const bool wanted =
        only.empty() || std::find(only.begin(), only.end(), node.function) != only.end();
    if (wanted) names.insert(node.function);
  }
  return {names.begin(), names.end()};
}

// The kernels by name; empty, with a note, when unavailable.
std::map<std::string, SassFunction> sass_of(const Binary& binary, const LaunchPlan& plan,
                                            const std::vector<std::string>& only, std::string* tool,
                                            Evidence* call) {
  std::map<std::string, SassFunction> kernels;
  if (binary.cubin.empty() && binary.images.empty()) {
    call->note_missing({Family::kSass, "there is no cubin", "compile the candidate"});
    return kernels;
  }
  if (binary.images.empty()) read_sass(binary.cubin, only, tool, call, &kernels);
  for (std::size_t i = 0; i < binary.images.size(); ++i) {
    const auto names = launched_from(plan, static_cast<int>(i), only);
    if (!names.empty()) read_sass(binary.images[i], names, tool, call, &kernels);
  }
  if (kernels.empty() && !tool->empty()) {
    call->note_missing({Family::kSass, *tool + " showed no kernel in the cubin",
                        "check that the candidate has a __global__ function"});
  }
  return kernels;
}

// ptxas's figures; of the code of libraries, those that the images themselves hold.
std::map<std::string, KernelResources> resources_of(const Binary& binary) {
  constexpr std::int64_t kMostBytes = 512LL << 20;
  std::map<std::string, KernelResources> all = binary.resources;
  for (const std::string& path : binary.images) {
    const Result<std::string> image = read_file(path, kMostBytes);
    if (image) all.merge(cubin_resources(*image));
  }
  return all;
}

const KernelSamples* samples_of(const SampleAnswers* answers, const std::string& function) {
  if (answers == nullptr) return nullptr;
  const auto found =
      std::find_if(answers->kernels.begin(), answers->kernels.end(),
                   [&](const KernelSamples& kernel) { return kernel.function == function; });
  return found == answers->kernels.end() ? nullptr : &*found;
}

}  // namespace

void add_residency(const Machine& machine, std::int64_t static_shared, int shared_carveout,
                   Evidence* e) {
  const auto arch = Architecture::parse(machine.arch);
  const SmLimits* sm = arch ? arch->limits() : nullptr;
  const auto fact = [&](const char* name) { return e->get(name).value_or(0); };
  const double threads = fact("launch__block_size");
  const double registers = fact("launch__registers_per_thread");
  if (!sm || threads <= 0 || threads > 1024 || registers <= 0) return;
  const double shared =
      static_cast<double>(static_shared) + fact("launch__shared_mem_per_block_dynamic");
  BlockNeeds needs;
  needs.threads = static_cast<int>(threads);
  needs.registers = static_cast<int>(registers);
  needs.shared_bytes = static_cast<int>(std::clamp(shared, 0.0, 1.0 * (1 << 20)));
  needs.shared_carveout = shared_carveout;
  const Occupancy o = occupancy(*sm, needs);
  const auto limit = [&](const char* name, int blocks) {
    if (blocks < Occupancy::kUnlimited) put(e, name, blocks, "occupancy");
  };
  limit("launch__occupancy_limit_registers", o.by_registers);
  limit("launch__occupancy_limit_shared_mem", o.by_shared);
  limit("launch__occupancy_limit_warps", o.by_warps);
  limit("launch__occupancy_limit_blocks", o.by_blocks);
  limit("launch__occupancy_limit_barriers", o.by_barriers);
  put(e, "sm__maximum_warps_per_active_cycle_pct", 100 * o.fraction, "occupancy");
  put(e, "occupancy.registers_for_more", o.registers_for_more, "occupancy");
  put(e, "occupancy.shared_bytes_for_more", o.shared_bytes_for_more, "occupancy");
  if (o.blocks > 0 && machine.parallel_units > 0) {
    put(e, "launch__waves_per_multiprocessor",
        fact("launch__grid_size") / (1.0 * o.blocks * machine.parallel_units), "occupancy");
  }
}

void add_sass(const SassMix& mix, const std::string& tool, Evidence* e) {
  for (const auto& [metric, value] : mix.metrics) put(e, metric, value, tool);
  for (const auto& [metric, lines] : mix.where) e->lines[metric] = lines;
  const std::pair<const char*, const std::string&> texts[] = {
      {"hot loops", mix.text}, {"dependent chain", mix.chain}, {"waits", mix.waits}};
  for (const auto& [name, text] : texts) {
    if (!text.empty()) e->texts[name] = text;
  }
}

CodeFacts device_code(const Binary& binary, const LaunchPlan& plan, const Machine& machine,
                      Evidence* call, const std::vector<std::string>& only,
                      const SampleAnswers* samples) {
  std::string tool;
  CodeFacts facts;
  facts.functions = sass_of(binary, plan, only, &tool, call);
  const std::map<std::string, KernelResources> all_resources = resources_of(binary);
  const auto want = [&](const std::string& name) {
    if (plan.kernel_count() > 0 && largest_launch(plan, name) == nullptr) return;
    KernelEvidence& kernel = facts.kernels[name];
    kernel.name = demangled(name);
    kernel.facts.texts["kernel"] = name;
  };
  for (const auto& [name, function] : facts.functions) want(name);
  if (binary.images.empty()) {  // libraries define thousands that this call never launches
    for (const auto& [name, resources] : binary.resources) want(name);
  }
  for (const PlanNode& node : plan.nodes) {
    if (node.kind == PlanNode::Kind::kKernel) want(node.function);
  }
  for (auto& [name, kernel] : facts.kernels) {
    Evidence* e = &kernel.facts;
    double work = 1;
    if (const auto code = facts.functions.find(name); code != facts.functions.end()) {
      const SassMix mix = hot_mix(code->second, samples_of(samples, name));
      add_sass(mix, tool, e);
      work = std::max(1.0, mix.weight);
    }
    const auto resources = all_resources.find(name);
    const bool known = resources != all_resources.end();
    if (known) add_ptxas(resources->second, e);
    if (const PlanNode* node = largest_launch(plan, name)) {
      add_launch(*node, e);
      if (known) add_residency(machine, resources->second.shared_bytes, node->shared_carveout, e);
    }
    facts.weights[name] = work * std::max(1.0, total_threads(plan, name));
  }
  return facts;
}

}  // namespace kernelpro
