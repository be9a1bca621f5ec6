// SPDX-License-Identifier: Apache-2.0
// The evaluator of the cpu target: the order of checks and their consequences. Inputs and
// references are in reference.h, buffers in case.h, processes in session.h, the contest in
// timing.h.
#include "measure/cpu/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "machine/cpu.h"
#include "measure/cpu/case.h"
#include "measure/cpu/session.h"
#include "measure/cpu/timing.h"

namespace kernelpro {

namespace {

class CpuEvaluator : public Evaluator {
 public:
  CpuEvaluator(const Task& task, const EvaluateSettings& settings, std::string worker)
      : task_(task), settings_(settings), worker_(std::move(worker)) {}

  Result<void> prepare(const References& references) override;
  Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) override {
    TimingPlan plan;
    plan.max_pairs = std::max(4, settings_.samples);
    plan.budget_s = incumbent != nullptr ? 1.0 : 0.5;
    most_probes_ = settings_.probes_each;
    return judge(subject, incumbent, plan);
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) override {
    TimingPlan plan;
    plan.max_pairs = std::max(8, 2 * settings_.samples);
    plan.budget_s = 2.5;
    plan.enough_pairs = 15;
    plan.hard_budget_s = 25;
    plan.stop_early = false;
    most_probes_ = 0;
    return judge(subject, &incumbent, plan);
  }
  std::vector<std::string> task_labels() const override { return labels_; }

 private:
  using Session = std::unique_ptr<CpuSession>;
  using Verdict = Result<std::optional<Outcome>>;  // nullopt: no fault so far

  // `reference`: null for a Module's.
  Result<CpuCase> prepare_case(const Case& c, const Binary* reference);
  Result<Evaluation> judge(const Subject& subject, const Subject* incumbent, TimingPlan plan);
  Result<Outcome> run_all(const Subject& subject, const Subject* incumbent, const TimingPlan& plan);
  Verdict run_case(std::size_t i, const Subject& subject, const Subject* incumbent,
                   const TimingPlan& plan, Correct* correct, std::vector<Interval>* ratios);
  std::optional<Outcome> check(const CpuCase& state, CpuSession& session, Correct* correct);
  std::vector<std::size_t> choose(const CpuCase& state) const;
  Verdict probe(const CpuCase& state, CpuSession& session, const std::vector<std::size_t>& kinds,
                Correct* correct, std::vector<const ProbeSet*>* passed);
  Verdict probe_others(std::size_t i, const Subject& subject, Correct* correct);
  static void add_slower(const CpuCase& state, const std::vector<ValueTimes::Slower>& slower,
                         Correct* correct);
  std::optional<Outcome> take_failures(const std::vector<ProbeFailure>& failures,
                                       const std::vector<NormError>& norms, Correct* correct);
  // A stopped worker.
  Result<CpuSession::Started> start(const CpuCase& state, const Binary& binary,
                                    std::shared_ptr<Patience> patience = nullptr);

  const Task& task_;
  EvaluateSettings settings_;
  std::string worker_;
  std::vector<CpuCase> cases_;
  std::vector<std::string> labels_;  // of the task
  int most_probes_ = 0;              // of the current evaluation; 0: all
  double call_s_ = 0;                // the longest checked call of the current case
  bool leads_ = false;               // the kinds that were left out are met now
  struct Met {
    std::vector<std::size_t> kinds;
    double call_s = 0;
    std::shared_ptr<Patience> patience;
  };
  // By case: the candidate's probes, its longest checked call, and what it has wasted.
  std::vector<Met> met_;
};

constexpr double kPatienceLimits = 2;  // of one call: what a case's may waste together
constexpr int kUntimedProbes = 2;      // kinds for each case that is not timed, in a search
constexpr double kProbeS = 2;          // a call on a probe may take this long ...
constexpr double kProbeCalls = 100;    // ... and as many calls on the task's own inputs

// Where a call finds its tensors must not tell whether it is timed.
int any_slot(const CpuCase& state) {
  return static_cast<int>(fresh_secret() % static_cast<std::uint64_t>(state.slots));
}

void add_once(std::vector<std::string>* all, const std::string& text) {
  if (std::find(all->begin(), all->end(), text) == all->end()) all->push_back(text);
}

Result<void> CpuEvaluator::prepare(const References& references) {
  const std::vector<const Case*> cases = cases_for(task_, TargetKind::kCpu);
  if (cases.empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " has no case for the cpu target",
                "add a case to task.toml that names the cpu target");
  }
  if (task_.module && settings_.module == nullptr) {
    return fail(ErrorKind::kEnvironment, "the task " + task_.name + " needs PyTorch",
                "install it: `kernelpro doctor` shows how");
  }
  if (!task_.module && task_.reference_cpp.empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " has no reference.cpp",
                "add one: the cpu target checks candidates against it");
  }
  std::int64_t needed = 0;
  for (const Case* c : cases) needed += case_memory_bytes(task_, *c);
  if (const std::int64_t available = available_memory_bytes(); needed > available / 10 * 9) {
    return fail(ErrorKind::kEnvironment,
                "the cases of " + task_.name + " need " + human_bytes(static_cast<double>(needed)) +
                    " of memory, but this machine has " +
                    human_bytes(static_cast<double>(available)) + " available",
                "make the cases smaller or free some memory");
  }
  KP_ASSERT(task_.module || references.binaries.size() == cases.size());
  cases_.clear();
  labels_.clear();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    KP_ASSIGN(CpuCase state,
              prepare_case(*cases[i], task_.module ? nullptr : &references.binaries[i]));
    for (const std::string& label : state.labels) add_once(&labels_, label);
    cases_.push_back(std::move(state));
  }
  if (const std::string problem = degenerate_output(cases_); !problem.empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " is degenerate: " + problem,
                "correct the reference, or draw inputs that matter to the result");
  }
  return {};
}

Result<CpuCase> CpuEvaluator::prepare_case(const Case& c, const Binary* reference) {
  CpuReferenceSettings from;
  from.policy = settings_.policy;
  from.worker = worker_;
  from.timeout_s = std::max(settings_.timeout_s, 1.0);
  KP_ASSIGN(std::unique_ptr<CpuReference> source,
            reference == nullptr ? make_module_reference(task_, c, *settings_.module, from)
                                 : make_native_reference(task_, c, *reference, from));
  CpuCaseSettings settings;
  settings.policy = settings_.policy;
  settings.probes = settings_.probes;
  return make_cpu_case(task_, c, *source, settings);
}

Result<CpuSession::Started> CpuEvaluator::start(const CpuCase& state, const Binary& binary,
                                                std::shared_ptr<Patience> patience) {
  SessionSettings settings;
  settings.worker = worker_;
  settings.load_timeout_s = std::max(settings_.timeout_s, 1.0);
  settings.patience = std::move(patience);
  const bool kernel = !binary.shared_object.empty();
  KP_ASSIGN(CpuBuffers memory, kernel ? make_buffers(state) : make_small_buffers(state));
  KP_ASSIGN(CpuSession::Started started,
            CpuSession::start(settings, binary, state.tensors, std::move(memory),
                              "loading for case " + state.c->name));
  if (const Session* session = std::get_if<Session>(&started)) (*session)->pause();
  return started;
}

// Checks several sets (under KernelBench rules, all) in an order that the candidate cannot know,
// repeating the first.
std::optional<Outcome> CpuEvaluator::check(const CpuCase& state, CpuSession& session,
                                           Correct* correct) {
  std::vector<NormError> norms;
  const std::size_t checked =
      settings_.policy == Policy::kKernelBench ? state.sets.size() : kCheckedSets;
  std::vector<std::size_t> order;
  // The first two are the task's own, whatever else varies.
  for (std::size_t k = 0; k < checked; ++k) {
    const std::size_t rest = state.sets.size() - 2;
    order.push_back(k < 2 || checked == state.sets.size() ? k : 2 + fresh_secret() % rest);
  }
  for (std::size_t k = order.size(); k-- > 1;) std::swap(order[k], order[fresh_secret() % (k + 1)]);
  order.push_back(order.front());
  const std::string phase = "checking case " + state.c->name;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const InputSet& set = state.sets[order[k]];
    const CpuBuffers& buffers = session.buffers();
    const int slot = any_slot(state);
    const std::vector<Poison> poisons = reveal(state, buffers, slot, set);
    session.begin_turn();
    const double start = real_clock().now_s();
    const auto called = session.timed_call({slot, 1, 1, 0}, settings_.timeout_s, phase);
    call_s_ = std::max(k == 0 ? 0 : call_s_, real_clock().now_s() - start);
    if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
    if (auto outcome = judge_memory(state, buffers)) return outcome;
    if (auto outcome = judge_outputs(state, buffers, slot, set, poisons, &correct->max_error)) {
      return outcome;
    }
    add_deviations(state, buffers, slot, set, DrawKind::kGiven, &norms);
  }
  return take_failures({}, norms, correct);
}

std::vector<std::size_t> CpuEvaluator::choose(const CpuCase& state) const {
  const std::vector<char> ready(state.probes.size(), 1);
  const int most = state.c->timed ? most_probes_ : std::min(most_probes_, kUntimedProbes);
  return choose_probes(ready, most, fresh_secret());
}

// A probe that ends the process is the last one: each that hangs costs as long as a call may take.
CpuEvaluator::Verdict CpuEvaluator::probe(const CpuCase& state, CpuSession& session,
                                          const std::vector<std::size_t>& kinds, Correct* correct,
                                          std::vector<const ProbeSet*>* passed) {
  std::vector<ProbeFailure> failures;
  std::vector<NormError> norms;
  const double limit = std::min(settings_.timeout_s, kProbeS + kProbeCalls * call_s_);
  const CpuBuffers& buffers = session.buffers();
  for (const std::size_t chosen : kinds) {
    const ProbeSet& each = state.probes[chosen];
    const int slot = any_slot(state);
    const std::vector<Poison> poisons = reveal(state, buffers, slot, each.set);
    session.begin_turn();
    const auto called = session.timed_call(
        {slot, 1, 1, 0}, limit, "checking case " + state.c->name + " " + probe_words(each.kind),
        CpuSession::Values::kProbe);
    if (const Outcome* ended = std::get_if<Outcome>(&called)) {
      if (perhaps_killed(*ended) || session.out_of_patience())
        return std::optional<Outcome>(*ended);
      failures.push_back(probe_failure(each.kind, state.c->name, *ended, state.tensors));
      break;
    }
    if (auto stray = judge_memory(state, buffers)) return stray;
    double error = 0;
    if (auto outcome = judge_outputs(state, buffers, slot, each.set, poisons, &error)) {
      failures.push_back(probe_failure(each.kind, state.c->name, *outcome, state.tensors));
      if (leads_) break;  // one failure is enough for it not to lead
      continue;
    }
    add_deviations(state, buffers, slot, each.set, each.kind, &norms);
    passed->push_back(&each);
  }
  return take_failures(failures, norms, correct);
}

// The kinds that were left out, in a process of their own.
CpuEvaluator::Verdict CpuEvaluator::probe_others(std::size_t i, const Subject& subject,
                                                 Correct* correct) {
  const CpuCase& state = cases_[i];
  std::vector<std::size_t> others =
      choose_probes(std::vector<char>(state.probes.size(), 1), 0, fresh_secret());
  std::erase_if(others, [&](std::size_t kind) {
    return std::ranges::find(met_[i].kinds, kind) != met_[i].kinds.end();
  });
  if (others.empty()) return std::optional<Outcome>();
  call_s_ = met_[i].call_s;
  KP_ASSIGN(CpuSession::Started started, start(state, subject.binaries[i], met_[i].patience));
  if (Outcome* outcome = std::get_if<Outcome>(&started)) return std::optional<Outcome>(*outcome);
  std::vector<const ProbeSet*> ignored;
  return probe(state, *std::get<Session>(started), others, correct, &ignored);
}

// Rejects, or labels.
std::optional<Outcome> CpuEvaluator::take_failures(const std::vector<ProbeFailure>& failures,
                                                   const std::vector<NormError>& norms,
                                                   Correct* correct) {
  ProbeVerdict verdict = judge_probes(task_.precision, failures, norms);
  if (verdict.rejected) return *verdict.rejected;
  for (std::size_t k = 0; k < verdict.labels.size(); ++k) {
    const auto& labels = correct->labels;
    if (std::find(labels.begin(), labels.end(), verdict.labels[k]) != labels.end()) continue;
    correct->labels.push_back(verdict.labels[k]);
    correct->notes.push_back(verdict.notes[k]);
  }
  return std::nullopt;
}

// A kernel that takes another path for these values effectively runs a different kernel.
void CpuEvaluator::add_slower(const CpuCase& state, const std::vector<ValueTimes::Slower>& slower,
                              Correct* correct) {
  if (slower.empty()) return;
  const std::string label(label_name(Label::kTimeDependsOnValues));
  auto& labels = correct->labels;
  if (std::find(labels.begin(), labels.end(), label) != labels.end()) return;
  labels.push_back(label);
  correct->notes.push_back("a call takes " + human_us(slower[0].probe_us) + " " +
                           probe_words(slower[0].kind) + ", but " + human_us(slower[0].given_us) +
                           " on the task's own (case " + state.c->name + ")");
}

CpuEvaluator::Verdict CpuEvaluator::run_case(std::size_t i, const Subject& subject,
                                             const Subject* incumbent, const TimingPlan& common,
                                             Correct* correct, std::vector<Interval>* ratios) {
  TimingPlan plan = common;
  const CpuCase& state = cases_[i];
  plan.compares_values = state.linear;
  const double begun = real_clock().now_s();
  const auto patience = std::make_shared<Patience>();
  patience->limit_s = kPatienceLimits * settings_.timeout_s;
  KP_ASSIGN(CpuSession::Started started, start(state, subject.binaries[i], patience));
  if (Outcome* outcome = std::get_if<Outcome>(&started)) return std::optional<Outcome>(*outcome);
  Session session = std::move(std::get<Session>(started));
  if (auto outcome = check(state, *session, correct)) return outcome;
  met_.push_back({choose(state), call_s_, patience});
  Verdict probed = probe(state, *session, met_.back().kinds, correct, &plan.probes);
  session.reset();
  if (!probed || *probed) return probed;
  const double checked = real_clock().now_s();
  std::map<std::string, double>& observed = correct->observed;
  observed["evaluate.check_ms"] += (checked - begun) * 1e3;
  if (!state.c->timed || !settings_.timing) return std::optional<Outcome>();

  auto timed = time_case(
      state,
      [&](const Binary& binary) {
        return start(state, binary, &binary == &subject.binaries[i] ? patience : nullptr);
      },
      subject.binaries[i], incumbent != nullptr ? &incumbent->binaries[i] : nullptr, plan);
  if (!timed) return tl::unexpected<Error>(timed.error());
  if (Outcome* outcome = std::get_if<Outcome>(&*timed)) return std::optional<Outcome>(*outcome);
  const Timed& t = std::get<Timed>(*timed);
  if (auto outcome = take_failures(t.failures, t.norms, correct)) return outcome;
  correct->timings.push_back(t.timing);
  correct->max_error = std::max(correct->max_error, t.max_error);
  if (t.ratio) ratios->push_back(*t.ratio);
  add_slower(state, t.slower, correct);
  if (!t.note.empty()) add_once(&correct->notes, t.note);
  observed["evaluate.time_ms"] += (real_clock().now_s() - checked) * 1e3;
  // Observations from the longest timed case stand for all.
  const bool longest =
      std::all_of(correct->timings.begin(), correct->timings.end(),
                  [&](const Timing& timing) { return timing.median_us <= t.timing.median_us; });
  if (longest) {
    for (const auto& [name, value] : t.observed) observed[name] = value;
  }
  return std::optional<Outcome>();
}

Result<Outcome> CpuEvaluator::run_all(const Subject& subject, const Subject* incumbent,
                                      const TimingPlan& plan) {
  Correct correct;
  correct.labels = labels_;
  std::vector<Interval> ratios;
  met_.clear();
  leads_ = false;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    KP_ASSIGN(auto outcome, run_case(i, subject, incumbent, plan, &correct, &ratios));
    if (outcome) return *outcome;
  }
  if (!ratios.empty() && ratios.size() == correct.timings.size()) {
    const Interval all = mean_ratio(ratios);
    correct.versus = Correct::Versus{incumbent->hash, all.mid, all.low, all.high};
    // It would become the best, and others would be built on it.
    leads_ = all.low > 1 + settings_.min_effect;
    for (std::size_t i = 0; leads_ && !is_partial(correct, {}) && i < cases_.size(); ++i) {
      KP_ASSIGN(auto outcome, probe_others(i, subject, &correct));
      if (outcome) return *outcome;
    }
  }
  return Outcome(std::move(correct));
}

Result<Evaluation> CpuEvaluator::judge(const Subject& subject, const Subject* incumbent,
                                       TimingPlan plan) {
  KP_ASSERT(!cases_.empty() && subject.binaries.size() == cases_.size());
  KP_ASSERT(incumbent == nullptr || incumbent->binaries.size() == cases_.size());
  for (const Subject* each : {&subject, incumbent}) {
    if (each == nullptr || each->binaries[0].form != Binary::Form::kModule) continue;
    return fail(ErrorKind::kBadInput, "PyTorch candidates do not run on the cpu target",
                "run it on the cuda target, or write the kernel in C++");
  }
  const auto timed = std::count_if(cases_.begin(), cases_.end(),
                                   [](const CpuCase& state) { return state.c->timed; });
  plan.timeout_s = settings_.timeout_s;
  plan.min_effect = settings_.min_effect;
  plan.alpha = settings_.alpha / static_cast<double>(std::max<std::ptrdiff_t>(timed, 1));
  const double start = real_clock().now_s();
  KP_ASSIGN(Outcome outcome, run_all(subject, incumbent, plan));
  Evaluation evaluation;
  evaluation.outcome = std::move(outcome);
  for (const Binary& binary : subject.binaries) evaluation.compile_ms += binary.compile_ms;
  evaluation.run_ms = (real_clock().now_s() - start) * 1e3;
  evaluation.trust = trust_name(Trust::kInProcess);
  return evaluation;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const Task& task, const Machine&,
                                                      const EvaluateSettings& settings) {
  KP_ASSIGN(std::string worker, worker_path());
  return std::unique_ptr<Evaluator>(
      std::make_unique<CpuEvaluator>(task, settings, std::move(worker)));
}

}  // namespace kernelpro
