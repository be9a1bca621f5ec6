// SPDX-License-Identifier: Apache-2.0
// The evaluator of the cuda target: the judge process holds buffers and expected results for the
// whole run, each candidate gets its own worker process, and a capture process turns host-form
// candidates into launch plans. See docs/launch-plan.md for the trust model.
#include "measure/judge/evaluator.h"

#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/clock.h"
#include "machine/gpu_lease.h"
#include "machine/gpu_watch.h"
#include "measure/cuda/ahead.h"
#include "measure/cuda/crew.h"
#include "measure/cuda/energy.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/module_plan.h"
#include "measure/cuda/prepare.h"
#include "measure/cuda/profile.h"
#include "measure/cuda/sampling.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

namespace {

constexpr double kStartTimeout = 120;  // a context on a cold machine
constexpr double kLeaseTimeout = 900;
constexpr double kBuildTimeout = 600;  // a PyTorch candidate may compile extensions

bool holds_lesser(const CudaCase& state) {
  return std::find(state.lesser.begin(), state.lesser.end(), true) != state.lesser.end();
}

bool is_module(const Subject& subject) { return subject.binaries[0].form == Binary::Form::kModule; }

bool compared(const Outcome& outcome) {
  const auto* correct = std::get_if<Correct>(&outcome);
  return correct != nullptr && correct->versus.has_value();
}

std::string form_key(const Binary& binary) { return binary.hash + "/" + binary.case_name; }

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
    return judge(subject, incumbent, plan);
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) override {
    CudaTimingPlan plan;
    plan.min_samples = std::max(60, 2 * settings_.samples);
    plan.max_pairs = 2 * plan.min_samples;
    plan.budget_s = 2;
    shop_.probes_each = 0;
    return judge(subject, &incumbent, plan);
  }
  std::vector<std::string> task_labels() const override { return preparation_.labels(); }
  std::optional<CallFacts> call_facts(const Subject& subject, std::size_t at) const override;
  CounterAnswers profile(const Subject& subject, std::size_t at, CounterSet set) override;
  SampleAnswers sample(const Subject& subject, std::size_t at) override;
  Result<std::variant<Energy, Outcome>> energy(const Subject& subject, const Subject* incumbent,
                                               const EnergyPlan& plan) override;

 private:
  Result<Evaluation> judge(const Subject& subject, const Subject* incumbent, CudaTimingPlan plan);
  Result<Outcome> attempt(const Subject& subject, const Subject* incumbent,
                          const CudaTimingPlan& plan, double* ready_s);
  Result<void> open_stages(int stage);
  Subject planned(const Subject& subject, std::optional<CudaLink> capture);
  const ModulePlan* plan_in_use(const Subject& subject, std::size_t at) const;
  std::optional<CudaLink> capture_for(const Subject& subject);
  Result<void> give_up_plan(const Subject& subject, std::string reason);
  bool in_doubt(const Subject& subject, const Subject& form) const;
  const std::string& why_host_form(const Subject& subject) const;
  std::vector<std::string> capture_notes(const Subject& subject) const;
  Queues queues_for(const Subject& subject, const Subject* beside) const;
  // Forgets modified inputs, which are then redrawn before their next use.
  Result<void> sweep() {
    for (CudaCase& state : cases_) KP_TRY(forget_broken_sets(judge_, state));
    return {};
  }
  void make_ready();
  // Runs `collect(state, binary, plan)` while no other process of ours uses the GPU. Not null: why
  // it could not.
  template <class Collect>
  std::optional<Missing> observed(const Subject& subject, std::size_t at, Family family,
                                  Collect collect);

  const Task& task_;
  const Machine& machine_;
  EvaluateSettings settings_;
  CudaLink judge_;
  std::vector<CudaCase> cases_;
  CudaReference reference_;
  CudaShop shop_;
  CudaCrew crew_{task_, settings_, cases_};
  CudaProfile profile_{settings_.gpu};
  CudaSampling sampling_{settings_.gpu};
  std::map<std::string, ModuleForm> forms_;  // of PyTorch candidates, by form_key
  std::set<std::string> sound_;              // ... whose plans were found correct
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
  Result<CudaLink> capture = CudaLink::start("cuda-capture", settings_.gpu, Queues::kOne);
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
  const JsonReader r(hello.json);
  uuid_ = r.text("uuid");
  KP_ASSIGN(auto lease, GpuLease::take(uuid_, kLeaseTimeout));
  KP_TRY(preparation_.prepare(references, static_cast<double>(r.natural("free_bytes")),
                              static_cast<double>(r.natural("granularity"))));
  crew_.brief(uuid_, device_files_of_others(uuid_));
  prepared_ = true;
  make_ready();
  profile_.start_ahead(task_, cases_, settings_.counters);
  if (settings_.counters != CounterSet::kOff) sampling_.start_ahead(task_, cases_);
  return {};
}

// Queues of a worker that runs `subject`, alternating with `beside` (may be null). A host form's
// plan is unknown until it is captured, and could be anything.
Queues CudaEvaluator::queues_for(const Subject& subject, const Subject* beside) const {
  for (const Subject* each : {&subject, beside}) {
    if (each == nullptr) continue;
    for (const Binary& binary : each->binaries) {
      const auto known = shop_.plans.find(binary.hash);
      const LaunchPlan* plan = binary.form == Binary::Form::kPlanForm ? &binary.plan
                               : known != shop_.plans.end()           ? &known->second
                                                                      : nullptr;
      if (plan == nullptr || !plan->one_after_another()) return Queues::kDefault;
    }
  }
  return Queues::kOne;
}

// A process to capture a PyTorch candidate in, unless it has been captured.
std::optional<CudaLink> CudaEvaluator::capture_for(const Subject& subject) {
  const auto known = [&](const Binary& binary) { return forms_.count(form_key(binary)) != 0; };
  const auto& all = subject.binaries;
  if (!is_module(subject) || std::all_of(all.begin(), all.end(), known)) return std::nullopt;
  Result<CudaLink> link = crew_.take_capture();
  if (link) return std::move(*link);
  for (const Binary& binary : all) forms_[form_key(binary)] = HostForm{link.error().message};
  return std::nullopt;
}

// A PyTorch candidate with launch plans, if every case has one; any other subject as it is.
Subject CudaEvaluator::planned(const Subject& subject, std::optional<CudaLink> capture) {
  if (!is_module(subject)) return subject;
  Subject result = subject;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const std::string key = form_key(subject.binaries[i]);
    if (forms_.count(key) == 0 && capture) {
      forms_[key] = capture_module(*capture, cases_[i], task_, settings_.policy,
                                   subject.binaries[i], kBuildTimeout);
    }
    const auto known = forms_.find(key);
    const auto* made = known == forms_.end() ? nullptr : std::get_if<ModulePlan>(&known->second);
    if (made == nullptr) {
      result = subject;
      break;
    }
    Binary& binary = result.binaries[i];
    binary.form = Binary::Form::kPlanForm;
    binary.plan = made->plan;
    binary.images = made->images;
  }
  if (capture) crew_.retire(std::move(*capture));
  return result;
}

// From now on it runs in host form.
Result<void> CudaEvaluator::give_up_plan(const Subject& subject, std::string reason) {
  forms_[form_key(subject.binaries[0])] = HostForm{std::move(reason)};
  crew_.wait_for_leaving();  // the worker no longer touches the sets
  return sweep();
}

// Whether `form`, the form of a subject, is a PyTorch candidate's plan that nobody has checked.
bool CudaEvaluator::in_doubt(const Subject& subject, const Subject& form) const {
  return is_module(subject) && !is_module(form) && sound_.count(form_key(subject.binaries[0])) == 0;
}

const std::string& CudaEvaluator::why_host_form(const Subject& subject) const {
  for (const Binary& binary : subject.binaries) {
    const auto known = forms_.find(form_key(binary));
    const auto* form = known == forms_.end() ? nullptr : std::get_if<HostForm>(&known->second);
    if (form != nullptr) return form->reason;
  }
  static const std::string kUnknown = "it was not captured";
  return kUnknown;
}

std::vector<std::string> CudaEvaluator::capture_notes(const Subject& subject) const {
  std::vector<std::string> notes;
  for (const Binary& binary : subject.binaries) {
    const auto known = forms_.find(form_key(binary));
    const auto* made = known == forms_.end() ? nullptr : std::get_if<ModulePlan>(&known->second);
    if (made != nullptr) notes.insert(notes.end(), made->notes.begin(), made->notes.end());
  }
  return notes;
}

Result<void> CudaEvaluator::open_stages(int stage) {
  for (CudaCase& state : cases_) KP_TRY(open_stage(judge_, state, stage));
  return {};
}

// One trial in fresh workers. REQUIRES: the lease is held.
Result<Outcome> CudaEvaluator::attempt(const Subject& subject, const Subject* incumbent,
                                       const CudaTimingPlan& plan, double* ready_s) {
  // Python code can do anything to what shares its process.
  const bool apart = incumbent != nullptr && (is_module(*incumbent) || is_module(subject));
  const bool two = incumbent != nullptr && is_module(*incumbent) && is_module(subject);
  if (two && (!open_stages(0) || !open_stages(1))) {  // they share no memory
    Result<Outcome> alone = attempt(subject, nullptr, plan, ready_s);
    if (auto* correct = alone ? std::get_if<Correct>(&*alone) : nullptr) {
      correct->notes.emplace_back(
          "it was not compared: the GPU has too little memory for two host forms");
    }
    return alone;
  }
  std::optional<CudaWorker> worker, other;
  const auto take = [&](const Subject& whose, std::optional<CudaWorker>* into) -> Result<void> {
    const Subject* beside = apart ? nullptr : incumbent;
    if (!is_module(whose)) {
      KP_ASSIGN(*into, crew_.take_native(queues_for(whose, beside)));
      return {};
    }
    const bool first = &whose == &subject;
    const int stage = first || !is_module(subject) ? 0 : 1;
    KP_TRY(open_stages(stage));
    KP_ASSIGN(*into, crew_.take_module(stage, first && two ? 1 : 0));
    return open_gate(judge_, **into);
  };
  crew_.wait_for_leaving();  // no process starts or exits during timing
  crew_.settle();
  KP_TRY(take(subject, &worker));
  if (apart) KP_TRY(take(*incumbent, &other));
  *ready_s = real_clock().now_s();
  // All were settled above: taking one starts nothing during timing.
  shop_.retire = [this](CudaWorker leaving) { crew_.retire(std::move(leaving.link)); };
  shop_.another = [this, left = kTimingProcesses - 1]() mutable {
    return left-- > 0 ? crew_.another() : std::nullopt;
  };
  if (incumbent != nullptr) shop_.another = nullptr;
  Result<Outcome> outcome =
      CudaTrial(shop_, *worker, other ? &*other : nullptr, plan).run(subject, incumbent);
  crew_.retire(std::move(worker->link));
  if (other) crew_.retire(std::move(other->link));
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
  std::optional<CudaLink> capture = capture_for(subject);
  KP_ASSIGN(auto lease, GpuLease::take(uuid_, kLeaseTimeout));
  profile_.settle();
  sampling_.settle();
  const Subject mine = planned(subject, std::move(capture));
  std::optional<Subject> theirs;
  if (incumbent != nullptr) theirs = planned(*incumbent, capture_for(*incumbent));
  if (settings_.redraw && round_ > 1) {
    crew_.wait_for_leaving();
    KP_TRY(preparation_.redraw());
  }

  const auto before = gpu_state(uuid_);
  shop_.others = [&] {
    const auto now = gpu_state(uuid_);
    return before && now ? foreign_processes(*before, *now) : 0;
  };
  double ready = 0;
  Result<Outcome> outcome = attempt(mine, theirs ? &*theirs : nullptr, plan, &ready);
  if (outcome && theirs && in_doubt(*incumbent, *theirs) && !compared(*outcome)) {
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
    if (!host_form) sound_.insert(form_key(subject.binaries[0]));
    if (incumbent != nullptr && compared(*outcome)) {
      sound_.insert(form_key(incumbent->binaries[0]));
    }
  }
  const auto after = gpu_state(uuid_);
  if (!outcome) return tl::unexpected<Error>(outcome.error());

  Evaluation evaluation;
  evaluation.trust = host_form ? "module" : "plan";
  evaluation.outcome = std::move(*outcome);
  if (auto* correct = std::get_if<Correct>(&evaluation.outcome)) {
    correct->observed["evaluate.worker_ms"] = (ready - start) * 1e3;
    if (host_form) {
      correct->labels.emplace_back(kHostFormLabel);
      correct->notes.push_back("host form: " + why_host_form(subject));
    }
    for (const std::string& note : capture_notes(subject)) correct->notes.push_back(note);
    for (const std::string& name : preparation_.labels()) correct->labels.push_back(name);
    for (const CudaCase& state : cases_) {
      if (!holds_lesser(state)) continue;
      correct->labels.push_back("float64-not-always");
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
  if (settings_.evaluations == 0 && is_module(subject)) crew_.expect_module();
  if (round_ != static_cast<std::uint64_t>(settings_.evaluations)) make_ready();
  evaluation.run_ms = (real_clock().now_s() - start) * 1e3;
  return evaluation;
}

// A PyTorch candidate's plan, once it was found correct; null: it runs in host form.
const ModulePlan* CudaEvaluator::plan_in_use(const Subject& subject, std::size_t at) const {
  const ModulePlan* wanted = nullptr;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const auto known = forms_.find(form_key(subject.binaries[i]));
    const auto* made = known == forms_.end() ? nullptr : std::get_if<ModulePlan>(&known->second);
    if (made == nullptr) return nullptr;
    if (i == at) wanted = made;
  }
  return sound_.count(form_key(subject.binaries[0])) == 0 ? nullptr : wanted;
}

std::optional<CallFacts> CudaEvaluator::call_facts(const Subject& subject, std::size_t at) const {
  if (at >= cases_.size()) return std::nullopt;
  CallFacts call;
  call.layout = cases_[at].layout;
  if (is_module(subject)) {
    const ModulePlan* made = plan_in_use(subject, at);
    if (made == nullptr) return std::nullopt;
    call.plan = made->plan;
    call.images = made->images;
    call.operators = made->operators;
    call.layout.scratch_bytes = made->plan.scratch_bytes;
    return call;
  }
  const Binary& binary = subject.binaries[at];
  if (binary.form == Binary::Form::kPlanForm) {
    call.plan = binary.plan;
    return call;
  }
  const auto known = shop_.plans.find(binary.hash);
  if (known == shop_.plans.end()) return std::nullopt;
  call.plan = known->second;
  return call;
}

template <class Collect>
std::optional<Missing> CudaEvaluator::observed(const Subject& subject, std::size_t at,
                                               Family family, Collect collect) {
  const auto missing = [&](const Error& error) {
    return Missing{family, error.message, error.next};
  };
  const std::optional<CallFacts> call = call_facts(subject, at);
  if (!call) {
    return Missing{family,
                   is_module(subject)
                       ? "it runs in host form, which has no launch plan: " + why_host_form(subject)
                       : "there is no launch plan to profile",
                   is_module(subject) ? "trace it: kernelpro diagnose -- python FILE"
                                      : "evaluate the candidate first"};
  }
  CudaCase& state = cases_[at];
  auto lease = GpuLease::take(uuid_, kLeaseTimeout);
  if (!lease) return missing(lease.error());
  crew_.wait_for_leaving();
  Binary binary = subject.binaries[at];
  binary.images = call->images;
  collect(state, binary, call->plan);
  // Forgets sets that the kernels modified, so that the next candidate is not affected.
  if (const auto swept = forget_broken_sets(judge_, state); !swept) return missing(swept.error());
  return std::nullopt;
}

CounterAnswers CudaEvaluator::profile(const Subject& subject, std::size_t at, CounterSet set) {
  CounterAnswers answers;
  if (set == CounterSet::kOff || at >= cases_.size()) return answers;
  auto missing = observed(subject, at, Family::kCounters,
                          [&](const CudaCase& state, const Binary& binary, const LaunchPlan& plan) {
                            answers = profile_.collect(task_, cases_, state, binary, plan, set,
                                                       settings_.timeout_s);
                          });
  if (missing) answers.missing.push_back(std::move(*missing));
  return answers;
}

SampleAnswers CudaEvaluator::sample(const Subject& subject, std::size_t at) {
  SampleAnswers answers;
  if (at >= cases_.size()) return answers;
  auto missing = observed(subject, at, Family::kSamples,
                          [&](const CudaCase& state, const Binary& binary, const LaunchPlan& plan) {
                            answers =
                                sampling_.collect(task_, cases_, state, binary, plan,
                                                  settings_.timeout_s, [&] { profile_.release(); });
                          });
  if (missing) answers.missing.push_back(std::move(*missing));
  return answers;
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
  profile_.settle();
  sampling_.settle();
  // A PyTorch incumbent's energy is not measured.
  const bool both = incumbent != nullptr && !is_module(*incumbent);
  KP_ASSIGN(CudaWorker worker, crew_.take_native(queues_for(subject, both ? incumbent : nullptr)));
  auto energy = measure_energy(shop_, worker, uuid_, largest, subject, incumbent, plan);
  crew_.retire(std::move(worker.link));
  crew_.wait_for_leaving();
  KP_TRY(sweep());
  make_ready();
  return energy;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_cuda_evaluator(const Task& task, const Machine& machine,
                                                       const EvaluateSettings& settings) {
  raise_descriptor_limit();
  CudaAhead* ahead = settings.ahead.get();
  if (ahead != nullptr && (ahead->gpu != settings.gpu || !ahead->judge.running())) ahead = nullptr;
  KP_ASSIGN(CudaLink judge, ahead != nullptr ? Result<CudaLink>(std::move(ahead->judge))
                                             : CudaLink::start("cuda-judge", settings.gpu));
  auto evaluator = std::make_unique<CudaEvaluator>(task, machine, settings, std::move(judge));
  if (ahead != nullptr) evaluator->take(ahead);
  evaluator->start_ahead();
  return evaluator;
}

}  // namespace kernelpro
