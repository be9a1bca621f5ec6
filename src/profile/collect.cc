// SPDX-License-Identifier: Apache-2.0
#include "profile/collect.h"

#include <algorithm>
#include <cmath>

#include "core/metrics.h"
#include "profile/disassemble.h"
#include "profile/objdump.h"
#include "profile/sass.h"

namespace kernelpro {

namespace {

// What is not finite was not observed.
void put(Evidence* e, const std::string& name, double value, Level level, const char* source) {
  if (std::isfinite(value)) e->set(name, value, level, source);
}

void collect_theory(const Task& task, const Case& c, Evidence* e) {
  put(e, "task.compulsory_bytes", compulsory_bytes(task, c), Level::kTiming, "task");
  put(e, "task.flops", task_flops(task, c), Level::kTiming, "task");
  put(e, "task.matmul_flops", task_matmul_flops(task, c), Level::kTiming, "task");
  bool any = false, all_half = true;
  for (const Tensor& tensor : task.tensors) {
    if (tensor.role == Role::kOutput || !is_floating(tensor.dtype)) continue;
    any = true;
    all_half = all_half && (tensor.dtype == DType::kFp16 || tensor.dtype == DType::kBf16);
  }
  put(e, "task.half_inputs", any && all_half ? 1 : 0, Level::kTiming, "task");
}

void collect_ceilings(const Machine& machine, Evidence* e) {
  const Ceilings& ceilings = machine.ceilings;
  const auto ceiling = [&](const char* name, double value, const char* what) {
    if (value > 0) {
      put(e, name, value, Level::kTiming, "ceilings");
    } else {
      e->note_missing({what, "it was not measured on this machine",
                       "run `kernelpro doctor`, which measures the ceilings"});
    }
  };
  ceiling("ceiling.copy_bandwidth", ceilings.copy_bytes_per_s, "copy bandwidth");
  ceiling("ceiling.fma_rate", ceilings.fma_flops_per_s, "fp32 multiply-add rate");
  // Many machines have no matrix units: that is no gap.
  if (ceilings.tensor_flops_per_s > 0) {
    put(e, "ceiling.tensor_rate", ceilings.tensor_flops_per_s, Level::kTiming, "ceilings");
  }
  put(e, "machine.parallel_units", machine.parallel_units, Level::kTiming, "machine");
}

void collect_floors(const Machine& machine, Evidence* e) {
  const Ceilings& ceilings = machine.ceilings;
  const double bytes = e->get("task.compulsory_bytes").value_or(0);
  const double flops = e->get("task.flops").value_or(0);
  const double matmul = std::min(e->get("task.matmul_flops").value_or(0), flops);
  const bool tensor = e->get("task.half_inputs").value_or(0) > 0 && ceilings.tensor_flops_per_s > 0;
  if (ceilings.copy_bytes_per_s > 0) {
    put(e, "roofline.memory_floor", 1e6 * bytes / ceilings.copy_bytes_per_s, Level::kTiming,
        "ceilings");
  }
  if (ceilings.fma_flops_per_s > 0) {
    const double rate = tensor ? ceilings.tensor_flops_per_s : ceilings.fma_flops_per_s;
    put(e, "roofline.compute_floor",
        1e6 * ((flops - matmul) / ceilings.fma_flops_per_s + matmul / rate), Level::kTiming,
        "ceilings");
  }
}

const Timing* timing_of(const Correct& correct, const std::string& case_name) {
  const Timing* slowest = nullptr;
  for (const Timing& timing : correct.timings) {
    if (timing.case_name == case_name) return &timing;
    if (slowest == nullptr || timing.median_us > slowest->median_us) slowest = &timing;
  }
  return slowest;
}

void collect_timing(const Case& c, const Evaluation& evaluation, Evidence* e) {
  const Correct* correct = evaluation.correct();
  const Timing* timing = correct != nullptr ? timing_of(*correct, c.name) : nullptr;
  if (timing == nullptr || !(timing->median_us > 0)) {
    e->note_missing({"timing",
                     correct == nullptr
                         ? "the candidate was not correct: " + outcome_summary(evaluation.outcome)
                         : "no case was timed",
                     correct == nullptr ? "mend the candidate; only correct ones are timed"
                                        : "mark a case of the task as timed"});
    return;
  }
  put(e, "timing.median", timing->median_us, Level::kTiming, "timing");
  put(e, "timing.low", timing->low_us, Level::kTiming, "timing");
  put(e, "timing.high", timing->high_us, Level::kTiming, "timing");
  const double seconds = 1e-6 * timing->median_us;
  put(e, "roofline.achieved_bandwidth", e->get("task.compulsory_bytes").value_or(0) / seconds,
      Level::kTiming, "timing");
  put(e, "roofline.achieved_flops", e->get("task.flops").value_or(0) / seconds, Level::kTiming,
      "timing");
}

// What the worker saw while timing, at the level that its name says.
void collect_observed(const Evaluation& evaluation, Evidence* e) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return;
  for (const auto& [name, value] : correct->observed) {
    if (find_metric(name) == nullptr) continue;
    if (name.rfind("cpu.perf.", 0) == 0) {
      put(e, name, value, Level::kCounters, "perf events");
    } else if (name.rfind("launch__", 0) == 0 || name.rfind("plan.", 0) == 0) {
      put(e, name, value, Level::kStatic, "launch plan");
    } else {
      put(e, name, value, Level::kTiming, "timing");
    }
  }
}

void collect_host_code(const Binary& binary, Evidence* e) {
  if (binary.shared_object.empty()) {
    e->note_missing({"instruction mix", "there is no compiled code", "compile the candidate"});
    return;
  }
  const Result<Disassembly> disassembly = disassemble_host(binary.shared_object);
  if (!disassembly) {
    e->note_missing({"instruction mix", disassembly.error().message, disassembly.error().next});
    return;
  }
  const AsmMix mix = hot_mix(parse_objdump(disassembly->text));
  if (mix.instructions == 0) {
    e->note_missing({"instruction mix", "objdump showed no x86-64 code of `launch`",
                     "check that the candidate defines extern \"C\" void launch"});
    return;
  }
  const auto asm_fact = [&](const char* name, int value) {
    put(e, std::string("cpu.asm.hot.") + name, value, Level::kStatic, "objdump");
  };
  asm_fact("instructions", mix.instructions);
  asm_fact("packed_fp", mix.packed_fp);
  asm_fact("scalar_fp", mix.scalar_fp);
  asm_fact("vector_bits", mix.vector_bits);
  asm_fact("streaming_stores", mix.streaming_stores);
  asm_fact("calls", mix.calls);
  e->texts["hot loops"] = mix.text;
}

void collect_ptxas(const Binary& binary, const std::string& kernel, Evidence* e) {
  const auto found = binary.resources.find(kernel);
  if (found == binary.resources.end()) {
    e->note_missing({"registers and spills", "ptxas said nothing about the kernel " + kernel,
                     "compile it anew (clear the cache)"});
    return;
  }
  const KernelResources& r = found->second;
  put(e, "launch__registers_per_thread", r.registers, Level::kStatic, "ptxas");
  put(e, "ptxas.stack_bytes", r.stack_bytes, Level::kStatic, "ptxas");
  put(e, "ptxas.spill_store_bytes", r.spill_store_bytes, Level::kStatic, "ptxas");
  put(e, "ptxas.spill_load_bytes", r.spill_load_bytes, Level::kStatic, "ptxas");
  put(e, "ptxas.shared_bytes", r.shared_bytes, Level::kStatic, "ptxas");
}

bool launched(const LaunchPlan& plan, const std::string& kernel) {
  return plan.kernel_count() == 0 ||
         std::any_of(plan.nodes.begin(), plan.nodes.end(), [&](const PlanNode& node) {
           return node.kind == PlanNode::Kind::kKernel && node.function == kernel;
         });
}

// The kernel that does most by its hot loops, of those that the plan launches; "" without SASS.
std::string collect_sass(const Binary& binary, Evidence* e) {
  const Result<Disassembly> disassembly = disassemble_cubin(binary.cubin);
  if (!disassembly) {
    e->note_missing(
        {"SASS instruction mix", disassembly.error().message, disassembly.error().next});
    return "";
  }
  std::string name;
  SassMix largest;
  for (const SassFunction& function : parse_sass(disassembly->text)) {
    if (function.code.empty() || !launched(binary.plan, function.name)) continue;
    SassMix mix = hot_mix(function);
    if (!name.empty() && mix.weight <= largest.weight) continue;
    name = function.name;
    largest = std::move(mix);
  }
  if (name.empty()) {
    e->note_missing({"SASS instruction mix", disassembly->tool + " showed no kernel in the cubin",
                     "check that the candidate has a __global__ function"});
    return "";
  }
  for (const auto& [metric, value] : largest.metrics) {
    put(e, metric, value, Level::kStatic, disassembly->tool.c_str());
  }
  e->texts["hot loops"] = largest.text;
  return name;
}

void collect_device_code(const Binary& binary, Evidence* e) {
  std::string kernel;
  if (binary.cubin.empty()) {
    e->note_missing({"SASS instruction mix", "there is no cubin", "compile the candidate"});
  } else {
    kernel = collect_sass(binary, e);
  }
  // Without SASS, the launched kernel with most registers stands for the candidate.
  int most = -1;
  if (kernel.empty()) {
    for (const auto& [name, resources] : binary.resources) {
      if (resources.registers <= most || !launched(binary.plan, name)) continue;
      most = resources.registers;
      kernel = name;
    }
  }
  if (kernel.empty()) return;
  e->texts["kernel"] = kernel;
  collect_ptxas(binary, kernel, e);
  if (binary.plan.kernel_count() == 0) return;
  put(e, "plan.kernels", binary.plan.kernel_count(), Level::kStatic, "launch plan");
  for (const PlanNode& node : binary.plan.nodes) {
    if (node.kind != PlanNode::Kind::kKernel || node.function != kernel) continue;
    const auto volume = [](const std::array<std::uint32_t, 3>& v) {
      return static_cast<double>(v[0]) * v[1] * v[2];
    };
    if (volume(node.grid) <= e->get("launch__grid_size").value_or(0)) continue;
    put(e, "launch__grid_size", volume(node.grid), Level::kStatic, "launch plan");
    put(e, "launch__block_size", volume(node.block), Level::kStatic, "launch plan");
  }
}

}  // namespace

Evidence collect_evidence(const Task& task, const Case& c, const Machine& machine,
                          const Binary& binary, const Evaluation& evaluation) {
  Evidence e;
  collect_theory(task, c, &e);
  collect_ceilings(machine, &e);
  collect_floors(machine, &e);
  collect_timing(c, evaluation, &e);
  if (binary.form == Binary::Form::kSharedObject) {
    collect_host_code(binary, &e);
  } else {
    if (!machine.arch.empty()) e.texts["arch"] = machine.arch;
    collect_device_code(binary, &e);
  }
  // Last: what was seen to run outranks what the binary declares.
  collect_observed(evaluation, &e);
  return e;
}

}  // namespace kernelpro
