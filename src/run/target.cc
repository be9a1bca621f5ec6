// SPDX-License-Identifier: Apache-2.0
#include "run/target.h"

#include "profile/collect.h"
#include "task/header.h"

namespace kernelpro {

namespace {

Result<std::unique_ptr<Compiler>> make_compiler(TargetKind kind, const Machine& machine) {
  CompileSettings settings;
  settings.cuda_arch = kind == TargetKind::kCuda ? machine.arch : "";
  settings.task_header = task_header;
  return kind == TargetKind::kCpu ? make_cpu_compiler(settings) : make_cuda_compiler(settings);
}

}  // namespace

Result<Target> make_target(const Task& task, const RunSettings& settings) {
  const bool cpu = settings.target == TargetKind::kCpu;
  Target target;
  auto machine = cpu ? describe_cpu_machine() : describe_cuda_machine();
  if (!machine) return tl::unexpected<Error>(std::move(machine.error()));
  target.machine = std::make_unique<Machine>(std::move(*machine));
  auto compiler = make_compiler(settings.target, *target.machine);
  if (!compiler) return tl::unexpected<Error>(std::move(compiler.error()));
  target.compiler = std::move(*compiler);
  EvaluateSettings evaluate;
  if (!cpu) {
    // For the cross-check of reference.cu against reference.cpp.
    auto host = make_compiler(TargetKind::kCpu, *target.machine);
    if (!host) return tl::unexpected<Error>(std::move(host.error()));
    target.host_compiler = std::move(*host);
    evaluate.host_compiler = target.host_compiler.get();
  }
  evaluate.timeout_s = settings.timeout_s;
  evaluate.seed = settings.seed;
  auto evaluator = cpu ? make_cpu_evaluator(task, *target.compiler, *target.machine, evaluate)
                       : make_cuda_evaluator(task, *target.compiler, *target.machine, evaluate);
  if (!evaluator) return tl::unexpected<Error>(std::move(evaluator.error()));
  target.evaluator = std::move(*evaluator);
  target.collect = collect_evidence;
  return target;
}

BuildResult build(const Task& task, TargetKind kind, Compiler& compiler, const Candidate& candidate,
                  double* compile_ms) {
  Subject subject;
  subject.hash = candidate.content_hash();
  for (const Case* c : cases_for(task, kind)) {
    auto built = compiler.compile(task, *c, candidate);
    if (!built) return tl::unexpected<Error>(std::move(built.error()));
    if (auto* error = std::get_if<CompileError>(&*built)) return std::move(*error);
    Binary& binary = std::get<Binary>(*built);
    *compile_ms += binary.compile_ms;
    subject.binaries.push_back(std::move(binary));
  }
  return subject;
}

Evidence observe(const Task& task, TargetKind kind, const Target& target, const Subject& subject,
                 const Evaluation& evaluation) {
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
  return target.collect(task, *cases[chosen], *target.machine, subject.binaries[chosen],
                        evaluation);
}

}  // namespace kernelpro
