// SPDX-License-Identifier: Apache-2.0
#include "profile/collect/collect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/files.h"
#include "core/evidence/metrics.h"
#include "core/evidence/rates.h"
#include "core/evidence/target.h"
#include "profile/code/disassemble.h"
#include "profile/code/hot_loops.h"
#include "profile/code/parallel_regions.h"
#include "profile/code/written.h"
#include "profile/collect/counters.h"
#include "profile/collect/plan_facts.h"
#include "profile/places/places.h"
#include "profile/sass/device_code.h"

namespace kernelpro {

namespace {

// Non-finite values were not observed.
void put(Evidence* e, const std::string& name, double value, const char* source) {
  if (std::isfinite(value)) e->set(name, value, source);
}

void collect_theory(const Task& task, const Case& c, Evidence* e) {
  put(e, "task.compulsory_bytes", compulsory_bytes(task, c), "task");
  double outputs = 0;
  for (const Shaped& shaped : shaped_tensors(task, c)) {
    if (shaped.tensor->role == Role::kOutput) outputs += static_cast<double>(shaped.bytes);
  }
  put(e, "task.output_bytes", outputs, "task");
  put(e, "task.flops", task_flops(task, c), "task");
  put(e, "task.matmul_flops", task_matmul_flops(task, c), "task");
  put(e, "task.half_inputs", has_half_inputs(task) ? 1 : 0, "task");
  if (task.precision == Precision::kTf32) put(e, "task.tf32", 1, "task");
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
    e->note_missing({Family::kTiming,
                     correct == nullptr
                         ? "the candidate was not correct: " + outcome_summary(evaluation.outcome)
                         : "no case was timed",
                     correct == nullptr ? "fix the candidate; only correct ones are timed"
                                        : "mark a case of the task as timed"});
    return;
  }
  put(e, "timing.median", timing->median_us, "timing");
  put(e, "timing.low", timing->low_us, "timing");
  put(e, "timing.high", timing->high_us, "timing");
  const double seconds = 1e-6 * timing->median_us;
  put(e, "roofline.achieved_bandwidth", e->get("task.compulsory_bytes").value_or(0) / seconds,
      "timing");
  put(e, "roofline.achieved_flops", e->get("task.flops").value_or(0) / seconds, "timing");
}

const char* source_of(const Metric& metric) {
  if (metric.level == Level::kCounters) return "perf events";
  if (metric.level == Level::kStatic) return "driver";
  return metric.family == Family::kLoad ? "load" : "timing";
}

// What the worker observed while timing.
void collect_observed(const Evaluation& evaluation, Evidence* e) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return;
  for (const auto& [name, value] : correct->observed) {
    const Metric* metric = find_metric(name);
    // Stored verdicts of earlier versions have facts about the plan; collect_plan's are right.
    if (metric == nullptr || metric->family == Family::kPlan) continue;
    if (metric->scope != Scope::kKernel || e->kernels.empty()) {
      put(e, name, value, source_of(*metric));
    } else if (Evidence* only = &e->kernels[0].facts; e->kernels.size() == 1 && !only->get(name)) {
      put(only, name, value, source_of(*metric));  // of several, it is not known which
    }
  }
}

void collect_host_code(const Binary& binary, Evidence* e) {
  if (binary.shared_object.empty()) {
    e->note_missing({Family::kHostCode, "there is no compiled code", "compile the candidate"});
    return;
  }
  const Result<Disassembly> disassembly = disassemble_host(binary.shared_object);
  if (!disassembly) {
    e->note_missing({Family::kHostCode, disassembly.error().message, disassembly.error().next});
    return;
  }
  const std::vector<AsmFunction> functions = parse_objdump(disassembly->text);
  const AsmMix mix = hot_mix(functions);
  if (mix.instructions == 0) {
    e->note_missing({Family::kHostCode, "objdump showed no x86-64 code of `launch`",
                     "check that the candidate defines extern \"C\" void launch"});
    return;
  }
  add_mix(mix, e);
  put(e, "cpu.asm.parallel_regions", parallel_regions(functions), "objdump");
}

// Facts about the call's graph and each kernel's place in it.
void collect_plan(const Task& task, const Case& c, const CallFacts& call, double bandwidth,
                  std::map<std::string, KernelEvidence>* kernels, Evidence* e) {
  if (call.plan.nodes.empty()) return;
  PlanMemory memory = plan_memory(task, c);
  if (!call.layout.slots.empty()) memory.layout = call.layout;
  memory.written = most_written(call.plan, *kernels, bandwidth);
  const PlanFacts facts = plan_facts(call.plan, memory);
  const auto known = [](const std::string& name) { return find_metric(name) != nullptr; };
  for (const auto& [name, value] : facts.call) {
    if (known(name)) put(e, name, value, "launch plan");
  }
  for (const auto& [function, items] : facts.kernels) {
    const auto kernel = kernels->find(function);
    if (kernel == kernels->end()) continue;
    for (const auto& [name, value] : items) {
      if (known(name)) put(&kernel->second.facts, name, value, "launch plan");
    }
  }
}

// Notes what ptxas did not say about a kernel.
void collect_missing_resources(std::map<std::string, KernelEvidence>* kernels) {
  for (auto& [function, kernel] : *kernels) {
    if (kernel.facts.get("launch__registers_per_thread")) continue;
    kernel.facts.note_missing(
        {Family::kResources, "ptxas said nothing about it", "compile it again (clear the cache)"});
  }
}

// Marks kernels of a call whose matrix products are in other kernels.
void collect_matrix_kernels(std::map<std::string, KernelEvidence>* kernels) {
  const auto multiplies = [](const KernelEvidence& kernel) {
    return has_matrix_products(kernel.facts);
  };
  const auto all = std::count_if(kernels->begin(), kernels->end(),
                                 [&](const auto& each) { return multiplies(each.second); });
  for (auto& [name, kernel] : *kernels) {
    const auto others = static_cast<double>(all - (multiplies(kernel) ? 1 : 0));
    put(&kernel.facts, "plan.matrix_elsewhere", others, "disassembly");
  }
}

// The operators of a PyTorch call, each with the time of its kernels, copies and memsets; those of
// which a kernel was not timed have none.
std::vector<OperatorCall> timed_operators(const CallFacts& call, double bandwidth) {
  std::map<int, double> us;  // by node
  for (const LaunchCounters& launch : call.counters.launches) {
    const auto time = launch.values.find("gpu__time_duration.sum");
    if (time != launch.values.end()) us[launch.node] = 1e-3 * time->second;
  }
  const auto time_of = [&](int i) {
    const PlanNode& node = call.plan.nodes[static_cast<std::size_t>(i)];
    if (node.kind == PlanNode::Kind::kEmpty) return 0.0;
    if (node.kind == PlanNode::Kind::kKernel) return us.contains(i) ? us[i] : NAN;
    const double bytes = static_cast<double>(node.width) * static_cast<double>(node.height) *
                         static_cast<double>(node.depth) *
                         (node.kind == PlanNode::Kind::kMemcpy ? 2 : node.element_bytes);
    return bandwidth > 0 ? 1e6 * bytes / bandwidth : NAN;
  };
  std::vector<OperatorCall> operators = call.operators;
  for (OperatorCall& each : operators) {
    double all = 0;
    for (int i = each.first; i < each.first + each.nodes; ++i) all += time_of(i);
    each.us = std::isfinite(all) ? all : 0;
  }
  return operators;
}

// Which operator launches each kernel: the one that it takes most time for.
void name_launchers(const LaunchPlan& plan, const std::vector<OperatorCall>& operators,
                    std::map<std::string, KernelEvidence>* kernels) {
  std::map<std::string, std::set<std::string>> launchers;
  std::map<std::string, const OperatorCall*> longest;
  for (const OperatorCall& each : operators) {
    for (int i = each.first; i < each.first + each.nodes; ++i) {
      const PlanNode& node = plan.nodes[static_cast<std::size_t>(i)];
      if (node.kind != PlanNode::Kind::kKernel) continue;
      launchers[node.function].insert(operator_words(each.name, each.where));
      const OperatorCall*& known = longest[node.function];
      if (known == nullptr || each.us > known->us) known = &each;
    }
  }
  for (auto& [function, kernel] : *kernels) {
    const auto known = longest.find(function);
    if (known == longest.end()) continue;
    std::string words = operator_words(known->second->name, known->second->where);
    const std::size_t others = launchers[function].size() - 1;
    if (others > 0) words += " and " + std::to_string(others) + " more";
    kernel.facts.texts["operator"] = std::move(words);
  }
}

// Of a PyTorch call's kernels, whose images hold the code of libraries: those that take a share of
// the time; empty: all.
std::vector<std::string> worth_reading(const Binary& binary, const CallFacts& call) {
  constexpr double kLeast = 0.02;
  std::vector<std::string> names;
  if (binary.images.empty()) return names;
  std::vector<Missing> ignored;
  const auto merged = merge_counters(call.counters, call.plan, &ignored);
  double all = 0;
  for (const auto& [name, counters] : merged) all += counters.time_ns;
  for (const auto& [name, counters] : merged) {
    if (counters.time_ns >= kLeast * all) names.push_back(name);
  }
  return names;
}

void collect_device(const Task& task, const Case& c, const Machine& machine, const Binary& binary,
                    const CallFacts& call, Evidence* e) {
  set_evidence_target(TargetKind::kCuda, e);
  const double bandwidth = machine.ceilings.copy_bytes_per_s;
  if (!machine.arch.empty()) e->texts["arch"] = machine.arch;
  CodeFacts code =
      device_code(binary, call.plan, machine, e, worth_reading(binary, call), &call.samples);
  collect_missing_resources(&code.kernels);
  collect_matrix_kernels(&code.kernels);
  std::vector<Missing> missing;
  add_counters(call.counters, call.plan, &code.kernels, &missing);
  for (const Missing& each : call.samples.missing) e->note_missing(each);
  if (call.counters.source.empty() && missing.empty()) {
    missing.push_back({Family::kCounters, "they were not collected", "evaluate with --profile"});
  }
  // After the counters, which weigh what was not sampled. The source lies beside the cubin.
  const std::string& beside = binary.cubin.empty() ? binary.module : binary.cubin;
  add_places(code.functions, call.samples, lines_in(dirname(beside)), &code.kernels, &missing);
  for (Missing& each : missing) e->note_missing(std::move(each));
  // After the counters, which bound what kernels can have passed on.
  collect_plan(task, c, call, bandwidth, &code.kernels, e);
  e->operators = timed_operators(call, bandwidth);
  name_launchers(call.plan, e->operators, &code.kernels);
  // Longest first: by time if all were timed, else by the work estimated from code.
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, kernel] : code.kernels) {
    order.emplace_back(-kernel.facts.get("kernel.share").value_or(0), name);
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : code.weights[a.second] > code.weights[b.second];
  });
  for (const auto& [share, name] : order) {
    e->kernels.push_back(std::move(code.kernels[name]));
  }
}

}  // namespace

Evidence collect_evidence(const Task& task, const Case& c, const Machine& machine,
                          const Binary& binary, const Evaluation& evaluation,
                          const CallFacts& call) {
  Evidence e;
  collect_theory(task, c, &e);
  collect_timing(c, evaluation, &e);
  if (binary.form == Binary::Form::kModule && call.plan.nodes.empty()) {
    set_evidence_target(TargetKind::kCuda, &e);
    if (!machine.arch.empty()) e.texts["arch"] = machine.arch;
    for (const Family family :
         {Family::kPlan, Family::kLaunch, Family::kResources, Family::kSass, Family::kCounters}) {
      e.note_missing({family,
                      "it runs in host form: PyTorch launches the kernels, and there is no launch "
                      "plan to profile",
                      "trace it: kernelpro diagnose -- python FILE"});
    }
  } else if (binary.form == Binary::Form::kSharedObject) {
    collect_host_code(binary, &e);
  } else {
    CallFacts known = call;
    if (known.plan.nodes.empty()) known.plan = binary.plan;
    Binary code = binary;
    if (!known.images.empty()) code.images = known.images;
    collect_device(task, c, machine, code, known, &e);
  }
  // Last: the driver fills gaps that the binary and the plan leave.
  collect_observed(evaluation, &e);
  return e;
}

}  // namespace kernelpro
