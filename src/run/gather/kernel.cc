// SPDX-License-Identifier: Apache-2.0
// A kernel's source with its task: evaluated if the machine allows it, else compiled and inspected.
#include "base/files.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/evidence/rates.h"
#include "core/machine/architecture.h"
#include "measure/ceilings/ceilings.h"
#include "measure/station/local.h"
#include "profile/import/device.h"
#include "run/evaluate_one.h"
#include "run/gather/gather.h"
#include "run/gather/theory.h"
#include "run/libraries.h"

namespace kernelpro {

namespace {

constexpr const char* kAssumedDevice = "H100";

Result<Gathered> compiled_only(const Task& task, const std::string& file, const Theory& theory,
                               const Error& why) {
  const bool named = !theory.device.empty();
  Machine machine = nominal_machine(listed_device(named ? theory.device : kAssumedDevice));
  const auto arch = Architecture::parse(machine.arch);
  if (!arch) {
    return fail(ErrorKind::kBadInput, "the GPU \"" + theory.device + "\" is not listed",
                "name one as in --device H100, A100, B200, L40S or \"RTX 4090\"");
  }
  machine.arch = arch->compile_name();
  KP_ASSIGN(const auto c, case_of(task, TargetKind::kCuda, theory.case_name));
  Task one = task;
  one.cases = {*c};
  StationSettings settings;
  settings.target = TargetKind::kCuda;
  if (auto dirs = include_dirs({})) settings.include_dirs = std::move(*dirs);
  const Stations stations = compiling_stations(machine)(one, settings);
  if (!stations.front()) return tl::unexpected<Error>(stations.front().error());
  Order order;
  order.inspect = true;
  KP_ASSIGN(auto source, read_file(file, 4 << 20));
  KP_ASSIGN(order.candidate, candidate_of(task, native_language(TargetKind::kCuda).language,
                                          std::move(source), {Origin::kGiven, 0, "", {}}));
  KP_ASSIGN(Measured measured, (*stations.front())->measure(order, {}));
  if (measured.evaluation) {
    const auto& error = std::get<CompileError>(measured.evaluation->outcome);
    return fail(ErrorKind::kBadInput, file + " does not compile: " + clip(error.log, 2000),
                "fix it; kernelpro evaluate shows the whole log");
  }
  Gathered gathered;
  gathered.subject = file + ", case " + c->name + " of " + task.name;
  gathered.basis = "compiling alone, for " + machine.arch;
  gathered.ceilings = machine.ceilings.how;
  gathered.evidence = at_ceilings(machine, std::move(measured.evidence));
  gathered.notes.push_back("It was compiled for " + machine.arch + " and not run: " + why.message +
                           (named ? "" : " (another GPU: --device NAME)") + ".");
  return gathered;
}

Result<Gathered> evaluated(const Task& task, TargetKind target, const std::string& file,
                           const RunSettings& settings, std::shared_ptr<ModuleReference> module) {
  KP_ASSIGN(auto source, read_file(file, 4 << 20));
  KP_ASSIGN(auto result,
            evaluate_one(task, target, source, {}, settings, local_stations(std::move(module))));
  if (result.evaluation.correct() == nullptr) {
    return fail(ErrorKind::kBadInput,
                file + " cannot be diagnosed, for it is not correct: " +
                    outcome_summary(result.evaluation.outcome),
                "fix it first; kernelpro evaluate shows more");
  }
  Gathered gathered;
  gathered.subject = file + " with " + task.name;
  gathered.basis = "an evaluation on " + result.machine.name;
  gathered.ceilings = "measured on " + result.machine.name;
  gathered.evidence = std::move(result.evidence);
  return gathered;
}

}  // namespace

Result<Gathered> gather_kernel(const std::string& file, const Theory& theory,
                               const RunSettings& settings) {
  if (theory.task.empty()) {
    return fail(ErrorKind::kBadInput, file + " cannot be run without its task",
                "name the task (--task DIR), or compile it and give the cubin: nvcc -cubin "
                "-lineinfo -arch=sm_90a " +
                    file);
  }
  const LanguageRow* language = language_of_file(file);
  const TargetKind target = language != nullptr ? language->target : TargetKind::kCpu;
  OpenSettings open = theory.open;
  open.target = target;
  open.gpu = settings.gpu;
  const bool cpu = target == TargetKind::kCpu;
  std::optional<Error> no_gpu;
  if (!cpu) {
    if (const auto machine = describe_cuda_machine(); !machine) no_gpu = machine.error();
  }
  KP_ASSIGN(auto opened, open_task(theory.task, open));
  if (no_gpu || (!cpu && !theory.device.empty())) {
    const Error why = no_gpu.value_or(Error{ErrorKind::kBadInput, "--device was given", ""});
    return compiled_only(opened.task, file, theory, why);
  }
  RunSettings with = settings;
  with.target = target;
  if (with.counters == CounterSet::kOff) with.counters = CounterSet::kFull;
  return evaluated(opened.task, target, file, with, std::move(opened.module));
}

}  // namespace kernelpro
