// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/memory_plan.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace kernelpro {

namespace {

// Separate sets for probes are optional: only where they take little.
constexpr double kComfort = 0.1;

constexpr double kSmallSets = 256e6;  // bytes: limit for all sets of a rotation of eight together

constexpr double kCheapParameters = 0.1;  // share of memory that copies of them may take

double mapped(double bytes, double granularity) {
  return std::max(1.0, std::ceil((bytes + 256) / granularity)) * granularity;
}

// `stage`: with the memory in which a module in host form is called, one set without expected
// results.
MemoryPlan make_plan(const MemoryNeed& need, int rotation, int extra, bool wide, double free_bytes,
                     bool stage) {
  MemoryPlan plan;
  plan.rotation = rotation;
  plan.extra = extra;
  plan.wide = wide;
  // Sets also differ in their parameters, where that is cheap.
  plan.share_parameters = need.module && rotation * need.parameters > kCheapParameters * free_bytes;
  const int parameter_copies = plan.share_parameters ? 1 + extra : rotation + extra;
  const double set =
      need.inputs + need.outputs + (wide ? need.expected_wide : need.expected_narrow);
  plan.held = plan.sets() * set + parameter_copies * need.parameters + need.workspace;
  if (stage) plan.held += need.inputs + need.parameters + need.outputs;
  plan.bytes = plan.held + (wide ? need.float64_bytes : need.declared_bytes);
  return plan;
}

std::string gigabytes(double bytes) { return number(bytes / 1e9, 4) + " GB"; }

}  // namespace

MemoryNeed memory_need(const Task& task, const Case& c, const ModuleDescription* module,
                       double granularity) {
  MemoryNeed need;
  need.module = module != nullptr;
  double floats = 0, widest = 2;
  for (const Shaped& t : shaped_tensors(task, c)) {
    const double bytes = static_cast<double>(t.bytes);
    const double wide = static_cast<double>(t.elements) * 8;
    const bool floating = is_floating(t.tensor->dtype);
    switch (t.tensor->role) {
      case Role::kInput:
        need.inputs += mapped(bytes, granularity);
        break;
      case Role::kParameter:
        need.parameters += mapped(bytes, granularity);
        break;
      case Role::kOutput:
        need.outputs += mapped(bytes, granularity);
        need.expected_narrow += mapped(bytes, granularity);
        need.expected_wide += mapped(floating ? wide : bytes, granularity);
        break;
    }
    if (floating) {
      widest = std::max(widest, static_cast<double>(dtype_bytes(t.tensor->dtype)));
      if (t.tensor->role != Role::kOutput) floats += wide;
    }
  }
  if (const auto workspace = workspace_bytes(task, c); workspace > 0) {
    need.workspace = mapped(static_cast<double>(workspace), granularity);
  }
  if (module != nullptr) {
    need.declared_bytes = module->intermediate_bytes;
    need.float64_bytes = module->intermediate_bytes * (8 / widest) + floats;
  }
  return need;
}

int sets_wanted(const MemoryNeed& need) {
  const double bytes = std::max(need.inputs + need.parameters + need.outputs, 1.0);
  return static_cast<int>(std::clamp(kSmallSets / bytes, 4.0, 8.0));
}

std::optional<MemoryPlan> plan_memory(const MemoryNeed& need, double free_bytes, int rotation,
                                      bool declared_only) {
  const auto fits = [&](const MemoryPlan& plan) { return plan.bytes <= free_bytes; };
  if (declared_only) {
    for (int sets = rotation; sets >= 1; --sets) {
      // No task is refused for lack of a stage, which only host forms need.
      const bool stage = need.module && sets > 1;
      const MemoryPlan plan = make_plan(need, sets, 0, !need.module, free_bytes, stage);
      if (fits(plan)) return plan;
    }
    return std::nullopt;
  }
  const MemoryPlan roomy = make_plan(need, rotation, 1 + kProbeSets, true, free_bytes, need.module);
  if (roomy.bytes <= kComfort * free_bytes) return roomy;
  for (const bool wide : {true, false}) {
    if (!wide && !need.module) break;
    for (int sets = rotation; sets >= kLeastSets; --sets) {
      const MemoryPlan plan = make_plan(need, sets, 1, wide, free_bytes, need.module);
      if (fits(plan)) return plan;
    }
    const MemoryPlan tight = make_plan(need, kLeastSets, 0, wide, free_bytes, false);
    if (fits(tight)) return tight;
  }
  return std::nullopt;
}

double least_bytes(const MemoryNeed& need) {
  return make_plan(need, kLeastSets, 0, !need.module, 0, false).held;
}

Error memory_shortage(const MemoryNeed& need, const std::string& case_name, double free_bytes,
                      double of_others) {
  const MemoryPlan least = make_plan(need, kLeastSets, 0, !need.module, free_bytes, false);
  std::string text =
      "case " + case_name + " needs " + gigabytes(least.bytes) +
      " of GPU memory for two input sets (inputs " + gigabytes(need.inputs + need.parameters) +
      ", outputs " + gigabytes(need.outputs) + ", expected results " +
      gigabytes(least.wide ? need.expected_wide : need.expected_narrow) + " each" +
      (need.module ? "; the module itself " + gigabytes(need.declared_bytes) : std::string()) +
      "), " + gigabytes(std::max(free_bytes, 0.0)) + " are free";
  if (of_others > 0) {
    return {ErrorKind::kEnvironment,
            text + "; other programs on this GPU hold " + gigabytes(of_others),
            "stop the other programs on this GPU, or let fewer runs share it; then try again"};
  }
  return {ErrorKind::kBadInput, text,
          "make the case smaller (for a PyTorch file: --set NAME=VALUE)"};
}

}  // namespace kernelpro
