// SPDX-License-Identifier: Apache-2.0
// The evaluator of the cpu target: who is checked when, and what comes of it. Buffers, inputs and
// references are cpu_case.h's, processes cpu_session.h's, the contest cpu_timing.h's.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "base/worker_path.h"
#include "core/inputs.h"
#include "device/cpu.h"
#include "evaluate/cpu_case.h"
#include "evaluate/cpu_session.h"
#include "evaluate/cpu_timing.h"
#include "evaluate/evaluator.h"

namespace kernelpro {

namespace {

class CpuEvaluator : public Evaluator {
 public:
  CpuEvaluator(const Task& task, Compiler& compiler, const EvaluateSettings& settings,
               std::string worker)
      : task_(task), compiler_(compiler), settings_(settings), worker_(std::move(worker)) {}

  Result<void> prepare() override;
  Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) override {
    TimingPlan plan;
    plan.max_pairs = std::max(4, settings_.samples);
    plan.budget_s = incumbent != nullptr ? 1.0 : 0.5;
    return judge(subject, incumbent, plan);
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) override {
    TimingPlan plan;
    plan.max_pairs = std::max(8, 2 * settings_.samples);
    plan.budget_s = 2.5;
    plan.enough_pairs = 15;
    plan.hard_budget_s = 25;
    plan.stop_early = false;
    return judge(subject, &incumbent, plan);
  }

 private:
  using Session = std::unique_ptr<CpuSession>;

  Result<Evaluation> judge(const Subject& subject, const Subject* incumbent, TimingPlan plan);
  Result<Outcome> run_all(const Subject& subject, const Subject* incumbent, const TimingPlan& plan);
  Result<std::optional<Outcome>> run_case(std::size_t i, const Subject& subject,
                                          const Subject* incumbent, const TimingPlan& plan,
                                          Correct* correct, std::vector<Interval>* ratios);
  std::optional<Outcome> check(const CpuCase& state, CpuSession& session, double* max_error);
  Result<CpuSession::Started> start(const CpuCase& state, const Binary& binary);

  const Task& task_;
  Compiler& compiler_;
  EvaluateSettings settings_;
  std::string worker_;
  std::vector<CpuCase> cases_;
  std::uint64_t round_ = 0;  // of evaluations: nothing repeats from one to the next
};

Result<void> CpuEvaluator::prepare() {
  const std::vector<const Case*> cases = cases_for(task_, TargetKind::kCpu);
  if (cases.empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " has no case for the cpu target",
                "add a case to task.toml that names the cpu target");
  }
  if (task_.reference_cpp.empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " has no reference.cpp",
                "add one: the cpu target compares with it");
  }
  std::int64_t needed = 0;
  for (const Case* c : cases) needed += case_memory_bytes(task_, *c);
  if (const std::int64_t available = available_memory_bytes(); needed > available / 10 * 9) {
    return fail(ErrorKind::kEnvironment,
                "the cases of " + task_.name + " need " + human_bytes(static_cast<double>(needed)) +
                    " of memory, and this machine has " +
                    human_bytes(static_cast<double>(available)) + " available",
                "make the cases smaller or free some memory");
  }
  cases_.clear();
  for (const Case* c : cases) {
    CompileResult built = compiler_.compile_reference(task_, *c);
    if (!built) return tl::unexpected<Error>(built.error());
    if (const auto* error = std::get_if<CompileError>(&*built)) {
      return fail(ErrorKind::kTask,
                  "the reference does not compile for case " + c->name + ":\n" + error->log,
                  "correct the task's reference.cpp");
    }
    const std::uint64_t seed = kp::mix64(settings_.seed ^ (cases_.size() * 0x51ed27f5ull));
    Result<CpuCase> state = make_cpu_case(task_, *c, std::get<Binary>(*built), worker_, seed,
                                          std::max(settings_.timeout_s, 1.0));
    if (!state) return tl::unexpected<Error>(state.error());
    cases_.push_back(std::move(*state));
  }
  if (const std::string problem = degenerate_output(cases_); !problem.empty()) {
    return fail(ErrorKind::kTask, "the task " + task_.name + " is degenerate: " + problem,
                "correct the reference, or draw inputs that matter to the result");
  }
  return {};
}

Result<CpuSession::Started> CpuEvaluator::start(const CpuCase& state, const Binary& binary) {
  SessionSettings settings;
  settings.worker = worker_;
  settings.load_timeout_s = std::max(settings_.timeout_s, 1.0);
  return CpuSession::start(settings, binary, state.tensors, state.buffers,
                           "loading for case " + state.c->name);
}

// Every checked set, in an order that the candidate cannot know, the last of them twice as often.
std::optional<Outcome> CpuEvaluator::check(const CpuCase& state, CpuSession& session,
                                           double* max_error) {
  std::uint64_t random = kp::mix64(settings_.seed + 31 * round_);
  std::size_t order[kCheckedSets + 1];
  for (std::size_t k = 0; k < kCheckedSets; ++k) order[k] = k;
  for (std::size_t k = kCheckedSets; k-- > 1;) {
    random = kp::mix64(random + k);
    std::swap(order[k], order[random % (k + 1)]);
  }
  order[kCheckedSets] = order[0];
  // A third call only where it costs little.
  std::size_t calls = kCheckedSets;
  const std::string phase = "checking case " + state.c->name;
  const double start = real_clock().now_s();
  for (std::size_t k = 0; k < calls; ++k) {
    const InputSet& set = state.sets[order[k]];
    load_inputs(state, set);
    std::vector<Poison> poisons;
    poison_outputs(state, random + 7 * k, &poisons);
    const auto called = session.call({0, 1}, settings_.timeout_s, phase);
    if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
    if (auto outcome = judge_outputs(state, set, poisons, max_error)) return outcome;
    if (k == 1 && real_clock().now_s() - start < 0.01) calls = kCheckedSets + 1;
  }
  return std::nullopt;
}

Result<std::optional<Outcome>> CpuEvaluator::run_case(std::size_t i, const Subject& subject,
                                                      const Subject* incumbent,
                                                      const TimingPlan& plan, Correct* correct,
                                                      std::vector<Interval>* ratios) {
  CpuCase& state = cases_[i];
  state.buffers.set_canaries();
  Result<CpuSession::Started> started = start(state, subject.binaries[i]);
  if (!started) return tl::unexpected<Error>(started.error());
  if (Outcome* outcome = std::get_if<Outcome>(&*started)) return std::optional<Outcome>(*outcome);
  CpuSession& session = *std::get<Session>(*started);
  if (auto outcome = check(state, session, &correct->max_error)) return outcome;
  if (!state.c->timed) return std::optional<Outcome>();

  Session other;
  if (incumbent != nullptr) {
    Result<CpuSession::Started> second = start(state, incumbent->binaries[i]);
    if (!second) return tl::unexpected<Error>(second.error());
    if (Session* running = std::get_if<Session>(&*second)) other = std::move(*running);
  }
  std::variant<Timed, Outcome> timed = time_case(state, session, other.get(), plan);
  if (Outcome* outcome = std::get_if<Outcome>(&timed)) return std::optional<Outcome>(*outcome);
  const Timed& t = std::get<Timed>(timed);
  correct->timings.push_back(t.timing);
  correct->max_error = std::max(correct->max_error, t.max_error);
  if (t.ratio) ratios->push_back(*t.ratio);
  // What was seen in the timed case that takes longest stands for all.
  const bool longest =
      std::all_of(correct->timings.begin(), correct->timings.end(),
                  [&](const Timing& timing) { return timing.median_us <= t.timing.median_us; });
  if (longest) correct->observed = t.observed;
  return std::optional<Outcome>();
}

Result<Outcome> CpuEvaluator::run_all(const Subject& subject, const Subject* incumbent,
                                      const TimingPlan& plan) {
  Correct correct;
  std::vector<Interval> ratios;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    Result<std::optional<Outcome>> outcome =
        run_case(i, subject, incumbent, plan, &correct, &ratios);
    if (!outcome) return tl::unexpected<Error>(outcome.error());
    if (*outcome) return **outcome;
  }
  if (!ratios.empty() && ratios.size() == correct.timings.size()) {
    std::vector<double> low, mid, high;
    for (const Interval& r : ratios) {
      low.push_back(r.low);
      mid.push_back(r.mid);
      high.push_back(r.high);
    }
    correct.versus = Correct::Versus{incumbent->hash, geometric_mean(mid), geometric_mean(low),
                                     geometric_mean(high)};
  }
  return Outcome(std::move(correct));
}

Result<Evaluation> CpuEvaluator::judge(const Subject& subject, const Subject* incumbent,
                                       TimingPlan plan) {
  KP_ASSERT(!cases_.empty() && subject.binaries.size() == cases_.size());
  KP_ASSERT(incumbent == nullptr || incumbent->binaries.size() == cases_.size());
  ++round_;
  plan.timeout_s = settings_.timeout_s;
  plan.min_effect = settings_.min_effect;
  plan.seed = kp::mix64(settings_.seed + 977 * round_);
  const double start = real_clock().now_s();
  Result<Outcome> outcome = run_all(subject, incumbent, plan);
  if (!outcome) return tl::unexpected<Error>(outcome.error());
  Evaluation evaluation;
  evaluation.outcome = std::move(*outcome);
  for (const Binary& binary : subject.binaries) evaluation.compile_ms += binary.compile_ms;
  evaluation.run_ms = (real_clock().now_s() - start) * 1e3;
  evaluation.trust = "in-process";
  return evaluation;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const Task& task, Compiler& compiler,
                                                      const Machine&,
                                                      const EvaluateSettings& settings) {
  Result<std::string> worker = worker_path();
  if (!worker) return tl::unexpected<Error>(worker.error());
  return std::unique_ptr<Evaluator>(
      std::make_unique<CpuEvaluator>(task, compiler, settings, std::move(*worker)));
}

}  // namespace kernelpro
