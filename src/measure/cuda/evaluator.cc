// SPDX-License-Identifier: Apache-2.0
// The evaluator of the cuda target: the judge process holds buffers and expected results for the
// whole run, each candidate gets its own worker process, and a capture process turns host-form
// candidates into launch plans. See docs/launch-plan.md for the trust model.
#include "measure/cuda/evaluator.h"

#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "core/evaluation/label.h"
#include "machine/gpu_lease.h"
#include "machine/gpu_watch.h"
#include "measure/cuda/ahead.h"
#include "measure/cuda/calls.h"
#include "measure/cuda/crew.h"
#include "measure/cuda/energy.h"
#include "measure/cuda/forms.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/prepare.h"
#include "measure/cuda/screeners.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

namespace {

constexpr double kConfirmingRow = 3;  // as long as in other evaluations

bool holds_lesser(const CudaCase& state) {
  return std::find(state.lesser.begin(), state.lesser.end(), true) != state.lesser.end();
}

bool compared(const Outcome& outcome) {
  const auto* correct = std::get_if<Correct>(&outcome);
  return correct != nullptr && correct->versus.has_value();
}

// A case with many tensors and sets takes a descriptor for each.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

class CudaEvaluator : public Evaluator {
 public:
  CudaEvaluator(const Task& task, const Machine& machine, const EvaluateSettings& settings,
                CudaLink judge)
      : task_(task),
        machine_(machine),
        settings_(settings),
        judge_(std::move(judge)),
        reference_(judge_, task_, settings_),
        shop_{task_, machine_, settings_, judge_, reference_, cases_, {}, {}} {}

  // All processes end in parallel: each takes a while to destroy its context.
  ~CudaEvaluator() override {
    const auto ending = std::async(
        std::launch::async, [module = std::move(settings_.module)]() mutable { module.reset(); });
    screeners_.dismiss();
    crew_.dismiss();
    crew_.retire(std::move(judge_));
    if (shop_.capture) crew_.retire(std::move(*shop_.capture));
  }
  CudaEvaluator(const CudaEvaluator&) = delete;
  CudaEvaluator& operator=(const CudaEvaluator&) = delete;

  // Takes over processes that were started before the task was known.
  void take(CudaAhead* ahead) {
    crew_.adopt(std::move(ahead->workers));
    if (task_.module && ahead->folder == dirname(task_.module->path)) {
      crew_.adopt_python(std::move(ahead->captures), std::move(ahead->modules));
    }
    ahead->captures.clear();
    ahead->modules.clear();
    shop_.capture = std::move(ahead->capture);
    ahead->workers.clear();
    ahead->capture.reset();
  }

  // Processes create their contexts while the caller does other work.
  void start_ahead() { make_ready(); }

  Result<void> prepare(const References& references) override;

  Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) override {
    CudaTimingPlan plan;
    plan.max_pairs = plan.max_samples = std::max(20, settings_.samples);
    shop_.probes_each = settings_.probes_each;
    if (settings_.probes && settings_.probes_each == 0) plan.row_s = settings_.row_s;
    return judge(subject, incumbent, plan);
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) override {
    CudaTimingPlan plan;
    plan.min_samples = std::max(60, 2 * settings_.samples);
    plan.max_pairs = 2 * plan.min_samples;
    plan.budget_s = 2;
    plan.row_s = kConfirmingRow * settings_.row_s;
    shop_.probes_each = 0;
    return judge(subject, &incumbent, plan);
  }
  std::vector<std::string> task_labels() const override { return preparation_.labels(); }
  std::optional<CallFacts> call_facts(const Subject& subject, std::size_t at) const override {
    return calls_.facts(subject, at);
  }
  CounterAnswers profile(const Subject& subject, std::size_t at, CounterSet set) override {
    return calls_.profile(subject, at, set);
  }
  SampleAnswers sample(const Subject& subject, std::size_t at) override {
    return calls_.sample(subject, at);
  }
  Result<std::variant<Energy, Outcome>> energy(const Subject& subject, const Subject* incumbent,
                                               const EnergyPlan& plan) override;

 private:
  Result<Evaluation> judge(const Subject& subject, const Subject* incumbent, CudaTimingPlan plan);
  Result<Outcome> attempt(const Subject& subject, const Subject* incumbent,
                          const CudaTimingPlan& plan, double* ready_s);
  Result<void> open_stages(int stage);
  Subject planned(const Subject& subject, std::optional<CudaLink> capture);
  std::optional<CudaLink> capture_for(const Subject& subject);
  Result<void> give_up_plan(const Subject& subject, const std::string& reason);
  Queues queues_for(const Subject& subject, const Subject* beside) const;
  // Forgets modified inputs, which are then redrawn before their next use.
  Result<void> sweep() {
    for (CudaCase& state : cases_) KP_TRY(forget_broken_sets(judge_, state));
    return {};
  }
  void make_ready();

  const Task& task_;
  const Machine& machine_;
  EvaluateSettings settings_;
  CudaLink judge_;
  std::vector<CudaCase> cases_;
  CudaReference reference_;
  CudaShop shop_;
  CudaCrew crew_{task_, settings_, cases_};
  ModuleForms forms_{task_, settings_, cases_};
  CudaCalls calls_{shop_, crew_, forms_};
  CudaScreeners screeners_{shop_, crew_};
  bool prepared_ = false;
  std::string uuid_;
  std::uint64_t round_ = 0;
  CudaPreparation preparation_{task_, settings_, judge_, reference_, cases_};
};

// The next evaluation's processes create their contexts while nothing is timed.
void CudaEvaluator::make_ready() {
  crew_.fill();
  crew_.fill_python();
  if (shop_.capture) return;
  Result<CudaLink> capture = CudaLink::start(WorkerRole::kCudaCapture, settings_.gpu, Queues::kOne);
  if (capture) shop_.capture = std::move(*capture);
}

Result<void> CudaEvaluator::prepare(const References& references) {
  if (cases_for(task_, TargetKind::kCuda).empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " has no case for the cuda target",
                "add a case to task.toml that names the cuda target");
  }
  if (settings_.module == nullptr && (task_.module || task_.reference_cu.empty())) {
    return task_.module ? fail(ErrorKind::kEnvironment, "the task's PyTorch module is not running",
                               "start it (task/reference/module_reference.h) and pass it on")
                        : fail(ErrorKind::kTask, "the task " + task_.name + " has no reference.cu",
                               "add one: the cuda target checks candidates against it");
  }
  KP_ASSIGN(const Reply hello, trusted(judge_.ask({{"do", "hello"}}, kStartTimeout), "the judge"));
  uuid_ = JsonReader(hello.json).text("uuid");
  KP_ASSIGN(auto lease, GpuLease::take(uuid_, kLeaseTimeout));
  // Once more: others may have come or gone meanwhile.
  KP_ASSIGN(const Reply now, trusted(judge_.ask({{"do", "hello"}}, kStartTimeout), "the judge"));
  const JsonReader r(now.json);
  KP_TRY(preparation_.prepare(
      references,
      {static_cast<double>(r.natural("free_bytes")), static_cast<double>(r.natural("total_bytes"))},
      static_cast<double>(r.natural("granularity"))));
  crew_.brief(uuid_, device_files_of_others(uuid_));
  prepared_ = true;
  make_ready();
  calls_.start_ahead(uuid_);
  return {};
}

// Queues of workers that run `subject` and, in turn with it, `beside` (may be null): both have the
// same, since times depend on them. A host form's
// plan is unknown until it is captured, and could be anything.
Queues CudaEvaluator::queues_for(const Subject& subject, const Subject* beside) const {
  for (const Subject* each : {&subject, beside}) {
    if (each == nullptr) continue;
    for (const Binary& binary : each->binaries) {
      const auto known = shop_.plans.find(binary.hash);
      const LaunchPlan* plan = binary.form == Binary::Form::kPlanForm ? &binary.plan
                               : known != shop_.plans.end()           ? &known->second.plan
                                                                      : nullptr;
      if (plan == nullptr || !plan->one_after_another()) return Queues::kDefault;
    }
  }
  return Queues::kOne;
}

// A process to capture a PyTorch candidate in, which is ready, unless it has been captured.
std::optional<CudaLink> CudaEvaluator::capture_for(const Subject& subject) {
  if (!forms_.to_capture(subject)) return std::nullopt;
  Result<CudaLink> link = crew_.take_capture();
  if (!link) {
    forms_.refuse(subject, link.error().message);
    return std::nullopt;
  }
  const Answer started = link->settle(kStartTimeout);
  if (std::holds_alternative<Reply>(started)) return std::move(*link);
  const auto* refusal = std::get_if<Refusal>(&started);
  forms_.refuse(subject, "Python did not start to capture it: " +
                             (refusal != nullptr ? refusal->text : std::get<Lost>(started).how));
  crew_.retire(std::move(*link));
  return std::nullopt;
}

Subject CudaEvaluator::planned(const Subject& subject, std::optional<CudaLink> capture) {
  Subject form = forms_.planned(subject, capture ? &*capture : nullptr);
  if (capture) crew_.retire(std::move(*capture));
  return form;
}

// From now on it runs in host form.
Result<void> CudaEvaluator::give_up_plan(const Subject& subject, const std::string& reason) {
  forms_.refuse(subject, reason);
  crew_.wait_for_leaving();  // the worker no longer touches the sets
  return sweep();
}

Result<void> CudaEvaluator::open_stages(int stage) {
  for (CudaCase& state : cases_) KP_TRY(open_stage(judge_, state, stage));
  return {};
}

// One trial in fresh workers, of which candidate and incumbent have one each. REQUIRES: the lease
// is held.
Result<Outcome> CudaEvaluator::attempt(const Subject& subject, const Subject* incumbent,
                                       const CudaTimingPlan& plan, double* ready_s) {
  const bool modules[] = {is_module(subject), incumbent != nullptr && is_module(*incumbent)};
  // Two host forms share no memory.
  if (modules[0] && modules[1] && (!open_stages(0) || !open_stages(1))) {
    Result<Outcome> alone = attempt(subject, nullptr, plan, ready_s);
    if (auto* correct = alone ? std::get_if<Correct>(&*alone) : nullptr) {
      correct->notes.emplace_back(
          "it was not compared: the GPU has too little memory for two host forms");
    }
    return alone;
  }
  const int natives = (modules[0] ? 0 : 1) + (incumbent != nullptr && !modules[1] ? 1 : 0);
  const Queues queues = queues_for(subject, incumbent);
  crew_.wait_for_leaving();  // no process starts or exits during timing
  crew_.settle();
  std::vector<CudaWorker> workers;
  if (natives > 0) {
    crew_.expect_native(natives);
    auto taken = crew_.take_native(natives, queues);
    if (!taken && screeners_.dismiss()) {  // for lack of their memory, perhaps
      crew_.wait_for_leaving();
      taken = crew_.take_native(natives, queues);
    }
    if (!taken) return tl::unexpected<Error>(std::move(taken.error()));
    workers = std::move(*taken);
  }
  const int stages = (modules[0] ? 1 : 0) + (modules[1] ? 1 : 0);
  for (int stage = 0; stage < stages; ++stage) KP_TRY(open_stages(stage));
  for (int stage = 0; stage < stages; ++stage) {
    KP_ASSIGN(CudaWorker worker, crew_.take_module(stage, stages - 1 - stage));
    KP_TRY(open_gate(judge_, worker));
    const bool first = stage == 0 && modules[0];
    workers.insert(first ? workers.begin() : workers.end(), std::move(worker));
  }
  *ready_s = real_clock().now_s();
  shop_.retire = [this](CudaWorker leaving) { crew_.retire(std::move(leaving.link)); };
  // All were settled above: taking one starts nothing during timing.
  shop_.another = [this, left = kTimingProcesses - 1]() mutable {
    return left-- > 0 ? crew_.another() : std::nullopt;
  };
  if (incumbent != nullptr) shop_.another = nullptr;
  shop_.renew = [this, queues](CudaWorker* worker) -> Result<void> {
    crew_.retire(std::move(worker->link));
    crew_.wait_for_leaving();
    if (!worker->module) {
      KP_ASSIGN(*worker, crew_.take_native(queues));
      return {};
    }
    const int stage = worker->host->stage;
    KP_ASSIGN(*worker, crew_.take_module(stage));
    return open_gate(judge_, *worker);
  };
  shop_.more = [this, queues](int count) { return crew_.take_native(count, queues); };
  CudaWorker* other = incumbent != nullptr ? &workers[1] : nullptr;
  Result<Outcome> outcome = CudaTrial(shop_, workers[0], other, plan).run(subject, incumbent);
  for (CudaWorker& worker : workers) crew_.retire(std::move(worker.link));
  crew_.expect_native(std::max(natives, 1));
  return outcome;
}

Result<Evaluation> CudaEvaluator::judge(const Subject& subject, const Subject* incumbent,
                                        CudaTimingPlan plan) {
  const double start = real_clock().now_s();
  KP_ASSERT(prepared_ && subject.binaries.size() == cases_.size());
  ++round_;
  plan.timeout_s = settings_.timeout_s;
  plan.min_effect = settings_.min_effect;
  // The error probability over all timed cases is at most alpha.
  const auto timed = std::count_if(cases_.begin(), cases_.end(),
                                   [](const CudaCase& state) { return state.c->timed; });
  plan.alpha = settings_.alpha / static_cast<double>(std::max<std::ptrdiff_t>(1, timed));

  // Python takes seconds to start: other work may use the GPU meanwhile.
  const bool other = incumbent != nullptr && forms_.to_capture(*incumbent) &&
                     incumbent->binaries[0].hash != subject.binaries[0].hash;
  crew_.expect_modules((forms_.to_capture(subject) ? 1 : 0) + (other ? 1 : 0));
  std::optional<CudaLink> capture = capture_for(subject), other_capture;
  if (other) other_capture = capture_for(*incumbent);
  crew_.settle_python();
  const double asked = real_clock().now_s();
  KP_ASSIGN(auto lease, GpuLease::take(uuid_, kLeaseTimeout));
  const double turn_s = real_clock().now_s() - asked;
  calls_.settle();
  const Subject mine = planned(subject, std::move(capture));
  if (is_module(subject) && forms_.late_s(subject) > 0) {
    Evaluation late;
    late.trust = trust_name(Trust::kModule);
    late.outcome = TimedOut{forms_.late_s(subject),
                            "capturing its first calls: build extensions beforehand, and neither "
                            "wait in them nor compute for long"};
    if (other_capture) crew_.retire(std::move(*other_capture));
    make_ready();
    late.run_ms = (real_clock().now_s() - start) * 1e3;
    return late;
  }
  std::optional<Subject> theirs;
  if (incumbent != nullptr) theirs = planned(*incumbent, std::move(other_capture));
  if (settings_.redraw && round_ > 1) {
    crew_.wait_for_leaving();
    KP_TRY(preparation_.redraw());
  }

  const auto before = gpu_state(uuid_);
  shop_.others = [&] {
    const auto now = gpu_state(uuid_);
    return before && now ? foreign_processes(*before, *now) : 0;
  };
  double ready = 0, screening_s = 0;
  std::optional<Outcome> screened;
  if (!settings_.redraw && may_screen(cases_, mine, theirs ? &*theirs : nullptr)) {
    KP_ASSIGN(screened, screeners_.screen(mine, *theirs, queues_for(mine, &*theirs), plan, &ready));
    if (!screened && ready > 0) screening_s = real_clock().now_s() - ready;
  }
  Result<Outcome> outcome =
      screened ? std::move(*screened) : attempt(mine, theirs ? &*theirs : nullptr, plan, &ready);
  if (outcome && theirs && forms_.in_doubt(*incumbent, *theirs) && !compared(*outcome)) {
    // Not the candidate's fault, perhaps.
    KP_TRY(give_up_plan(*incumbent, "as a launch plan it could not be compared"));
    theirs = *incumbent;
    outcome = attempt(mine, &*theirs, plan, &ready);
  }
  bool host_form = is_module(mine);
  if (outcome && is_module(subject) && !host_form && !std::holds_alternative<Correct>(*outcome)) {
    // Not its fault, perhaps: a plan leaves out what a module keeps from one call to the next.
    KP_TRY(give_up_plan(subject, "as a launch plan it is not correct (" +
                                     outcome_summary(*outcome) +
                                     "); it may use tensors that it derives from its parameters "
                                     "beforehand"));
    host_form = true;
    outcome = attempt(subject, theirs ? &*theirs : nullptr, plan, &ready);
  }
  if (outcome && std::holds_alternative<Correct>(*outcome)) {
    if (!host_form) forms_.trust(subject);
    if (incumbent != nullptr && compared(*outcome)) forms_.trust(*incumbent);
  }
  const auto after = gpu_state(uuid_);
  if (!outcome) return tl::unexpected<Error>(outcome.error());

  Evaluation evaluation;
  evaluation.trust = trust_name(host_form ? Trust::kModule : Trust::kPlan);
  evaluation.outcome = std::move(*outcome);
  if (auto* correct = std::get_if<Correct>(&evaluation.outcome)) {
    correct->observed["evaluate.turn_ms"] = turn_s * 1e3;  // other runs had the GPU
    correct->observed["evaluate.worker_ms"] = (ready - start - turn_s - screening_s) * 1e3;
    if (screening_s > 0) correct->observed["evaluate.screen_ms"] = screening_s * 1e3;
    if (host_form) {
      correct->labels.emplace_back(label_name(Label::kHostForm));
      correct->notes.push_back("host form: " + forms_.why_host_form(subject));
    }
    for (const std::string& note : forms_.notes(subject)) correct->notes.push_back(note);
    if (theirs && is_module(*theirs) && correct->versus) {
      correct->notes.push_back(
          "it was compared with a PyTorch file in host form, whose time includes what Python does "
          "for each call (" +
          forms_.why_host_form(*incumbent) + ")");
    }
    for (const std::string& name : preparation_.labels()) correct->labels.push_back(name);
    for (const CudaCase& state : cases_) {
      if (!holds_lesser(state)) continue;
      correct->labels.emplace_back(label_name(Label::kFloat64NotAlways));
      break;
    }
    if (before && after) {
      correct->observed["load.gpu_processes"] = foreign_processes(*before, *after);
      for (std::string& note : watch_notes(*before, *after)) {
        correct->notes.push_back(std::move(note));
      }
    }
  } else {
    crew_.wait_for_leaving();  // the worker no longer touches the sets
    KP_TRY(sweep());
  }
  if (settings_.evaluations == 0 && is_module(subject)) crew_.expect_modules();
  if (round_ != static_cast<std::uint64_t>(settings_.evaluations)) make_ready();
  evaluation.run_ms = (real_clock().now_s() - start) * 1e3;
  return evaluation;
}

Result<std::variant<Energy, Outcome>> CudaEvaluator::energy(const Subject& subject,
                                                            const Subject* incumbent,
                                                            const EnergyPlan& plan) {
  KP_ASSERT(prepared_ && subject.binaries.size() == cases_.size());
  const std::size_t largest = largest_timed_case(task_, cases_);
  if (largest == cases_.size()) {
    return fail(ErrorKind::kTask, task_.name + " has no timed case", "add one to task.toml");
  }
  KP_ASSIGN(auto lease, GpuLease::take(uuid_, kLeaseTimeout));
  crew_.hide_nothing();
  crew_.wait_for_leaving();
  crew_.settle();
  calls_.settle();
  // A PyTorch incumbent's energy is not measured.
  const bool both = incumbent != nullptr && !is_module(*incumbent);
  KP_ASSIGN(auto workers,
            crew_.take_native(both ? 2 : 1, queues_for(subject, both ? incumbent : nullptr)));
  auto energy = measure_energy(shop_, workers[0], both ? &workers[1] : nullptr, uuid_, largest,
                               subject, incumbent, plan);
  for (CudaWorker& worker : workers) crew_.retire(std::move(worker.link));
  crew_.wait_for_leaving();
  KP_TRY(sweep());
  make_ready();
  return energy;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_cuda_evaluator(const Task& task, const Machine& machine,
                                                       const EvaluateSettings& settings) {
  raise_descriptor_limit();
  auto* ahead = dynamic_cast<CudaAhead*>(settings.ahead.get());
  if (ahead != nullptr && (ahead->gpu != settings.gpu || !ahead->judge.running())) ahead = nullptr;
  KP_ASSIGN(CudaLink judge, ahead != nullptr
                                ? Result<CudaLink>(std::move(ahead->judge))
                                : CudaLink::start(WorkerRole::kCudaJudge, settings.gpu));
  auto evaluator = std::make_unique<CudaEvaluator>(task, machine, settings, std::move(judge));
  if (ahead != nullptr) evaluator->take(ahead);
  evaluator->start_ahead();
  return evaluator;
}

}  // namespace kernelpro
