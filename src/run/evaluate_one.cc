// SPDX-License-Identifier: Apache-2.0
#include "run/evaluate_one.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "build/build_pool.h"
#include "core/knobs.h"
#include "core/requirements.h"
#include "diagnose/diagnose.h"
#include "measure/station/energy.h"
#include "measure/station/unless_killed.h"
#include "task/load/start.h"

namespace kernelpro {

namespace {

double ms_since(double from_s) { return 1000 * (real_clock().now_s() - from_s); }

Result<KnobValues> values_with(const std::string& source, const std::vector<Knob>& knobs,
                               const KnobValues& overrides) {
  KnobValues values = default_values(knobs);
  for (const auto& [name, value] : overrides) {
    const auto knob = std::find_if(knobs.begin(), knobs.end(),
                                   [&](const Knob& each) { return each.name == name; });
    if (knob == knobs.end()) {
      std::vector<std::string> names;
      for (const Knob& each : knobs) names.push_back(each.name);
      return fail(ErrorKind::kBadInput, "the kernel declares no knob " + name,
                  names.empty() ? "declare one: // @knob " + name + " " + value
                                : "its knobs are: " + join_text(names, " "));
    }
    if (std::find(knob->values.begin(), knob->values.end(), value) == knob->values.end()) {
      return fail(ErrorKind::kBadInput, "the knob " + name + " has no value " + value,
                  "its values are: " + join_text(knob->values, " "));
    }
    values[name] = value;
  }
  const auto requirements = Requirements::parse(source, knobs);
  if (!requirements) return tl::unexpected<Error>(requirements.error());
  if (const std::string broken = requirements->broken(values); !broken.empty()) {
    return fail(ErrorKind::kBadInput,
                "these values of the knobs do not meet the kernel's `@require " + broken + "`",
                "choose others that do");
  }
  return values;
}

}  // namespace

Result<Candidate> candidate_of(const Task& task, const KernelFile& kernel) {
  Candidate candidate;
  candidate.language = kernel.language;
  candidate.source = kernel.source;
  candidate.origin.proposer = Origin::kGiven;
  std::vector<Knob> declared;
  if (language_row(kernel.language).knobs) {
    auto knobs = parse_knobs(kernel.source, reserved_names(task));
    if (!knobs) return tl::unexpected<Error>(std::move(knobs.error()));
    declared = std::move(*knobs);
  }
  auto values = values_with(kernel.source, declared, kernel.knobs);
  if (!values) return tl::unexpected<Error>(std::move(values.error()));
  candidate.knobs = std::move(*values);
  return candidate;
}

namespace {

constexpr EnergyPlan kEnergy{5, 1.0};

// State shared by all threads.
class Judging {
 public:
  Judging(const Task& task, const std::vector<Candidate>& candidates,
          const EvaluateManySettings& settings, const OnVerdict& on_verdict,
          std::optional<Candidate> against)
      : task_(task),
        candidates_(candidates),
        settings_(settings),
        on_verdict_(on_verdict),
        against_(std::move(against)),
        results_(candidates.size()) {}

  Result<std::vector<EvaluateOneResult>> run(std::vector<Target>* targets,
                                             const std::vector<std::string>& gpus);

 private:
  void serve(Target* target, const std::string& gpu, BuildPool* pool);
  Result<void> prepare(Target* target, BuildPool* pool);
  Result<EvaluateOneResult> judge(std::size_t i, Target* target, const Subject* incumbent) const;
  std::optional<Subject> incumbent(Target* target) const;
  void give_up(Error error);
  bool failed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_.has_value();
  }

  const Task& task_;
  const std::vector<Candidate>& candidates_;
  const EvaluateManySettings& settings_;
  const OnVerdict& on_verdict_;
  const std::optional<Candidate> against_;
  std::vector<BuildPool::Future> built_;  // in the order of the candidates
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards what follows, and on_verdict_
  std::optional<Error> error_;
  std::vector<EvaluateOneResult> results_;
};

void Judging::give_up(Error error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_) error_ = std::move(error);
}

Result<void> Judging::prepare(Target* target, BuildPool* pool) {
  KP_TRY(target->evaluator->prepare());
  // On the cpu target, compilers and kernels would compete for the cores.
  if (settings_.station.target == TargetKind::kCpu) pool->wait_until_idle();
  return {};
}

// The kernel to compare with, if it is correct here.
std::optional<Subject> Judging::incumbent(Target* target) const {
  if (!against_) return std::nullopt;
  double compile_ms = 0;
  auto built = build(task_, settings_.station.target, *target->compiler, *against_, &compile_ms);
  if (!built || !std::holds_alternative<Subject>(*built)) return std::nullopt;
  Subject subject = std::get<Subject>(std::move(*built));
  const auto evaluation = target->evaluator->evaluate(subject, nullptr);
  if (!evaluation || evaluation->correct() == nullptr) return std::nullopt;
  return subject;
}

Result<EvaluateOneResult> Judging::judge(std::size_t i, Target* target,
                                         const Subject* versus) const {
  EvaluateOneResult result;
  result.candidate = candidates_[i];
  result.machine = *target->machine;
  double from = real_clock().now_s();
  const BuiltKernel& built = built_[i].get();
  if (!built.built) return tl::unexpected<Error>(built.built.error());
  result.phases_ms["wait"] = ms_since(from);
  result.phases_ms["compile"] = built.compile_ms;
  if (const auto* error = std::get_if<CompileError>(&*built.built)) {
    result.evaluation.outcome = *error;
  } else {
    const Subject& subject = std::get<Subject>(*built.built);
    const bool same = versus != nullptr && versus->hash == subject.hash;
    const bool timing = settings_.station.timing;
    const auto ahead =
        timing ? observe_ahead(task_, settings_.station.target, subject) : std::future<void>();
    from = real_clock().now_s();
    auto evaluation = unless_killed(
        [&] { return target->evaluator->evaluate(subject, same ? nullptr : versus); });
    if (!evaluation) return tl::unexpected<Error>(std::move(evaluation.error()));
    result.evaluation = std::move(*evaluation);
    KP_TRY(add_energy(target->evaluator.get(), settings_.station.objective, subject,
                      same ? nullptr : versus, kEnergy, &result.evaluation));
    result.phases_ms["evaluate"] = ms_since(from);
    from = real_clock().now_s();
    if (ahead.valid()) ahead.wait();
    if (timing) {
      result.evidence = observe(task_, settings_.station.target, target, subject, result.evaluation,
                                settings_.station.counters);
    }
    result.machine = current_machine(*target);
    result.phases_ms["evidence"] = ms_since(from);
  }
  result.evaluation.compile_ms = built.compile_ms;
  if (const Correct* correct = result.evaluation.correct()) {
    if (settings_.station.timing) result.diagnosis = diagnose(result.evidence);
    result.labels = correct->labels;
    for (const std::string& label : target->evaluator->task_labels()) {
      if (std::find(result.labels.begin(), result.labels.end(), label) == result.labels.end()) {
        result.labels.push_back(label);
      }
    }
  } else {
    result.diagnosis.summary = outcome_summary(result.evaluation.outcome);
  }
  return result;
}

// Thread of one evaluator: takes kernels in order until none is left.
void Judging::serve(Target* target, const std::string& gpu, BuildPool* pool) {
  const double from = real_clock().now_s();
  if (auto ready = prepare(target, pool); !ready) return give_up(std::move(ready.error()));
  const double prepare_ms = ms_since(from);
  const std::optional<Subject> versus = incumbent(target);
  for (std::size_t i = next_++; i < candidates_.size() && !failed(); i = next_++) {
    auto result = judge(i, target, versus ? &*versus : nullptr);
    if (!result) return give_up(std::move(result.error()));
    result->gpu = gpu;
    result->phases_ms["prepare"] = prepare_ms;
    const std::lock_guard<std::mutex> lock(mutex_);
    results_[i] = std::move(*result);
    if (on_verdict_) on_verdict_(i, results_[i]);
  }
}

Result<std::vector<EvaluateOneResult>> Judging::run(std::vector<Target>* targets,
                                                    const std::vector<std::string>& gpus) {
  {
    const TargetKind target = settings_.station.target;
    BuildPool pool(task_, target, *targets->front().compiler, settings_.jobs,
                   {{}, disassemble_ahead(task_, target)});
    for (const Candidate& candidate : candidates_) built_.push_back(pool.put(candidate));
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < targets->size(); ++i) {
      threads.emplace_back([&, i] { serve(&(*targets)[i], gpus[i], &pool); });
    }
    serve(&targets->front(), gpus.front(), &pool);
    for (std::thread& thread : threads) thread.join();
  }
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return std::move(results_);
}

}  // namespace

Result<std::vector<EvaluateOneResult>> evaluate_many(const Task& task,
                                                     const std::vector<KernelFile>& kernels,
                                                     const EvaluateManySettings& settings,
                                                     const OnVerdict& on_verdict,
                                                     TargetMaker maker) {
  std::vector<Candidate> candidates;
  for (const KernelFile& kernel : kernels) {
    auto candidate = candidate_of(task, kernel);
    if (!candidate) {
      Error error = std::move(candidate.error());
      if (!kernel.path.empty()) error.message = kernel.path + ": " + error.message;
      return tl::unexpected<Error>(std::move(error));
    }
    candidates.push_back(std::move(*candidate));
  }
  EvaluateManySettings with = settings;
  with.station.standby = settings.station.timing ? kTimingProcesses : 1;
  for (const Candidate& candidate : candidates) {
    if (language_row(candidate.language).in_python) ++with.station.modules_ahead;
  }
  std::optional<Candidate> against;
  if (!settings.station.timing) {
    // No comparison.
  } else if (settings.against) {
    auto candidate = candidate_of(task, *settings.against);
    if (!candidate) return tl::unexpected<Error>(std::move(candidate.error()));
    against = std::move(*candidate);
  } else if (!native_kernel(task, settings.station.target).empty()) {
    if (auto start = start_candidate(task, settings.station.target)) against = std::move(*start);
  }
  if (settings.gpus.size() < 2) {
    with.station.evaluations = static_cast<int>(kernels.size()) + (against ? 1 : 0);
  }
  const std::vector<std::string> gpus =
      settings.gpus.empty() ? std::vector<std::string>{settings.station.gpu} : settings.gpus;
  const double from = real_clock().now_s();
  with.station.gpus = gpus;
  std::vector<Target> targets;
  for (Result<Target>& made : make_targets(task, with.station, maker)) {
    if (!made) return tl::unexpected<Error>(std::move(made.error()));
    targets.push_back(std::move(*made));
  }
  const double target_ms = ms_since(from);
  maker = nullptr;  // the reference that it may hold must end with the targets
  auto results =
      Judging(task, candidates, settings, on_verdict, std::move(against)).run(&targets, gpus);
  if (settings.last) leave_children_behind();
  end_targets(&targets);
  for (std::size_t i = 0; results && i < results->size(); ++i) {
    (*results)[i].phases_ms["target"] = target_ms;
  }
  return results;
}

Result<EvaluateOneResult> evaluate_one(const Task& task, TargetKind kind, const std::string& source,
                                       const KnobValues& overrides, const StationSettings& settings,
                                       TargetMaker maker) {
  EvaluateManySettings many;
  many.station = settings;
  many.station.target = kind;
  const KernelFile kernel{"", source, native_language(kind).language, overrides};
  auto results = evaluate_many(task, {kernel}, many, nullptr, std::move(maker));
  if (!results) return tl::unexpected<Error>(std::move(results.error()));
  return std::move(results->front());
}

}  // namespace kernelpro
