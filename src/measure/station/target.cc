// SPDX-License-Identifier: Apache-2.0
#include "measure/station/target.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/files.h"
#include "build/build.h"
#include "machine/gpu_lease.h"
#include "measure/ceilings/ceilings.h"
#include "measure/cpu/evaluator.h"
#include "measure/cuda/evaluator.h"
#include "measure/cuda/start_ahead.h"
#include "measure/station/baselines.h"
#include "profile/code/disassemble.h"
#include "profile/collect/collect.h"

namespace kernelpro {

struct Tools {
  Machine machine;
  std::unique_ptr<Compiler> compiler;
  std::shared_ptr<Ahead> processes;  // cuda; may be null
};

struct ToolsBegun {
  std::future<Result<Tools>> tools;
};

namespace {

constexpr double kLeaseSeconds = 600;  // for another process to finish with the GPU

Result<Machine> describe_machine(TargetKind kind, CeilingsWanted wanted) {
  return kind == TargetKind::kCpu ? describe_cpu_machine(wanted) : describe_cuda_machine(wanted);
}

Result<std::unique_ptr<Compiler>> make_compiler(TargetKind kind, const Machine& machine,
                                                std::vector<std::string> include_dirs) {
  CompileSettings settings;
  settings.include_dirs = std::move(include_dirs);
  settings.cuda_arch = kind == TargetKind::kCuda ? machine.arch : "";
  return kind == TargetKind::kCpu ? make_cpu_compiler(settings) : make_cuda_compiler(settings);
}

Result<Tools> make_tools(TargetKind kind, const std::vector<std::string>& include_dirs) {
  KP_ASSIGN(auto machine, describe_machine(kind, CeilingsWanted::kAny));
  KP_ASSIGN(auto compiler, make_compiler(kind, machine, include_dirs));
  return Tools{std::move(machine), std::move(compiler), nullptr};
}

// PyTorch on this machine. It gets the GPU to itself.
auto baselines_on(const Machine& machine, const StationSettings& settings) {
  BaselinePlace place;
  place.target = settings.target;
  place.python = settings.python;
  place.gpu = settings.gpu;
  place.machine = machine.name + ", " + machine.versions;
  return [place](const Task& task, const Case& c,
                 const BaselineOrder& order) -> Result<std::vector<Baseline>> {
    GpuLease lease;
    if (place.target == TargetKind::kCuda) {
      KP_ASSIGN(lease, GpuLease::take(place.gpu, kLeaseSeconds));
    }
    return time_baselines(task, c, order, place);
  };
}

// Marks timing as missing: nothing was run.
Evidence without_timing(const Evidence& from, const std::string& arch) {
  Evidence e;
  for (const auto& [name, item] : from.items()) e.set(name, item.value, item.level, item.source);
  e.texts = from.texts;
  e.kernels = from.kernels;
  for (const Missing& missing : from.missing()) {
    if (missing.family != Family::kTiming) e.note_missing(missing);
  }
  e.note_missing({Family::kTiming, "it was compiled for " + arch + " and not run",
                  "evaluate it on a machine with a GPU"});
  return e;
}

}  // namespace

Result<Target> make_target(const Task& task, const StationSettings& settings,
                           std::shared_ptr<ModuleReference> module, const ToolsAhead& ahead) {
  const bool cpu = settings.target == TargetKind::kCpu;
  Target target;
  if (!settings.candidates) {
    KP_ASSIGN(Machine machine, describe_machine(settings.target, CeilingsWanted::kAny));
    target.baselines = baselines_on(machine, settings);
    target.machine = std::make_unique<Machine>(std::move(machine));
    return target;
  }
  if (task.module && module == nullptr) {
    KP_ASSIGN(module, restart_module(task, settings.target, settings.gpu, settings.python));
  }
  const bool ready = ahead != nullptr && ahead->tools.valid();
  KP_ASSIGN(Tools tools,
            ready ? ahead->tools.get() : make_tools(settings.target, settings.include_dirs));
  target.machine = std::make_unique<Machine>(std::move(tools.machine));
  target.compiler = std::move(tools.compiler);
  if (!cpu && !task.reference_cpp.empty()) {
    // For the cross-check of reference.cu against reference.cpp.
    KP_ASSIGN(target.host_compiler, make_compiler(TargetKind::kCpu, *target.machine, {}));
  }
  EvaluateSettings evaluate;
  evaluate.timeout_s = settings.timeout_s;
  evaluate.policy = settings.policy;
  evaluate.probes = settings.probes;
  evaluate.probes_each = settings.probes_each;
  evaluate.redraw = settings.redraw;
  evaluate.timing = settings.timing;
  evaluate.gpu = settings.gpu;
  evaluate.modules_ahead = settings.modules_ahead;
  evaluate.standby = settings.standby;
  evaluate.evaluations = settings.evaluations;
  evaluate.counters = settings.counters;
  evaluate.module = std::move(module);
  evaluate.ahead = std::move(tools.processes);
  KP_ASSIGN(target.evaluator, cpu ? make_cpu_evaluator(task, *target.machine, evaluate)
                                  : make_cuda_evaluator(task, *target.machine, evaluate));
  target.baselines = baselines_on(*target.machine, settings);
  target.collect = collect_evidence;
  // On several GPUs, others are being timed meanwhile.
  if (cpu || settings.gpus.size() < 2) {
    target.remeasure = [kind = settings.target] {
      return describe_machine(kind, CeilingsWanted::kAgain);
    };
  }
  return target;
}

ToolsAhead begin_tools(const StationSettings& settings, bool native, const ModulesAhead& modules) {
  const int workers = !native ? 0 : settings.timing ? kTimingProcesses : 1;
  const TargetKind kind = settings.target;
  std::shared_ptr<Ahead> processes;
  if (kind == TargetKind::kCuda) processes = start_cuda_ahead(settings.gpu, workers, modules);
  auto begun = std::make_shared<ToolsBegun>();
  begun->tools = std::async(std::launch::async, [kind, processes, dirs = settings.include_dirs] {
    Result<Tools> tools = make_tools(kind, dirs);
    if (tools) tools->processes = processes;
    return tools;
  });
  return begun;
}

Result<Target> make_compiling_target(const Machine& machine, const StationSettings& settings) {
  KP_ASSERT(settings.target == TargetKind::kCuda);
  Target target;
  target.machine = std::make_unique<Machine>(machine);
  KP_ASSIGN(target.compiler, make_compiler(settings.target, machine, settings.include_dirs));
  target.collect = collect_evidence;
  return target;
}

Result<void> prepare_target(const Task& task, TargetKind kind, const Target& target) {
  KP_ASSERT(target.evaluator != nullptr);
  KP_ASSIGN(const References references,
            build_references(task, kind, *target.compiler, target.host_compiler.get()));
  return target.evaluator->prepare(references);
}

std::future<void> observe_ahead(const Task& task, TargetKind kind, const Subject& subject) {
  std::vector<std::string> cubins;
  const std::vector<const Case*> cases = cases_for(task, kind);
  for (std::size_t i = 0; i < cases.size() && i < subject.binaries.size(); ++i) {
    const std::string& cubin = subject.binaries[i].cubin;
    if (cases[i]->timed && !cubin.empty()) cubins.push_back(cubin);
  }
  if (cubins.empty()) return {};
  return std::async(std::launch::async, [cubins = std::move(cubins)] {
    // The text is cached beside the cubin; a failure is reported when evidence is collected.
    for (const std::string& cubin : cubins) static_cast<void>(disassemble_cubin(cubin));
  });
}

std::function<void(const Subject&)> disassemble_ahead(const Task& task, TargetKind kind) {
  return [&task, kind](const Subject& subject) {
    if (auto ahead = observe_ahead(task, kind, subject); ahead.valid()) ahead.wait();
  };
}

Evidence observe(const Task& task, TargetKind kind, Target* target, const Subject& subject,
                 const Evaluation& evaluation, CounterSet counters) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return {};
  const std::vector<const Case*> cases = cases_for(task, kind);
  double longest = -1;
  std::size_t chosen = cases.size();
  for (const Timing& timing : correct->timings) {
    for (std::size_t i = 0; i < cases.size() && i < subject.binaries.size(); ++i) {
      if (cases[i]->name != timing.case_name || timing.median_us <= longest) continue;
      longest = timing.median_us;
      chosen = i;
    }
  }
  if (chosen == cases.size()) return {};
  const Binary& binary = subject.binaries[chosen];
  CallFacts call;
  if (auto known = target->evaluator->call_facts(subject, chosen)) call = std::move(*known);
  if (counters != CounterSet::kOff) {
    call.counters = target->evaluator->profile(subject, chosen, counters);
    call.samples = target->evaluator->sample(subject, chosen);
  }
  return target->collect(task, *cases[chosen], *target->machine, binary, evaluation, call);
}

Evidence inspect(const Task& task, TargetKind kind, const Target& target, const Subject& subject) {
  const std::vector<const Case*> cases = cases_for(task, kind);
  if (cases.empty()) return {};
  const Case* largest = largest_timed(task, kind);
  const auto timed = std::find(cases.begin(), cases.end(), largest);
  const std::size_t at =
      timed != cases.end() ? static_cast<std::size_t>(timed - cases.begin()) : cases.size() - 1;
  return without_timing(
      target.collect(task, *cases[at], *target.machine, subject.binaries[at], Evaluation(), {}),
      target.machine->arch);
}

}  // namespace kernelpro
