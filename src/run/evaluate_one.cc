// SPDX-License-Identifier: Apache-2.0
#include "run/evaluate_one.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/process/subprocess.h"
#include "core/candidate/knobs.h"
#include "core/evidence/rates.h"
#include "diagnose/diagnose.h"
#include "measure/judge/evaluator.h"
#include "run/ceiling_watch.h"
#include "task/load/start.h"

namespace kernelpro {

namespace {

double ms_since(double from_s) { return 1000 * (real_clock().now_s() - from_s); }

constexpr EnergyPlan kEnergy{5, 1.0};

// State shared by all threads.
class Judging {
 public:
  Judging(const std::vector<Candidate>& candidates, const EvaluateManySettings& settings,
          const OnVerdict& on_verdict, std::optional<Candidate> against)
      : candidates_(candidates),
        settings_(settings),
        on_verdict_(on_verdict),
        against_(std::move(against)),
        results_(candidates.size()) {}

  Result<std::vector<EvaluateOneResult>> run(const Stations& stations);

 private:
  void serve(Station* station, const std::string& gpu);
  // What a station's thread knows of its machine.
  struct Here {
    Station* station;
    Machine machine;  // with the best ceilings known
    CeilingWatch watch;
  };
  Result<EvaluateOneResult> judge(std::size_t i, Here* here, bool compare, bool* better) const;
  void finish(std::size_t i, EvaluateOneResult result, const Here& here, bool better);
  void diagnose_at(const Machine& machine, EvaluateOneResult* result) const;
  Result<bool> comparable(Station* station) const;
  void give_up(Error error);
  bool failed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_.has_value();
  }

  const std::vector<Candidate>& candidates_;
  const EvaluateManySettings& settings_;
  const OnVerdict& on_verdict_;
  const std::optional<Candidate> against_;
  std::vector<Baseline> baselines_;  // set before the threads start
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards what follows, and on_verdict_
  std::optional<Error> error_;
  std::vector<EvaluateOneResult> results_;
  std::map<const Station*, std::vector<std::size_t>> judged_;  // where each was
};

void Judging::give_up(Error error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!error_) error_ = std::move(error);
}

// Whether there is a kernel to compare with that is correct here. One that was named has to be.
Result<bool> Judging::comparable(Station* station) const {
  if (!against_) return false;
  Order order;
  order.candidate = *against_;
  order.observe = false;
  KP_ASSIGN(const auto measured, station->measure(order, {}));
  if (measured.evaluation && measured.evaluation->correct() != nullptr) return true;
  if (!settings_.against) return false;
  return fail(
      ErrorKind::kBadInput,
      "there is nothing to compare with: " +
          (settings_.against->path.empty() ? "the kernel for that" : settings_.against->path) +
          " is not correct" +
          (measured.evaluation ? ": " + outcome_summary(measured.evaluation->outcome)
                               : std::string()),
      "compare with a kernel that is correct");
}

// What the ceilings decide of a result.
void Judging::diagnose_at(const Machine& machine, EvaluateOneResult* result) const {
  result->machine = machine;
  if (!result->evidence.items().empty()) set_ceilings(machine, &result->evidence);
  if (result->evaluation.correct() == nullptr || settings_.station.timing) {
    result->diagnosis = diagnose(result->evaluation, result->evidence);
  }
}

// `better`: set if the machine's ceilings turned out to be higher.
Result<EvaluateOneResult> Judging::judge(std::size_t i, Here* here, bool compare,
                                         bool* better) const {
  Station* station = here->station;
  EvaluateOneResult result;
  result.candidate = candidates_[i];
  result.baselines = baselines_;
  Order order;
  order.candidate = candidates_[i];
  if (compare) order.incumbent = against_;
  order.energy = kEnergy;
  order.observe = settings_.station.timing;
  KP_ASSIGN(auto measured, station->measure(order, {}));
  KP_ASSERT(measured.evaluation);  // nothing cancels it
  result.evaluation = std::move(*measured.evaluation);
  result.evidence = std::move(measured.evidence);
  result.phases_ms = std::move(measured.phases_ms);
  if (!result.evidence.items().empty()) {
    *better = check_ceilings([&] { return station->remeasure(); }, &here->watch,
                             station->machine().ceilings, &here->machine, &result.evidence);
  }
  diagnose_at(here->machine, &result);
  if (const Correct* correct = result.evaluation.correct()) {
    result.labels = correct->labels;
    for (const std::string& label : measured.labels) {
      if (std::find(result.labels.begin(), result.labels.end(), label) == result.labels.end()) {
        result.labels.push_back(label);
      }
    }
  }
  return result;
}

// Reports a verdict, and those that the same station gave before where its machine turned out to
// allow more.
void Judging::finish(std::size_t i, EvaluateOneResult result, const Here& here, bool better) {
  const std::lock_guard<std::mutex> lock(mutex_);
  results_[i] = std::move(result);
  if (on_verdict_) on_verdict_(i, results_[i]);
  std::vector<std::size_t>& earlier = judged_[here.station];
  for (const std::size_t each : earlier) {
    if (!better) break;
    diagnose_at(here.machine, &results_[each]);
    const bool shown = !results_[each].evidence.items().empty();
    if (on_verdict_ && shown) on_verdict_(each, results_[each]);
  }
  earlier.push_back(i);
}

// Thread of one station: takes kernels in order until none is left.
void Judging::serve(Station* station, const std::string& gpu) {
  const double from = real_clock().now_s();
  if (auto ready = station->prepare(); !ready) return give_up(std::move(ready.error()));
  const double prepare_ms = ms_since(from);
  const Result<bool> compare = comparable(station);
  if (!compare) return give_up(compare.error());
  Here here{station, station->machine(), {}};
  for (std::size_t i = next_++; i < candidates_.size() && !failed(); i = next_++) {
    bool better = false;
    auto result = judge(i, &here, *compare, &better);
    if (!result) return give_up(std::move(result.error()));
    result->gpu = gpu;
    result->phases_ms["prepare"] = prepare_ms;
    finish(i, std::move(*result), here, better);
  }
}

Result<std::vector<EvaluateOneResult>> Judging::run(const Stations& stations) {
  Station& first = **stations.front();
  if (settings_.baselines) {
    KP_ASSIGN(baselines_, first.baselines(*settings_.baselines));
  }
  for (const Candidate& candidate : candidates_) first.begin(candidate, {});
  const std::vector<std::string>& gpus = settings_.station.gpus;
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < stations.size(); ++i) {
    const std::string gpu = i < gpus.size() ? gpus[i] : (*stations[i])->name();
    threads.emplace_back([&, i, gpu] { serve(stations[i]->get(), gpu); });
  }
  serve(&first, settings_.station.gpu);
  for (std::thread& thread : threads) thread.join();
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return std::move(results_);
}

}  // namespace

Result<Candidate> candidate_of(const Task& task, const KernelFile& kernel) {
  return candidate_of(task, kernel.language, kernel.source, {Origin::kGiven, 0, "", {}},
                      kernel.knobs);
}

Result<std::vector<EvaluateOneResult>> evaluate_many(const Task& task,
                                                     const std::vector<KernelFile>& kernels,
                                                     const EvaluateManySettings& settings,
                                                     const OnVerdict& on_verdict,
                                                     StationMaker maker) {
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
    KP_ASSIGN(against, candidate_of(task, *settings.against));
  } else if (!native_kernel(task, settings.station.target).empty()) {
    if (auto start = start_candidate(task, settings.station.target)) against = std::move(*start);
  }
  if (with.station.gpus.size() < 2 && with.station.stations.size() < 2) {
    with.station.evaluations = static_cast<int>(kernels.size()) + (against ? 1 : 0);
  }
  const double from = real_clock().now_s();
  Stations stations = maker(task, with.station);
  for (const auto& opened : stations) {
    if (!opened) return tl::unexpected<Error>(opened.error());
  }
  const double target_ms = ms_since(from);
  maker = nullptr;  // the reference that it may hold must end with the stations
  auto results = Judging(candidates, with, on_verdict, std::move(against)).run(stations);
  if (settings.last) leave_children_behind();
  close_all(&stations);
  for (std::size_t i = 0; results && i < results->size(); ++i) {
    (*results)[i].phases_ms["target"] = target_ms;
  }
  return results;
}

Result<EvaluateOneResult> evaluate_one(const Task& task, TargetKind kind, const std::string& source,
                                       const KnobValues& overrides, const StationSettings& settings,
                                       StationMaker maker) {
  EvaluateManySettings many;
  many.station = settings;
  many.station.target = kind;
  const KernelFile kernel{"", source, native_language(kind).language, overrides};
  KP_ASSIGN(auto results, evaluate_many(task, {kernel}, many, nullptr, std::move(maker)));
  return std::move(results.front());
}

}  // namespace kernelpro
