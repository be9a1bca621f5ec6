// SPDX-License-Identifier: Apache-2.0
#include "measure/station/local.h"

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "measure/station/energy.h"
#include "measure/station/target.h"
#include "measure/station/unless_killed.h"
#include "measure/station/workshop.h"

namespace kernelpro {

namespace {

class Stopwatch {
 public:
  // Milliseconds since the last call, or since the beginning.
  double lap() {
    const double now = real_clock().now_s();
    return 1000 * (now - std::exchange(from_, now));
  }

 private:
  double from_ = real_clock().now_s();
};

bool worth_counters(const Order& order, const Correct& correct) {
  if (!order.counters_above) return false;
  const std::optional<Correct::Versus>& versus = correct.versus;
  return !versus || versus->low > 1 || versus->ratio > *order.counters_above;
}

class LocalStation : public Station {
 public:
  LocalStation(const Task& task, const StationSettings& settings, Target target,
               std::shared_ptr<Workshop> workshop)
      : task_(task),
        settings_(settings),
        target_(std::move(target)),
        workshop_(std::move(workshop)) {}

  const Machine& machine() const override { return *target_.machine; }
  std::string compiler() const override {
    return target_.compiler != nullptr ? target_.compiler->describe() : "";
  }
  std::string name() const override {
    return settings_.gpu.empty() ? "this machine" : "GPU " + settings_.gpu;
  }
  Result<void> prepare() override { return prepare_target(task_, settings_.target, target_); }
  Building begin(const Candidate& candidate, std::function<void()> done) override {
    return workshop_->begin(candidate, std::move(done));
  }
  void drop_builds() override { workshop_->drop_waiting(); }
  Result<Built> build(const Candidate& candidate) override {
    return built_of(candidate, workshop_->kernel(candidate));
  }
  Result<Measured> measure(const Order& order, const Phase& phase) override;
  Result<std::vector<Baseline>> baselines(const BaselineOrder& order) override;
  Result<std::optional<Ceilings>> remeasure() override {
    if (!target_.remeasure) return std::optional<Ceilings>();
    KP_ASSIGN(const Machine machine, target_.remeasure());
    return std::optional(machine.ceilings);
  }

 private:
  Result<std::optional<Subject>> incumbent(const Order& order);
  Result<std::optional<Evaluation>> evaluate(const Order& order, const Subject& subject,
                                             const Subject* versus, const Phase& phase);

  const Task& task_;
  const StationSettings settings_;
  Target target_;
  std::shared_ptr<Workshop> workshop_;
};

Result<std::optional<Subject>> LocalStation::incumbent(const Order& order) {
  if (!order.incumbent || order.incumbent->content_hash() == order.candidate.content_hash()) {
    return std::optional<Subject>();
  }
  BuiltKernel kernel = workshop_->kernel(*order.incumbent);
  if (!kernel.built) return tl::unexpected<Error>(std::move(kernel.built.error()));
  if (const auto* error = std::get_if<CompileError>(&*kernel.built)) {
    return fail(ErrorKind::kEnvironment,
                "the kernel to compare with no longer compiles: " + error->log,
                "use the compiler that the run began with, or start a new run");
  }
  return std::optional<Subject>(std::get<Subject>(std::move(*kernel.built)));
}

// nullopt: ended from outside.
Result<std::optional<Evaluation>> LocalStation::evaluate(const Order& order, const Subject& subject,
                                                         const Subject* versus,
                                                         const Phase& phase) {
  if (phase) phase("checking and timing");
  Evaluator* evaluator = target_.evaluator.get();
  auto evaluation = unless_killed([&] {
    return order.confirm && versus != nullptr ? evaluator->confirm(subject, *versus)
                                              : evaluator->evaluate(subject, versus);
  });
  if (!evaluation || !*evaluation || !order.energy) return evaluation;
  if (phase) phase("measuring energy");
  KP_TRY(add_energy(evaluator, settings_.objective, subject, versus, *order.energy, &**evaluation));
  return evaluation;
}

Result<Measured> LocalStation::measure(const Order& order, const Phase& phase) {
  Stopwatch watch;
  Measured measured;
  BuiltKernel kernel = workshop_->kernel(order.candidate);
  // A compiler or a worker that was ended from outside says nothing about the candidate.
  if (cancel_requested()) return measured;
  if (!kernel.built) return tl::unexpected<Error>(std::move(kernel.built.error()));
  measured.phases_ms["compile"] = kernel.compile_ms;
  measured.phases_ms["wait"] = watch.lap();
  if (const auto* error = std::get_if<CompileError>(&*kernel.built)) {
    measured.evaluation.emplace();
    measured.evaluation->outcome = *error;
    measured.evaluation->compile_ms = kernel.compile_ms;
    return measured;
  }
  Subject& subject = std::get<Subject>(*kernel.built);
  subject.variant = order.variant;
  if (order.inspect) {
    measured.evidence = inspect(task_, settings_.target, target_, subject);
    measured.phases_ms["evidence"] = watch.lap();
    return measured;
  }
  KP_ASSERT(target_.evaluator != nullptr);
  if (order.judged) {
    if (phase) phase("profiling");
    measured.evidence =
        observe(task_, settings_.target, &target_, subject, *order.judged, settings_.counters);
    measured.phases_ms["evidence"] = watch.lap();
    return measured;
  }
  auto versus = incumbent(order);
  if (cancel_requested()) return measured;
  if (!versus) return tl::unexpected<Error>(std::move(versus.error()));
  // Compilers and kernels would compete for the cores.
  if (settings_.target == TargetKind::kCpu) workshop_->wait_until_idle();
  measured.phases_ms["wait"] += watch.lap();
  std::future<void> disassembling;
  const bool ahead = order.observe && !order.variant;  // most variants are screened
  if (ahead) disassembling = observe_ahead(task_, settings_.target, subject);
  auto evaluation = evaluate(order, subject, *versus ? &**versus : nullptr, phase);
  if (cancel_requested()) return measured;
  if (!evaluation) return tl::unexpected<Error>(std::move(evaluation.error()));
  if (!*evaluation) return measured;
  measured.evaluation = std::move(*evaluation);
  measured.evaluation->code = kernel.code;
  measured.evaluation->compile_ms = kernel.compile_ms;
  measured.phases_ms["evaluate"] = watch.lap();
  measured.labels = target_.evaluator->task_labels();
  const Correct* correct = measured.evaluation->correct();
  // Nobody asks why another setting of a source is slower than the best.
  if (!order.observe || correct == nullptr || is_screened(*measured.evaluation)) return measured;
  if (phase) phase("collecting evidence");
  if (disassembling.valid()) disassembling.wait();
  const CounterSet counters =
      worth_counters(order, *correct) ? settings_.counters : CounterSet::kOff;
  measured.evidence =
      observe(task_, settings_.target, &target_, subject, *measured.evaluation, counters);
  measured.phases_ms["evidence"] = watch.lap();
  return measured;
}

Result<std::vector<Baseline>> LocalStation::baselines(const BaselineOrder& order) {
  const Case* standing = largest_timed(task_, settings_.target);
  if (standing == nullptr) return std::vector<Baseline>();
  if (!target_.baselines) {
    return fail(ErrorKind::kBadInput, "this station only compiles: it times nothing",
                "ask a station of a machine that can run the task");
  }
  return target_.baselines(task_, *standing, order);
}

// One target for each GPU, made in parallel.
std::vector<Result<Target>> make_targets(const Task& task, const StationSettings& settings,
                                         const TargetMaker& maker,
                                         const std::vector<std::string>& gpus) {
  const auto make = [&](const std::string& gpu) {
    StationSettings own = settings;
    own.gpu = gpu;
    return maker(task, own);
  };
  std::vector<std::future<Result<Target>>> making;
  for (std::size_t i = 1; i < gpus.size(); ++i) {
    making.push_back(std::async(std::launch::async, make, gpus[i]));
  }
  std::vector<Result<Target>> made;
  made.push_back(make(gpus.front()));
  for (auto& each : making) made.push_back(each.get());
  return made;
}

}  // namespace

StationMaker local_stations(std::shared_ptr<ModuleReference> module, ToolsAhead tools) {
  return local_stations([module = std::move(module), tools = std::move(tools)](
                            const Task& task, const StationSettings& settings) {
    const bool first = settings.gpus.empty() || settings.gpu == settings.gpus.front();
    return first ? make_target(task, settings, module, tools) : make_target(task, settings);
  });
}

StationMaker compiling_stations(const Machine& machine) {
  return local_stations([machine](const Task&, const StationSettings& settings) {
    return make_compiling_target(machine, settings);
  });
}

StationMaker local_stations(TargetMaker maker) {
  return [maker = std::move(maker)](const Task& task, const StationSettings& settings) {
    const std::vector<std::string> gpus =
        settings.gpus.empty() ? std::vector<std::string>{settings.gpu} : settings.gpus;
    std::shared_ptr<Workshop> workshop;
    Stations stations;
    std::vector<Result<Target>> targets = make_targets(task, settings, maker, gpus);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i]) {
        stations.push_back(tl::unexpected<Error>(std::move(targets[i].error())));
        continue;
      }
      if (workshop == nullptr) {
        workshop =
            std::make_shared<Workshop>(task, settings.target, targets[i]->compiler, settings.jobs,
                                       disassemble_ahead(task, settings.target),
                                       settings.profile_each || settings.objective.wants_energy());
      }
      StationSettings own = settings;
      own.gpu = gpus[i];
      stations.push_back(
          std::make_unique<LocalStation>(task, own, std::move(*targets[i]), workshop));
    }
    return stations;
  };
}

}  // namespace kernelpro
