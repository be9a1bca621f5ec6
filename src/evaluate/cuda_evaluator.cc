// SPDX-License-Identifier: Apache-2.0
// The evaluator of the cuda target: the judge process holds buffers and expected results for the
// whole run, each candidate gets a worker process of its own, and host-form candidates are turned
// into launch plans by a capture process. docs/launch-plan.md tells who trusts whom.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "base/worker_path.h"
#include "core/inputs.h"
#include "core/mismatch.h"
#include "evaluate/cpu_case.h"
#include "evaluate/cuda_case.h"
#include "evaluate/cuda_timing.h"
#include "evaluate/evaluator.h"

namespace kernelpro {

namespace {

constexpr double kWorkerTimeout = 60;  // for what runs nothing of the candidate's

// Geometric mean over the timed cases, ends included.
Correct::Versus combine(const std::string& incumbent, const std::vector<Interval>& ratios) {
  std::vector<double> low, mid, high;
  for (const Interval& r : ratios) {
    low.push_back(r.low);
    mid.push_back(r.mid);
    high.push_back(r.high);
  }
  return {incumbent, geometric_mean(mid), geometric_mean(low), geometric_mean(high)};
}

// Where the GPU reference's result is out of tolerance of the CPU reference's, or "".
std::string disagreement(const Shaped& output, const Expected& host, const std::string& device) {
  const double tolerance = tolerance_of(*output.tensor);
  for (std::int64_t i = 0; i < output.elements; ++i) {
    const auto at = static_cast<std::size_t>(i);
    double got = 0, want = 0, scale = 0;
    if (is_floating(output.tensor->dtype)) {
      std::memcpy(&got, device.data() + at * sizeof got, sizeof got);
      want = host.values[at];
      scale = std::max(std::fabs(want), host.rms);
    } else {
      got = element_as_double(output.tensor->dtype, device.data(), i);
      want = element_as_double(output.tensor->dtype, host.bytes.data(), i);
    }
    const bool same = got == want || (std::isnan(got) && std::isnan(want)) ||
                      std::fabs(got - want) <= tolerance * scale;
    if (!same) {
      return "at " + coordinates(output.shape, i) + " " + number(want, 9) + " and " +
             number(got, 9);
    }
  }
  return "";
}

class CudaEvaluator : public Evaluator {
 public:
  CudaEvaluator(const Task& task, Compiler& compiler, const Machine& machine,
                const EvaluateSettings& settings)
      : task_(task), compiler_(compiler), machine_(machine), settings_(settings) {}

  Result<void> prepare() override;

  Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) override {
    CudaTimingPlan plan;
    plan.max_turns = std::max(20, settings_.samples);
    return judge(subject, incumbent, plan);
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) override {
    CudaTimingPlan plan;
    plan.min_turns = plan.max_turns = std::max(60, 2 * settings_.samples);
    plan.budget_s = 5;
    return judge(subject, &incumbent, plan);
  }

 private:
  // A step's way out: nothing, or what went wrong with the candidate.
  using Verdict = Result<std::optional<Outcome>>;

  Result<void> cross_check();
  Result<Evaluation> judge(const Subject& subject, const Subject* incumbent, CudaTimingPlan plan);
  Verdict run_case(std::size_t i, const Subject& subject, const Subject* incumbent,
                   const CudaTimingPlan& plan, Correct* correct, std::vector<Interval>* ratios);
  Verdict check(const CudaCase& state, double* max_error);
  // `facts`: of its launches, by metric name; may be null.
  Verdict load(const char* name, const CudaCase& state, const Binary& binary,
               std::map<std::string, double>* facts);
  Result<std::variant<LaunchPlan, Outcome>> plan_of(const CudaCase& state, const Binary& binary);
  Verdict open_worker(const CudaCase& state);
  void start_standby() {
    Result<CudaLink> next = CudaLink::start("cuda-worker");
    if (next) standby_ = std::move(*next);
  }

  const Task& task_;
  Compiler& compiler_;
  const Machine& machine_;
  EvaluateSettings settings_;
  std::optional<CudaLink> judge_;
  std::optional<CudaLink> worker_;   // of the candidate at hand
  std::optional<CudaLink> standby_;  // making its context while nothing is timed
  std::vector<CudaCase> cases_;
  std::map<std::string, LaunchPlan> plans_;  // of host forms, by binary
  std::uint64_t round_ = 0;
};

Result<void> CudaEvaluator::prepare() {
  const std::vector<const Case*> cases = cases_for(task_, TargetKind::kCuda);
  if (cases.empty() || task_.reference_cu.empty()) {
    return fail(ErrorKind::kTask,
                "the task " + task_.name +
                    (cases.empty() ? " has no case for the cuda target" : " has no reference.cu"),
                cases.empty() ? "add a case to task.toml that names the cuda target"
                              : "add one: the cuda target compares with it");
  }
  Result<CudaLink> link = CudaLink::start("cuda-judge");
  if (!link) return tl::unexpected<Error>(link.error());
  judge_ = std::move(*link);
  for (const Case* c : cases) {
    CompileResult built = compiler_.compile_reference(task_, *c);
    if (!built) return tl::unexpected<Error>(built.error());
    if (const auto* error = std::get_if<CompileError>(&*built)) {
      return fail(ErrorKind::kTask,
                  "reference.cu does not compile for case " + c->name + ":\n" + error->log,
                  "correct the task's reference.cu");
    }
    Result<CudaCase> state = open_case(*judge_, task_, *c);
    if (!state) return tl::unexpected<Error>(state.error());
    KP_TRY(run_references(*judge_, *state, std::get<Binary>(*built),
                          kp::mix64(settings_.seed ^ (cases_.size() * 0x51ed27f5ull)),
                          settings_.timeout_s));
    cases_.push_back(std::move(*state));
  }
  KP_TRY(cross_check());
  start_standby();
  return {};
}

// reference.cpp and reference.cu must agree at the smallest case, on the very same inputs.
Result<void> CudaEvaluator::cross_check() {
  if (settings_.host_compiler == nullptr || task_.reference_cpp.empty()) return {};
  const CudaCase& state =
      *std::min_element(cases_.begin(), cases_.end(), [&](const CudaCase& a, const CudaCase& b) {
        return compulsory_bytes(task_, *a.c) < compulsory_bytes(task_, *b.c);
      });
  CompileResult built = settings_.host_compiler->compile_reference(task_, *state.c);
  if (!built) return tl::unexpected<Error>(built.error());
  if (const auto* error = std::get_if<CompileError>(&*built)) {
    return fail(ErrorKind::kTask, "reference.cpp does not compile:\n" + error->log,
                "correct the task's reference.cpp");
  }
  const Result<std::string> worker = worker_path();
  if (!worker) return tl::unexpected<Error>(worker.error());
  // Set 0 of both is drawn from mix64(seed).
  const Result<CpuCase> host = make_cpu_case(task_, *state.c, std::get<Binary>(*built), *worker,
                                             state.seed, std::max(settings_.timeout_s, 10.0));
  if (!host) return tl::unexpected<Error>(host.error());
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& shaped = state.tensors[i];
    const bool output = state.judged[i].output;
    const Result<std::string> device = fetch_tensor(*judge_, state, 0, static_cast<int>(i), output);
    if (!device) return tl::unexpected<Error>(device.error());
    const InputSet& set = host->sets[0];
    if (!output) {
      if (!std::equal(set.inputs[i].begin(), set.inputs[i].end(), device->begin(), device->end())) {
        return fail(ErrorKind::kInternal,
                    "the input " + shaped.tensor->name + " drawn on the GPU differs from the CPU's",
                    "report this with your GPU and driver version");
      }
      continue;
    }
    const std::string where = disagreement(shaped, set.expected[i], *device);
    if (!where.empty()) {
      return fail(ErrorKind::kTask,
                  "reference.cpp and reference.cu disagree in " + shaped.tensor->name + " (case " +
                      state.c->name + "): " + where,
                  "correct the one that is wrong");
    }
  }
  return {};
}

CudaEvaluator::Verdict CudaEvaluator::open_worker(const CudaCase& state) {
  Answer answer = worker_->ask(
      {{"do", "open"}, {"layout", *parse_json(layout_to_json(state.layout))}}, kWorkerTimeout);
  for (int set = 0; set < kCudaSets && std::holds_alternative<Reply>(answer); ++set) {
    std::vector<int> fds;
    for (const Fd& fd : state.memory[static_cast<std::size_t>(set)]) fds.push_back(fd.get());
    answer = worker_->ask({{"do", "memory"}}, kWorkerTimeout, fds);
  }
  // The driver wants memory behind the addresses of copies and memsets when it builds a graph.
  if (std::holds_alternative<Reply>(answer)) {
    answer = worker_->ask({{"do", "bind"}, {"set", 0}}, kWorkerTimeout);
  }
  const Result<Reply> reply = trusted(std::move(answer), "the worker");
  if (!reply) return tl::unexpected<Error>(reply.error());
  return std::optional<Outcome>();
}

Result<std::variant<LaunchPlan, Outcome>> CudaEvaluator::plan_of(const CudaCase& state,
                                                                 const Binary& binary) {
  if (binary.form == Binary::Form::kPlanForm) return {binary.plan};
  if (const auto known = plans_.find(binary.hash); known != plans_.end()) return {known->second};
  auto captured = capture_plan(binary, "launch", state.layout, settings_.timeout_s);
  if (captured && std::holds_alternative<LaunchPlan>(*captured)) {
    plans_[binary.hash] = std::get<LaunchPlan>(*captured);
  }
  return captured;
}

CudaEvaluator::Verdict CudaEvaluator::load(const char* name, const CudaCase& state,
                                           const Binary& binary,
                                           std::map<std::string, double>* facts) {
  auto plan = plan_of(state, binary);
  if (!plan) return tl::unexpected<Error>(plan.error());
  if (auto* outcome = std::get_if<Outcome>(&*plan))
    return std::optional<Outcome>(std::move(*outcome));
  const Answer answer =
      worker_->ask({{"do", "load"},
                    {"subject", name},
                    {"cubin", binary.cubin},
                    {"plan", *parse_json(plan_to_json(std::get<LaunchPlan>(*plan)))}},
                   kWorkerTimeout);
  if (const auto* reply = std::get_if<Reply>(&answer)) {
    for (const auto& [metric, value] : JsonReader(reply->json).object("facts").items()) {
      if (facts != nullptr && value.is_number()) (*facts)[metric] = value.get<double>();
    }
    return std::optional<Outcome>();
  }
  return std::optional<Outcome>(worker_outcome(answer, "loading for case " + state.c->name));
}

// Every set, in an order that the candidate cannot know, one of them twice; the module is loaded
// anew before each, so that nothing that a __device__ variable remembers helps.
CudaEvaluator::Verdict CudaEvaluator::check(const CudaCase& state, double* max_error) {
  const std::uint64_t random = kp::mix64(settings_.seed + 31 * round_);
  const std::string phase = "checking case " + state.c->name;
  for (int k = 0; k <= kCudaSets; ++k) {
    const auto set = static_cast<int>(((random >> 7) + static_cast<std::uint64_t>(k)) % kCudaSets);
    KP_TRY(draw_set(*judge_, state, set));  // whoever ran before may have written to the inputs
    const std::uint64_t key = kp::mix64(random + static_cast<std::uint64_t>(k));
    KP_TRY(poison(*judge_, state, set, key));
    for (const Json& message :
         {Json{{"do", "bind"}, {"set", set}}, Json{{"do", "load"}, {"subject", "candidate"}},
          Json{{"do", "run"}, {"subject", "candidate"}, {"key", key}}}) {
      const Answer answer = worker_->ask(message, settings_.timeout_s);
      if (!std::holds_alternative<Reply>(answer)) {
        return std::optional<Outcome>(worker_outcome(answer, phase));
      }
    }
    Verdict verdict = judge_set(*judge_, state, set, true, max_error);
    if (!verdict || *verdict) return verdict;
  }
  return std::optional<Outcome>();
}

CudaEvaluator::Verdict CudaEvaluator::run_case(std::size_t i, const Subject& subject,
                                               const Subject* incumbent, const CudaTimingPlan& plan,
                                               Correct* correct, std::vector<Interval>* ratios) {
  const CudaCase& state = cases_[i];
  if (Verdict opened = open_worker(state); !opened || *opened) return opened;
  Verdict loaded =
      load("candidate", state, subject.binaries[i], state.c->timed ? &correct->observed : nullptr);
  if (!loaded || *loaded) return loaded;
  Verdict checked = check(state, &correct->max_error);
  if (!checked || *checked || !state.c->timed) return checked;
  if (incumbent != nullptr) {
    const Verdict other = load("incumbent", state, incumbent->binaries[i], nullptr);
    if (!other) return other;
    if (*other) incumbent = nullptr;  // its trouble is not the candidate's
  }
  auto timed =
      time_cuda_case(*judge_, *worker_, state, incumbent != nullptr, plan, &correct->max_error);
  if (!timed) return tl::unexpected<Error>(timed.error());
  if (auto* outcome = std::get_if<Outcome>(&*timed))
    return std::optional<Outcome>(std::move(*outcome));
  CudaTimed& result = std::get<CudaTimed>(*timed);
  const double floor = physical_floor_us(state, machine_);
  if (result.timing.median_us < floor) {
    return std::optional<Outcome>(
        Rejected{"physical-floor", "a time of " + human_us(result.timing.median_us) + " in case " +
                                       state.c->name + " is below what moving the data can take, " +
                                       human_us(floor)});
  }
  correct->timings.push_back(std::move(result.timing));
  if (result.ratio) ratios->push_back(*result.ratio);
  return std::optional<Outcome>();
}

Result<Evaluation> CudaEvaluator::judge(const Subject& subject, const Subject* incumbent,
                                        CudaTimingPlan plan) {
  const double start = real_clock().now_s();
  KP_ASSERT(subject.binaries.size() == cases_.size());
  ++round_;
  plan.seed = kp::mix64(settings_.seed ^ (round_ * 0x9e3779b97f4a7c15ull));
  plan.timeout_s = settings_.timeout_s;
  plan.min_effect = settings_.min_effect;
  if (!standby_) start_standby();
  if (!standby_) {
    return fail(ErrorKind::kEnvironment, "no cuda worker process can be started",
                "run again; `kernelpro doctor` shows what is missing");
  }
  worker_ = std::move(standby_);
  standby_.reset();

  Evaluation evaluation;
  evaluation.trust = "plan";
  Correct correct;
  std::vector<Interval> ratios;
  std::optional<Outcome> outcome;
  std::optional<Error> error;
  for (std::size_t i = 0; i < cases_.size() && !outcome && !error; ++i) {
    Verdict verdict = run_case(i, subject, incumbent, plan, &correct, &ratios);
    if (!verdict) {
      error = verdict.error();
    } else {
      outcome = std::move(*verdict);
    }
  }
  worker_.reset();
  start_standby();
  if (error) return tl::unexpected<Error>(*error);
  if (outcome) {
    evaluation.outcome = std::move(*outcome);
  } else {
    if (!ratios.empty()) correct.versus = combine(incumbent->hash, ratios);
    evaluation.outcome = std::move(correct);
  }
  evaluation.run_ms = (real_clock().now_s() - start) * 1e3;
  return evaluation;
}

}  // namespace

Result<std::unique_ptr<Evaluator>> make_cuda_evaluator(const Task& task, Compiler& compiler,
                                                       const Machine& machine,
                                                       const EvaluateSettings& settings) {
  return std::unique_ptr<Evaluator>(
      std::make_unique<CudaEvaluator>(task, compiler, machine, settings));
}

}  // namespace kernelpro
