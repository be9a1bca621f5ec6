// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "core/load.h"
#include "measure/cuda/audit.h"
#include "measure/cuda/capture.h"
#include "measure/cuda/floor.h"
#include "measure/cuda/sanitizer.h"
#include "measure/cuda/symbols.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

constexpr int kKernelBenchTrials = 5;
constexpr double kBuildTimeout = 600;  // a PyTorch candidate may compile extensions
constexpr double kSanitizeTimeout = 20;
constexpr double kLoopSeconds = 0.1;  // time for the supervisor's own timing of a module
constexpr double kLoopFactor = 1.25;  // over the module process's own figure, and over idle loops
constexpr double kLoopSlackUs = 50;   // Python overhead of a module
constexpr int kLoopTries = 3;         // the fastest counts
constexpr int kIdleLoops = 5;
constexpr double kSlowReference = 2;    // seconds; slower ones are not rerun for each candidate
constexpr double kValuesFactor = 1.25;  // largest ratio of times on other values ...
constexpr double kValuesSlackUs = 0.5;  // ... plus the clock's steps
constexpr double kValuesCalls = 5;      // on each of the two, at most ...
constexpr double kValuesSeconds = 0.2;  // ... and for at most this long

// Adds the duration of a scope.
class Lap {
 public:
  explicit Lap(double* total) : total_(total), start_(real_clock().now_s()) {}
  ~Lap() { *total_ += real_clock().now_s() - start_; }
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;

 private:
  double* total_;
  double start_;
};

// Geometric mean over the timed cases, interval ends included.
Correct::Versus combine(const std::string& incumbent, const std::vector<Interval>& ratios) {
  std::vector<double> low, mid, high;
  for (const Interval& r : ratios) {
    low.push_back(r.low);
    mid.push_back(r.mid);
    high.push_back(r.high);
  }
  return {incumbent, geometric_mean(mid), geometric_mean(low), geometric_mean(high)};
}

void slow_down(double by, CudaTimed* timed) {
  for (double* us : {&timed->timing.median_us, &timed->timing.low_us, &timed->timing.high_us}) {
    *us *= by;
  }
  if (!timed->ratio) return;
  for (double* ratio : {&timed->ratio->low, &timed->ratio->mid, &timed->ratio->high}) *ratio /= by;
}

std::vector<int> secret_order(int count, std::uint64_t seed) {
  std::vector<int> order;
  for (int i = 0; i < count; ++i) order.push_back(i);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[kp::mix64(seed + i) % i]);
  }
  return order;
}

}  // namespace

std::vector<SetContent> check_contents(const CudaCase& state, Policy policy) {
  std::vector<SetContent> contents;
  if (policy == Policy::kKernelBench && state.numerics == Numerics::kKernelBench) {
    for (int trial = 0; trial < kKernelBenchTrials; ++trial) {
      contents.push_back({static_cast<std::uint64_t>(trial), DrawKind::kKernelBench});
    }
    return contents;
  }
  for (int set = 0; set < state.plan.rotation; ++set) {
    // Contents left by the last audit are as good as those drawn first.
    const auto& held = state.contents[static_cast<std::size_t>(set)];
    const bool given = held && held->kind == DrawKind::kGiven;
    contents.push_back(given ? *held
                             : SetContent{kp::mix64(state.seed + static_cast<std::uint64_t>(set)),
                                          DrawKind::kGiven});
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

Result<std::variant<LaunchPlan, Outcome>> CudaTrial::plan_of(const CudaCase& state,
                                                             const Binary& binary) {
  if (binary.form == Binary::Form::kPlanForm) return {binary.plan};
  if (const auto known = shop_.plans.find(binary.hash); known != shop_.plans.end()) {
    return {known->second};
  }
  const Lap lap(&capture_s_);
  std::optional<CudaLink> ready = std::exchange(shop_.capture, std::nullopt);
  Result<CudaLink> link = ready ? Result<CudaLink>(std::move(*ready))
                                : CudaLink::start("cuda-capture", shop_.settings.gpu, Queues::kOne);
  if (!link) return tl::unexpected<Error>(link.error());
  auto captured =
      capture_plan(std::move(*link), binary, "launch", state.layout, shop_.settings.timeout_s);
  if (captured && std::holds_alternative<LaunchPlan>(*captured)) {
    shop_.plans[binary.hash] = std::get<LaunchPlan>(*captured);
  }
  return captured;
}

CudaTrial::Verdict CudaTrial::load(CudaWorker& worker, const char* name, const CudaCase& state,
                                   const Binary& binary, std::map<std::string, double>* facts) {
  if (binary.form == Binary::Form::kModule) {
    kernels_.clear();
    return load_module(worker, state, shop_.task, shop_.settings.policy, name, binary,
                       kBuildTimeout, facts, facts != nullptr ? &correct_.notes : nullptr);
  }
  const Result<std::string> cubin = read_file(binary.cubin);
  if (!cubin) return tl::unexpected<Error>(cubin.error());
  if (const ForbiddenSymbol symbol = forbidden_symbol(*cubin); !symbol.rule.empty()) {
    return std::optional<Outcome>(Rejected{symbol.rule, symbol.reason});
  }
  auto plan = plan_of(state, binary);
  if (!plan) return tl::unexpected<Error>(plan.error());
  if (auto* outcome = std::get_if<Outcome>(&*plan)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  kernels_ = kernel_names(std::get<LaunchPlan>(*plan));
  if (facts != nullptr) {
    loaded_ = {&state, &binary, std::get<LaunchPlan>(*plan)};
  }
  return load_plan(worker, state, name, binary, std::get<LaunchPlan>(*plan), facts,
                   facts != nullptr ? &correct_.notes : nullptr);
}

CudaTrial::Verdict CudaTrial::run_on(const CudaCase& state, const SetKeys& steps) {
  // The first call runs alone, so that a hang is noticed after one call's time limit.
  SetKeys now = steps;
  if (call_s_ == 0 && !steps.empty()) {
    const double start = real_clock().now_s();
    if (auto outcome = run_sets(worker_, state, "candidate", {steps.front()}, timing_.timeout_s,
                                doing("checking", state))) {
      return outcome;
    }
    call_s_ = real_clock().now_s() - start;
    now.erase(now.begin());
  }
  if (now.empty()) return std::optional<Outcome>();
  const double limit =
      std::min(timing_.timeout_s, 2 + 20 * call_s_) * static_cast<double>(now.size());
  return run_sets(worker_, state, "candidate", now, limit, doing("checking", state));
}

// Poison, one call on each set with a freshly loaded module, comparison.
CudaTrial::Verdict CudaTrial::check_batch(CudaCase& state, const std::vector<int>& sets) {
  SetKeys keys;
  for (const int set : sets) keys.emplace_back(set, secret());
  KP_TRY(poison(shop_.judge, state, keys, true));
  Verdict ran = run_on(state, keys);
  if (!ran || *ran) return ran;
  auto wrong = verify(shop_.judge, state, sets, true, {}, &correct_.max_error);
  if (!wrong) return tl::unexpected<Error>(wrong.error());
  if (*wrong) return std::optional<Outcome>(std::move((*wrong)->outcome));
  return std::optional<Outcome>();
}

// Checks all contents in an order that the candidate cannot know, one of them twice: results cached
// from one call are wrong for the next, and gone with their module.
CudaTrial::Verdict CudaTrial::check(CudaCase& state) {
  const Lap lap(&check_s_);
  call_s_ = 0;
  const std::vector<SetContent> contents = check_contents(state, shop_.settings.policy);
  const std::vector<int> order = secret_order(static_cast<int>(contents.size()), secret());
  const auto rotation = static_cast<std::size_t>(state.plan.rotation);
  for (std::size_t first = 0; first < order.size(); first += rotation) {
    std::vector<int> sets;
    for (std::size_t k = first; k < std::min(order.size(), first + rotation); ++k) {
      // Each content has its own set if there are enough; otherwise they take turns.
      const int set = contents.size() <= rotation ? order[k] : static_cast<int>(k - first);
      const auto filled =
          shop_.reference.fill(state, set, contents[static_cast<std::size_t>(order[k])]);
      if (!filled) return tl::unexpected<Error>(filled.error());
      sets.push_back(set);
    }
    Verdict batch = check_batch(state, sets);
    if (!batch || *batch) return batch;
  }
  return check_batch(state, {static_cast<int>(secret() % rotation)});
}

// A kernel that is slower on unseen inputs cached results or got lucky: use the slower time.
CudaTrial::Verdict CudaTrial::audit(CudaCase& state, CudaTimed* timed) {
  if (shop_.settings.policy != Policy::kContract) return std::optional<Outcome>();
  if (state.reference_s > kSlowReference) {
    label("no-fresh-audit");
    return std::optional<Outcome>();
  }
  const Lap lap(&audit_s_);
  auto audited = audit_fresh(shop_.judge, shop_.reference, worker_, state, *timed, timing_,
                             secret(), &correct_.max_error);
  if (!audited) return tl::unexpected<Error>(audited.error());
  if (auto* outcome = std::get_if<Outcome>(&*audited)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  const Freshness& found = std::get<Freshness>(*audited);
  if (!found.slower) return std::optional<Outcome>();
  const std::string sentence = "a call takes " + human_us(found.fresh_us) + " on new inputs, but " +
                               human_us(found.known_us) + " on repeated ones (case " +
                               state.c->name + ")";
  return slower_counts(found.large ? "memoised" : "", sentence, found.fresh_us / found.known_us,
                       timed);
}

// A second measurement was slower than the first, by the factor `by`. A large difference breaks
// `rule`, unless other processes use the GPU: they may have slowed only the second one. Then, and
// without a rule, the slower time counts, so that causing load never pays.
CudaTrial::Verdict CudaTrial::slower_counts(const std::string& rule, const std::string& sentence,
                                            double by, CudaTimed* timed) {
  std::string why;
  if (!rule.empty()) {
    const int others = shop_.others();
    if (others == 0) return std::optional<Outcome>(Rejected{rule, sentence});
    why = ", since " + load_text(Load{.gpu_processes = static_cast<double>(others)});
  }
  slow_down(std::max(1.0, by), timed);
  correct_.notes.push_back(sentence + ": the slower time counts" + why);
  return std::optional<Outcome>();
}

// Times consecutive calls in a Python process, one on each of `sets`, by our clock; microseconds.
// Subject "" measures only the loop's overhead.
Result<std::variant<double, Outcome>> CudaTrial::loop(const CudaCase& state, const char* subject,
                                                      const std::vector<int>& sets,
                                                      double* submitted_us) {
  const double start = real_clock().now_s();
  const Answer answer = worker_.link.ask(
      {{"do", "loop"}, {"case", state.c->name}, {"subject", subject}, {"sets", sets}},
      timing_.timeout_s + 5);
  const double us = (real_clock().now_s() - start) * 1e6;
  using Looped = std::variant<double, Outcome>;
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr) {
    return Looped(worker_outcome(answer, doing("timing", state), state.c->name));
  }
  if (submitted_us != nullptr) *submitted_us = JsonReader(reply->json).real("submitted_us");
  return Looped(us);
}

// Runs before the process has any candidate code.
CudaTrial::Verdict CudaTrial::time_idle_loops() {
  for (const CudaCase& state : shop_.cases) {
    if (!state.c->timed) continue;
    std::vector<double> all;
    for (int k = 0; k < kIdleLoops; ++k) {
      auto looped = loop(state, "", secret_order(state.plan.rotation, secret()), nullptr);
      if (!looped) return tl::unexpected<Error>(looped.error());
      if (const auto* us = std::get_if<double>(&*looped)) {
        all.push_back(*us);
      } else if (!worker_.link.running()) {
        return std::optional<Outcome>(std::move(std::get<Outcome>(*looped)));
      }
    }
    idle_us_[&state] = median(all);  // 0 if the loop fails
  }
  return std::optional<Outcome>();
}

// A Python process holds both the candidate and the clock. Consecutive calls, on unseen contents
// and with compared results, must not take much longer than it reports for each. Calls that take
// Python long to submit do: the verdict notes that.
CudaTrial::Verdict CudaTrial::check_clock(CudaCase& state, CudaTimed* timed) {
  const double us = timed->timing.median_us;
  double least = INFINITY, submitted = 0;
  for (int attempt = 0; attempt < kLoopTries; ++attempt) {
    std::vector<int> sets = secret_order(state.plan.rotation, secret());
    const double affordable = kLoopSeconds / (us * 1e-6);
    sets.resize(
        static_cast<std::size_t>(std::clamp(affordable, 1.0, static_cast<double>(sets.size()))));
    const bool contract = shop_.settings.policy == Policy::kContract;
    int fresh = contract ? static_cast<int>(kLoopSeconds / std::max(state.reference_s, 1e-4)) : 0;
    SetKeys keys;
    for (const int set : sets) {
      keys.emplace_back(set, secret());
      if (fresh-- <= 0) continue;
      const auto filled = shop_.reference.fill(state, set, {secret(), DrawKind::kGiven});
      if (!filled) return tl::unexpected<Error>(filled.error());
    }
    KP_TRY(poison(shop_.judge, state, keys, true));
    double submitted_us = 0;
    auto looped = loop(state, "candidate", sets, &submitted_us);
    if (!looped) return tl::unexpected<Error>(looped.error());
    if (auto* outcome = std::get_if<Outcome>(&*looped)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    auto wrong = verify(shop_.judge, state, sets, true, {}, &correct_.max_error);
    if (!wrong) return tl::unexpected<Error>(wrong.error());
    if (*wrong) return std::optional<Outcome>(std::move((*wrong)->outcome));
    const double count = static_cast<double>(sets.size());
    const double idle = kLoopFactor * idle_us_[&state] / state.plan.rotation;
    const double each = std::get<double>(*looped) / count - idle;
    if (each < least) submitted = submitted_us;
    least = std::min(least, each);
    if (least <= kLoopFactor * us + kLoopSlackUs) return std::optional<Outcome>();
  }
  const std::string sentence = "its process reports " + human_us(us) +
                               " per call, but calls in a row take " + human_us(least) +
                               " each by the supervisor's clock";
  if (least > kLoopFactor * submitted + kLoopSlackUs) {
    return slower_counts("timing", sentence, least / us, timed);
  }
  label("host-bound");
  correct_.notes.push_back(sentence + ": submitting one takes Python " + human_us(submitted));
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::check_floors(CudaCase& state, const CudaTimed& timed) {
  const double us = timed.timing.median_us;
  if (us < physical_floor_us(state, shop_.machine)) {
    // A task that reads a slice or a triangle does not need all of its inputs.
    const auto shares = needed_shares(shop_.judge, shop_.reference, state, secret());
    if (!shares) return tl::unexpected<Error>(shares.error());
    if (const double floor = physical_floor_us(state, shop_.machine, *shares); us < floor) {
      return std::optional<Outcome>(
          Rejected{"physical-floor", "a time of " + human_us(us) + " in case " + state.c->name +
                                         " is below the least that moving the data takes, " +
                                         human_us(floor)});
    }
  }
  if (us >= measured_floor_us(shop_.task, state, shop_.machine)) return std::optional<Outcome>();
  label("above-measured-ceiling");
  return check(state);
}

// A brief call timed alone is timed in other processes too: per-process overhead differs by a
// percent and stays as long as the process lives.
CudaTrial::Verdict CudaTrial::time_elsewhere(CudaCase& state, CudaTimed* timed) {
  if (timed->timing.median_us >= kBriefUs || worker_.module || !shop_.another) {
    return std::optional<Outcome>();
  }
  std::vector<CudaTimed> all = {std::move(*timed)};
  while (std::optional<CudaWorker> worker = shop_.another()) {
    Verdict loaded = load(*worker, "candidate", state, *loaded_.binary, nullptr);
    if (!loaded || *loaded) return loaded;
    auto result =
        time_cuda_case(shop_.judge, *worker, nullptr, state, timing_, &correct_.max_error);
    shop_.retire(std::move(*worker));
    if (!result) return tl::unexpected<Error>(result.error());
    if (auto* outcome = std::get_if<Outcome>(&*result)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    all.push_back(std::move(std::get<CudaTimed>(*result)));
  }
  *timed = all.size() == 1 ? std::move(all.front()) : merge_processes(all);
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::time_case(CudaCase& state, const Binary* incumbent) {
  CudaWorker* against = nullptr;
  if (incumbent != nullptr && state.plan.rotation < 2) {
    correct_.notes.push_back("only one input set of case " + state.c->name +
                             " fits on the GPU: nothing could be timed in turn with it");
  } else if (incumbent != nullptr) {
    CudaWorker& worker = other_ != nullptr ? *other_ : worker_;
    const std::string mine = kernels_;
    const Verdict loaded = load(worker, "incumbent", state, *incumbent, nullptr);
    kernels_ = mine;
    if (!loaded) return loaded;
    if (!*loaded) {
      against = &worker;
    } else {  // its failure is not the candidate's fault
      correct_.notes.push_back("the kernel to compare it with: " + outcome_summary(**loaded));
    }
  }
  timing_.hint_us = call_s_ * 1e6;
  CudaTimed timed;
  {
    const Lap lap(&time_s_);
    auto result =
        time_cuda_case(shop_.judge, worker_, against, state, timing_, &correct_.max_error);
    if (!result) return tl::unexpected<Error>(result.error());
    if (auto* outcome = std::get_if<Outcome>(&*result)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    timed = std::move(std::get<CudaTimed>(*result));
    if (against == nullptr) {
      Verdict elsewhere = time_elsewhere(state, &timed);
      if (!elsewhere || *elsewhere) return elsewhere;
    }
  }
  const Result<bool> changed = forget_broken_sets(shop_.judge, state);
  if (!changed) return tl::unexpected<Error>(changed.error());
  if (*changed) {
    return std::optional<Outcome>(
        Rejected{"input-mutation", "an input was changed while calls were timed"});
  }
  Verdict fresh = audit(state, &timed);
  if (!fresh || *fresh) return fresh;
  if (worker_.module) {
    Verdict clock = check_clock(state, &timed);
    if (!clock || *clock) return clock;
  }
  Verdict floors = check_floors(state, timed);
  if (!floors || *floors) return floors;
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
  if (state.c->timed) correct_.observed.insert(facts.begin(), facts.end());
  if (!loaded || *loaded) return loaded;
  Verdict checked = check(state);
  if (!checked || *checked || !state.c->timed || !shop_.settings.timing) return checked;
  return time_case(state, incumbent != nullptr ? &incumbent->binaries[i] : nullptr);
}

// A kernel that takes another path for these values effectively runs a different kernel.
CudaTrial::Verdict CudaTrial::compare_times(CudaCase& state, int set, DrawKind kind) {
  if (set == 0 || !shop_.settings.timing) return std::optional<Outcome>();
  const SetContent given = check_contents(state, shop_.settings.policy).front();
  const auto filled = shop_.reference.fill(state, 0, given);
  if (!filled) return tl::unexpected<Error>(filled.error());
  std::vector<int> steps;
  const double affordable = kValuesSeconds / std::max(call_s_, 1e-6);
  const int calls = static_cast<int>(std::clamp(affordable, 1.0, kValuesCalls));
  for (int k = 0; k < calls; ++k) steps.insert(steps.end(), {0, set});
  double ignored = 0;
  auto once = time_once(shop_.judge, worker_, state, steps, 0, timing_, secret(), &ignored);
  if (!once) return tl::unexpected<Error>(once.error());
  if (auto* outcome = std::get_if<Outcome>(&*once)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  const std::vector<double>& us = std::get<std::vector<double>>(*once);
  std::vector<double> mine, others;
  for (std::size_t k = 0; k < us.size(); ++k) (k % 2 == 0 ? mine : others).push_back(us[k]);
  const double a = median(mine), b = median(others);
  if (std::max(a, b) <= kValuesFactor * std::min(a, b) + kValuesSlackUs) {
    return std::optional<Outcome>();
  }
  label("time-depends-on-values");
  correct_.notes.push_back("a call takes " + human_us(b) + " " + probe_words(kind) + ", but " +
                           human_us(a) + " on the task's own (case " + state.c->name + ")");
  return std::optional<Outcome>();
}

// Other values of the same shapes, once each: does the kernel compute the task? Runs last, because
// a kernel may crash here and still be right on the task's inputs.
CudaTrial::Verdict CudaTrial::probe(CudaCase& state) {
  const Lap lap(&probe_s_);
  std::vector<ProbeFailure> failures;
  int number = 0;
  for (const ProbePlan& plan : plan_probes(shop_.task)) {
    const int set = state.probe_set(number++);
    const SetContent content{kp::mix64(state.seed ^ (0xabcdull + static_cast<unsigned>(number))),
                             plan.kind};
    const auto filled = shop_.reference.fill(state, set, content);
    // If the reference cannot take these values, the probe is inconclusive.
    if (!filled && filled.error().kind == ErrorKind::kTask) continue;
    if (!filled) return tl::unexpected<Error>(filled.error());
    if (!filled->changed || !filled->usable) continue;
    const SetKeys keys = {{set, secret()}};
    KP_TRY(poison(shop_.judge, state, keys, true));
    Verdict ran = run_on(state, keys);
    if (!ran) return ran;
    if (*ran) {
      if (perhaps_killed(**ran)) return ran;
      failures.push_back(probe_failure(plan.kind, state.c->name, **ran, state.tensors));
      if (!worker_.link.running() || std::holds_alternative<Crashed>(**ran)) break;
      continue;
    }
    double ignored = 0;
    const auto wrong = verify(shop_.judge, state, {set}, true, {}, &ignored);
    if (!wrong) return tl::unexpected<Error>(wrong.error());
    if (*wrong) {
      failures.push_back(probe_failure(plan.kind, state.c->name, (*wrong)->outcome, state.tensors));
    } else if (plan.kind == DrawKind::kCentred || plan.kind == DrawKind::kLowBits) {
      Verdict timed = compare_times(state, set, plan.kind);
      if (!timed || *timed) return timed;
    }
  }
  ProbeVerdict verdict = judge_probes(shop_.task.precision, failures);
  if (verdict.rejected) return std::optional<Outcome>(std::move(*verdict.rejected));
  for (const std::string& name : verdict.labels) label(name);
  for (std::string& note : verdict.notes) correct_.notes.push_back(std::move(note));
  return std::optional<Outcome>();
}

// A crash on the GPU has little detail: compute-sanitizer, where available, adds the thread, the
// access and the source line.
Outcome CudaTrial::explained(Outcome outcome) const {
  auto* crash = std::get_if<Crashed>(&outcome);
  if (crash == nullptr || loaded_.state == nullptr ||
      crash->reason.find("CUDA_ERROR") == std::string::npos ||
      // A block that does not fit never ran: there is no access to find.
      crash->reason.find("OUT_OF_RESOURCES") != std::string::npos) {
    return outcome;
  }
  const std::string sentence =
      sanitize(*loaded_.binary, loaded_.plan, loaded_.state->layout, loaded_.state->judged,
               shop_.settings.seed, kSanitizeTimeout, shop_.settings.gpu);
  if (!sentence.empty()) crash->reason += "; " + sentence;
  return outcome;
}

Result<Outcome> CudaTrial::run(const Subject& subject, const Subject* incumbent) {
  if (worker_.module && shop_.settings.timing) {
    Verdict idle = time_idle_loops();
    if (!idle) return tl::unexpected<Error>(idle.error());
    if (*idle) return std::move(**idle);
  }
  for (std::size_t i = 0; i < shop_.cases.size(); ++i) {
    Verdict verdict = run_case(i, subject, incumbent);
    if (!verdict) return tl::unexpected<Error>(verdict.error());
    if (*verdict) return explained(std::move(**verdict));
  }
  if (shop_.settings.probes && shop_.settings.policy == Policy::kContract) {
    const auto smallest = std::min_element(shop_.cases.begin(), shop_.cases.end(),
                                           [&](const CudaCase& a, const CudaCase& b) {
                                             return a.plan.held / a.sets() < b.plan.held / b.sets();
                                           });
    Verdict verdict = probe(*smallest);
    if (!verdict) return tl::unexpected<Error>(verdict.error());
    if (*verdict) return std::move(**verdict);
  }
  if (!ratios_.empty()) correct_.versus = combine(incumbent->hash, ratios_);
  const std::pair<const char*, double> phases[] = {{"evaluate.capture_ms", capture_s_},
                                                   {"evaluate.check_ms", check_s_},
                                                   {"evaluate.time_ms", time_s_},
                                                   {"evaluate.audit_ms", audit_s_},
                                                   {"evaluate.probe_ms", probe_s_}};
  for (const auto& [name, seconds] : phases) correct_.observed[name] = seconds * 1e3;
  return Outcome(std::move(correct_));
}

}  // namespace kernelpro
