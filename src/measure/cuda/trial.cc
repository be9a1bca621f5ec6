// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/trial.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "core/task/key.h"
#include "measure/cuda/capture.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/passes.h"
#include "measure/cuda/symbols.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

constexpr double kBuildTimeout = 180;  // a PyTorch candidate may compile extensions
// What all calls of an evaluation may take together: as long as two calls at most, and for each
// case as many calls like its first as checks, times and probes need.
constexpr double kAllowedLimits = 2, kAllowedCalls = 100;
constexpr const char* kUncaptured =
    ". This was outside of a stream capture: let launch do the same in a capture and without one";
constexpr const char* kReordered =
    ". In this call its launches ran one after another, in an order that the plan allows: if "
    "others "
    "are right, an event or another dependency between launches is missing";

// Whether evidence would be about the last one (measure/station/target.cc): of equals, the first.
bool last_is_longest(const std::vector<Timing>& timings) {
  return std::ranges::max_element(timings, {}, &Timing::median_us) == timings.end() - 1;
}

}  // namespace

std::vector<SetContent> check_contents(const CudaCase& state, Policy policy) {
  std::vector<SetContent> contents;
  if (policy == Policy::kKernelBench && state.numerics == Numerics::kKernelBench) {
    for (int trial = 0; trial < kKernelBenchTrials; ++trial) {
      contents.push_back({key_of(static_cast<std::uint64_t>(trial)), DrawKind::kKernelBench});
    }
    return contents;
  }
  for (int set = 0; set < state.plan.rotation; ++set) {
    // Contents left by the last audit are as good as those drawn first.
    const auto& held = state.contents[static_cast<std::size_t>(set)];
    const bool given = held && held->kind == DrawKind::kGiven;
    contents.push_back(given ? *held : SetContent{fresh_key(), DrawKind::kGiven});
  }
  return contents;
}

void CudaTrial::label(const std::string& name) {
  auto& labels = correct_.labels;
  if (std::find(labels.begin(), labels.end(), name) == labels.end()) labels.push_back(name);
}

std::string CudaTrial::doing(const char* what, const CudaCase& state) const {
  return std::string(what) + " case " + state.c->name +
         (kernels_.empty() ? std::string() : " (" + kernels_ + ")");
}

// Moves the worker to where the subject's captured addresses hold. Those that do not hold there are
// captured again (plan_of).
void CudaTrial::settle_in(CudaWorker& worker, const Subject& subject) {
  if (worker.module) return;
  worker.link.limit_by(&subject == subject_ ? allowance_ : nullptr);
  std::uint64_t place = 0;
  for (const Binary& binary : subject.binaries) {
    const auto known = shop_.plans.find(binary.hash);
    if (binary.place != 0) place = binary.place;
    if (known != shop_.plans.end()) place = known->second.place;
  }
  move_to(worker.link, shop_.task, shop_.cases, place);
}

// The plan with addresses that hold in this worker.
Result<std::variant<LaunchPlan, Outcome>> CudaTrial::plan_of(const CudaWorker& worker,
                                                             const CudaCase& state,
                                                             const Binary& binary, bool candidate) {
  const std::uint64_t place = worker.link.place();
  if (binary.form == Binary::Form::kPlanForm) {
    KP_ASSERT(binary.place == 0 || binary.place == place);
    return {binary.plan};
  }
  if (const auto known = shop_.plans.find(binary.hash);
      known != shop_.plans.end() && known->second.place == place) {
    return {known->second.plan};
  }
  const Lap lap(&capture_s_);
  std::optional<CudaLink> ready = std::exchange(shop_.capture, std::nullopt);
  KP_ASSIGN(CudaLink link,
            ready ? Result<CudaLink>(std::move(*ready))
                  : CudaLink::start(WorkerRole::kCudaCapture, shop_.settings.gpu, Queues::kOne));
  auto captured = capture_plan_in(link, binary, "launch", placed(state.layout, place),
                                  shop_.settings.timeout_s);
  if (!captured || std::holds_alternative<Outcome>(*captured)) return captured;
  if (candidate) {
    // A crash outside of the capture is explained by the plan's.
    loaded_ = {&state, &binary, std::get<LaunchPlan>(*captured), place};
    KP_ASSIGN(auto differs, call_outside(std::move(link), state));
    if (differs) return {std::move(*differs)};
  }
  shop_.plans[binary.hash] = {std::get<LaunchPlan>(*captured), place};
  return captured;
}

CudaCase& CudaTrial::own(const CudaCase& state) {
  const auto found = std::find_if(shop_.cases.begin(), shop_.cases.end(),
                                  [&](const CudaCase& each) { return &each == &state; });
  KP_ASSERT(found != shop_.cases.end());
  return *found;
}

// What is judged is the captured plan. What `launch` does where nothing captures it must be right
// too: that is what its users run. Only its results are looked at, in a process that then ends.
CudaTrial::Verdict CudaTrial::call_outside(CudaLink capture, const CudaCase& given) {
  CudaCase& state = own(given);
  KP_TRY(shop_.reference.fill(state, 0, {fresh_key(), DrawKind::kGiven}));
  KP_TRY(poison(shop_.judge, state, {{0, fresh_secret()}}, true));
  if (auto failed = call_uncaptured(std::move(capture), state, shop_.settings.timeout_s)) {
    state.contents[0].reset();
    return std::optional<Outcome>(std::move(*failed));
  }
  double ignored = 0;
  KP_ASSIGN(auto wrong, verify(shop_.judge, state, {0}, true, {}, &ignored));
  if (!wrong) return std::optional<Outcome>();
  if (auto* result = std::get_if<WrongResult>(&wrong->outcome)) result->reason += kUncaptured;
  if (auto* rejected = std::get_if<Rejected>(&wrong->outcome)) rejected->reason += kUncaptured;
  return std::optional<Outcome>(std::move(wrong->outcome));
}

CudaTrial::Verdict CudaTrial::load(CudaWorker& worker, const char* name, const CudaCase& state,
                                   const Binary& binary, std::map<std::string, double>* facts) {
  if (binary.form == Binary::Form::kModule) {
    kernels_.clear();
    worker.link.limit_by(nullptr);  // it may compile
    Verdict loaded =
        load_module(worker, state, shop_.task, shop_.settings.policy, name, binary, kBuildTimeout,
                    facts, facts != nullptr ? &correct_.notes : nullptr);
    if (&worker == &worker_) worker.link.limit_by(allowance_);
    return loaded;
  }
  if (binary.images.empty()) {  // others were looked at when they were captured
    KP_ASSIGN(const std::string cubin, read_file(binary.cubin));
    if (const ForbiddenSymbol symbol = forbidden_symbol(cubin); !symbol.rule.empty()) {
      return std::optional<Outcome>(Rejected{symbol.rule, symbol.reason});
    }
  }
  KP_ASSIGN(auto plan, plan_of(worker, state, binary, facts != nullptr));
  if (auto* outcome = std::get_if<Outcome>(&plan)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  kernels_ = kernel_names(std::get<LaunchPlan>(plan));
  if (facts != nullptr) {
    loaded_ = {&state, &binary, std::get<LaunchPlan>(plan), worker.link.place()};
  }
  return load_plan(worker, state, name, binary, std::get<LaunchPlan>(plan), facts,
                   facts != nullptr ? &correct_.notes : nullptr);
}

CudaTrial::Verdict CudaTrial::run_on(const CudaCase& state, const SetKeys& steps) {
  reordered_.clear();
  // The first call runs alone, so that a hang is noticed after one call's time limit.
  SetKeys now = steps;
  if (call_s_ == 0 && !steps.empty()) {
    const double start = real_clock().now_s();
    Verdict first = call_on(state, {steps.front()}, timing_.timeout_s);
    if (!first || *first) return first;
    call_s_ = real_clock().now_s() - start;
    longest_call_s_ = std::max(longest_call_s_, call_s_);
    allowance_->limit_s += kAllowedCalls * call_s_;
    now.erase(now.begin());
  }
  if (now.empty()) return std::optional<Outcome>();
  return call_on(state, now, std::min(timing_.timeout_s, 2 + 20 * call_s_));
}

// One untimed call for each step, of at most `limit_s`.
CudaTrial::Verdict CudaTrial::call_on(const CudaCase& state, const SetKeys& steps, double limit_s) {
  if (!worker_.module) {
    const bool side_by_side = !loaded_.plan.one_after_another();
    return run_sets(worker_, state, "candidate", steps, limit_s * static_cast<double>(steps.size()),
                    doing("checking", state) +
                        (side_by_side ? ", in some calls with its launches one after another" : ""),
                    &reordered_);
  }
  std::vector<int> sets;
  for (const auto& [set, key] : steps) sets.push_back(set);
  KP_ASSIGN(auto called, take_turns(shop_.judge, worker_, state, "candidate", sets,
                                    {false, limit_s, "checking"}));
  if (auto* outcome = std::get_if<Outcome>(&called)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  return std::optional<Outcome>();
}

// Poison, one call on each set with a freshly loaded module, comparison.
CudaTrial::Verdict CudaTrial::check_batch(CudaCase& state, const std::vector<int>& sets) {
  SetKeys keys;
  for (const int set : sets) keys.emplace_back(set, fresh_secret());
  KP_TRY(poison(shop_.judge, state, keys, true));
  Verdict ran = run_on(state, keys);
  if (!ran || *ran) return ran;
  KP_ASSIGN(auto wrong, verify(shop_.judge, state, sets, true, {}, &correct_.max_error));
  if (wrong) {
    auto* result = std::get_if<WrongResult>(&wrong->outcome);
    if (result != nullptr && reordered_.count(wrong->set) != 0) result->reason += kReordered;
    return std::optional<Outcome>(std::move(wrong->outcome));
  }
  const int looked_at = sets[fresh_secret() % sets.size()];
  const auto& held = state.contents[static_cast<std::size_t>(looked_at)];
  if (held) KP_TRY(note_norms(state, held->kind, looked_at));
  return std::optional<Outcome>();
}

// Checks all contents in an order that the candidate cannot know, one of them twice: results cached
// from one call are wrong for the next, and gone with their module.
CudaTrial::Verdict CudaTrial::check(CudaCase& state) {
  const Lap lap(&check_s_);
  call_s_ = 0;
  const std::vector<SetContent> contents = check_contents(state, shop_.settings.policy);
  const std::vector<int> order = secret_order(static_cast<int>(contents.size()), fresh_secret());
  const auto rotation = static_cast<std::size_t>(state.plan.rotation);
  for (std::size_t first = 0; first < order.size(); first += rotation) {
    std::vector<int> sets;
    for (std::size_t k = first; k < std::min(order.size(), first + rotation); ++k) {
      // Each content has its own set if there are enough; otherwise they take turns.
      const int set = contents.size() <= rotation ? order[k] : static_cast<int>(k - first);
      KP_TRY(shop_.reference.fill(state, set, contents[static_cast<std::size_t>(order[k])]));
      sets.push_back(set);
    }
    Verdict batch = check_batch(state, sets);
    if (!batch || *batch) return batch;
  }
  return check_batch(state, {static_cast<int>(fresh_secret() % rotation)});
}

// A brief call timed alone is timed in other processes too: per-process overhead differs by a
// percent and stays as long as the process lives.
CudaTrial::Verdict CudaTrial::time_elsewhere(CudaCase& state, CudaTimed* timed) {
  if (timed->timing.median_us >= kBriefUs || worker_.module || !shop_.another) {
    return std::optional<Outcome>();
  }
  std::vector<CudaTimed> all = {std::move(*timed)};
  while (std::optional<CudaWorker> worker = shop_.another()) {
    settle_in(*worker, *subject_);
    Verdict loaded = load(*worker, "candidate", state, *loaded_.binary, nullptr);
    if (!loaded || *loaded) return loaded;
    auto result = time_with_probes(*worker, nullptr, state);
    shop_.retire(std::move(*worker));
    if (!result) return tl::unexpected<Error>(result.error());
    if (auto* outcome = std::get_if<Outcome>(&*result)) {
      if (failed_on_a_probe()) break;
      return std::optional<Outcome>(std::move(*outcome));
    }
    all.push_back(std::move(std::get<CudaTimed>(*result)));
  }
  *timed = all.size() == 1 ? std::move(all.front()) : merge_processes(all);
  return std::optional<Outcome>();
}

// The ratio of the incumbent's times in both workers: 1, but for what the processes themselves add.
// nullopt: it failed.
Result<std::optional<Interval>> CudaTrial::difference(CudaCase& state, CudaWorker& mine,
                                                      CudaWorker& theirs, const Binary& incumbent) {
  const auto none = [&](const Outcome& outcome) {
    correct_.notes.push_back("the kernel to compare it with: " + outcome_summary(outcome));
    return std::optional<Interval>();
  };
  const std::string names = kernels_;
  for (const auto& [worker, name] :
       {std::pair(&mine, "candidate"), std::pair(&theirs, "incumbent")}) {
    settle_in(*worker, *incumbent_);
    KP_ASSIGN(const auto failed, load(*worker, name, state, incumbent, nullptr));
    kernels_ = names;
    if (failed) return none(*failed);
  }
  CudaTimingPlan plan = timing_;
  plan.look = nullptr;
  double ignored = 0;
  KP_ASSIGN(const auto timed,
            time_cuda_case(shop_.judge, shop_.reference, mine, &theirs, state, plan, &ignored));
  if (const auto* outcome = std::get_if<Outcome>(&timed)) return none(*outcome);
  return std::get<CudaTimed>(timed).ratio;
}

// Candidate and incumbent have a process each, and processes differ. Where that could decide, and
// calls are brief, they are compared once more in new processes, which the incumbent has measured
// against each other before any code of the candidate's ran in either.
CudaTrial::Verdict CudaTrial::decide(CudaCase& state, const Binary& incumbent, CudaTimed* timed) {
  if (!timed->ratio || worker_.module || other_->module) return std::optional<Outcome>();
  timed->ratio = widened(*timed->ratio, process_spread(timed->timing.median_us));
  const bool decided = timed->ratio->low > 1 || timed->ratio->high < 1;
  if (decided || timed->timing.median_us >= kBriefUs || !shop_.more) {
    return std::optional<Outcome>();
  }
  auto both = shop_.more(2);
  if (!both) {
    correct_.notes.push_back("no further processes for a closer comparison: " +
                             both.error().message);
    return std::optional<Outcome>();
  }
  CudaWorker &mine = both->at(0), &theirs = both->at(1);
  const auto compared = [&]() -> Verdict {
    KP_ASSIGN(const auto equals, difference(state, mine, theirs, incumbent));
    if (!equals) return std::optional<Outcome>();
    settle_in(mine, *subject_);
    Verdict loaded = load(mine, "candidate", state, *loaded_.binary, nullptr);
    if (!loaded || *loaded) return loaded;
    KP_ASSIGN(auto again, time_with_probes(mine, &theirs, state));
    if (auto* outcome = std::get_if<Outcome>(&again)) {
      if (failed_on_a_probe()) return std::optional<Outcome>();
      return std::optional<Outcome>(std::move(*outcome));
    }
    const CudaTimed& second = std::get<CudaTimed>(again);
    if (!second.ratio) return std::optional<Outcome>();
    const Interval ratio = corrected(*second.ratio, *equals);
    *timed = merge_processes({*timed, second});
    timed->ratio = ratio;
    return std::optional<Outcome>();
  };
  Verdict verdict = compared();
  for (CudaWorker& worker : *both) shop_.retire(std::move(worker));
  return verdict;
}

CudaTrial::Verdict CudaTrial::time_case(CudaCase& state, const Binary* incumbent) {
  CudaWorker* against = nullptr;
  if (incumbent != nullptr && state.plan.rotation < 2) {
    correct_.notes.push_back("only one input set of case " + state.c->name +
                             " fits on the GPU: nothing could be timed in turn with it");
  } else if (incumbent != nullptr) {
    KP_ASSERT(other_ != nullptr);
    const std::string mine = kernels_;
    const Verdict loaded = load(*other_, "incumbent", state, *incumbent, nullptr);
    kernels_ = mine;
    if (!loaded) return loaded;
    if (!*loaded) {
      against = other_;
    } else {  // its failure is not the candidate's fault
      correct_.notes.push_back("the kernel to compare it with: " + outcome_summary(**loaded));
    }
  }
  timing_.hint_us = call_s_ * 1e6;
  timing_.fresh = shop_.settings.policy == Policy::kContract;
  timing_.look = [this](const CudaCase& which, int set) {
    return note_norms(which, DrawKind::kGiven, set);
  };
  CudaTimed timed;
  {
    const Lap lap(&time_s_);
    Verdict first = time_first(state, against, &timed);
    if (!first || *first) return first;
    Verdict further =
        against == nullptr ? time_elsewhere(state, &timed) : decide(state, *incumbent, &timed);
    if (!further || *further) return further;
  }
  KP_ASSIGN(const bool changed, forget_broken_sets(shop_.judge, state));
  if (changed) return std::optional<Outcome>(changed_inputs());
  Verdict fresh = std::optional<Outcome>();
  {
    const Lap lap(&audit_s_);
    fresh = audit(state, &timed);
  }
  if (!fresh || *fresh) return fresh;
  Verdict floors = check_floors(state, timed);
  if (!floors || *floors) return floors;
  Verdict row = call_in_a_row(state, timed.timing.median_us);
  if (!row || *row) return row;
  if (!timed.note.empty()) correct_.notes.push_back(timed.note);
  if (timed.ratio) ratios_.push_back(*timed.ratio);
  correct_.timings.push_back(std::move(timed.timing));
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::run_case(std::size_t i, const Subject& subject,
                                       const Subject* incumbent) {
  CudaCase& state = shop_.cases[i];
  std::map<std::string, double> facts;
  Verdict loaded = load(worker_, "candidate", state, subject.binaries[i], &facts);
  if (!loaded || *loaded) return loaded;
  Verdict checked = check(state);
  if (!checked || *checked) return checked;
  Verdict found = judge_found();
  if (!found || *found || !state.c->timed || !shop_.settings.timing) return found;
  Verdict timed = time_case(state, incumbent != nullptr ? &incumbent->binaries[i] : nullptr);
  if (!timed || *timed) return timed;
  if (last_is_longest(correct_.timings)) facts_ = std::move(facts);
  return judge_found();
}

void CudaTrial::begin(const Subject& subject, const Subject* incumbent) {
  subject_ = &subject;
  incumbent_ = incumbent;
  reference_ms_ = shop_.reference.module_ms();
  allowance_->limit_s = kAllowedLimits * timing_.timeout_s;
  settle_in(worker_, subject);
  if (other_ != nullptr) settle_in(*other_, *incumbent);
}

// Everything is correct and timed.
Correct CudaTrial::conclude() {
  if (!ratios_.empty()) {
    const Interval all = mean_ratio(ratios_);
    correct_.versus = Correct::Versus{incumbent_->hash, all.mid, all.low, all.high};
  }
  const std::pair<const char*, double> phases[] = {
      {"evaluate.capture_ms", capture_s_}, {"evaluate.check_ms", check_s_},
      {"evaluate.time_ms", time_s_},       {"evaluate.audit_ms", audit_s_},
      {"evaluate.row_ms", row_s_},         {"evaluate.probe_ms", probe_s_}};
  for (const auto& [name, seconds] : phases) correct_.observed[name] = seconds * 1e3;
  // Of the phases above: what the module computed on the GPU for expected results.
  correct_.observed["evaluate.reference_ms"] = shop_.reference.module_ms() - reference_ms_;
  correct_.observed.insert(facts_.begin(), facts_.end());
  return std::move(correct_);
}

Result<Outcome> CudaTrial::run(const Subject& subject, const Subject* incumbent) {
  begin(subject, incumbent);
  for (CudaWorker* worker : {&worker_, other_}) {
    if (worker == nullptr || !worker->module || !shop_.settings.timing) continue;
    for (const CudaCase& state : shop_.cases) {
      if (!state.c->timed) continue;
      KP_ASSIGN(auto died, measure_overhead(shop_.judge, *worker, state));
      if (died) return std::move(*died);
    }
  }
  for (std::size_t i = 0; i < shop_.cases.size(); ++i) {
    KP_ASSIGN(auto verdict, run_case(i, subject, incumbent));
    if (verdict) return explained(std::move(*verdict));
  }
  if (shop_.settings.probes && shop_.settings.policy == Policy::kContract) {
    const Lap lap(&probe_s_);
    KP_ASSIGN(auto verdict, probe_cases());
    if (verdict) return std::move(*verdict);
  }
  return Outcome(conclude());
}

}  // namespace kernelpro
