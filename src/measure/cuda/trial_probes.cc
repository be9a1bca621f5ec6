// SPDX-License-Identifier: Apache-2.0
// CudaTrial: other values of the same shapes. Does the kernel compute the task?
#include <algorithm>
#include <utility>

#include "core/key.h"
#include "measure/cuda/passes.h"
#include "measure/cuda/trial.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

namespace {

constexpr double kSlowReference = 2;  // seconds
constexpr int kFewProbes = 2;         // at such a reference, or without sets that keep contents
constexpr std::uint64_t kKept = 4;    // contents that are ready serve this often, on average

}  // namespace

// At every size that is timed, or at the smallest if none is. Runs last, because a kernel may crash
// here and still be right on the task's inputs.
CudaTrial::Verdict CudaTrial::probe_cases() {
  std::vector<CudaCase*> probed;
  for (CudaCase& state : shop_.cases) {
    if (state.c->timed) probed.push_back(&state);
  }
  if (probed.empty()) {
    probed.push_back(&*std::min_element(shop_.cases.begin(), shop_.cases.end(),
                                        [&](const CudaCase& a, const CudaCase& b) {
                                          return a.plan.held / a.sets() < b.plan.held / b.sets();
                                        }));
  }
  for (CudaCase* state : probed) {
    Verdict verdict = probe(*state);
    if (!verdict || *verdict || crashed_) return verdict;
  }
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::probe(CudaCase& state) {
  failures_.clear();
  sparse_.clear();
  std::vector<ProbePlan> plans = plan_probes(shop_.task);
  KP_ASSIGN(const bool sparse, sparse_applies(state));
  std::erase_if(plans,
                [&](const ProbePlan& plan) { return plan.kind == DrawKind::kSparse && !sparse; });
  int most = shop_.probes_each;
  const bool costly = state.plan.extra <= kProbeSets || state.reference_s > kSlowReference;
  if (most > 0 && costly) most = std::min(most, kFewProbes);
  std::vector<char> resident;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto& held = state.contents[static_cast<std::size_t>(state.probe_set(i))];
    resident.push_back(held && held->kind == plans[i].kind);
  }
  for (const std::size_t i : choose_probes(resident, most, fresh_secret())) {
    Verdict verdict = probe_once(state, plans[i].kind, i);
    if (!verdict || *verdict) return verdict;
    if (crashed_) break;
  }
  ProbeVerdict verdict = judge_probes(shop_.task.precision, failures_, sparse_);
  if (verdict.rejected) return std::optional<Outcome>(std::move(*verdict.rejected));
  for (const std::string& name : verdict.labels) label(name);
  for (std::string& note : verdict.notes) correct_.notes.push_back(std::move(note));
  return std::optional<Outcome>();
}

// Linearity belongs to the task and is found once.
Result<bool> CudaTrial::sparse_applies(CudaCase& state) {
  if (shop_.task.precision != Precision::kFp32 || !multiplies(shop_.task, *state.c)) return false;
  KP_ASSIGN(const std::vector<int> linear,
            shop_.reference.linear_inputs(state, state.probe_set(0)));
  return !linear.empty();
}

// What the set holds already, mostly: a reference costs more than a candidate's call.
SetContent CudaTrial::probe_content(const CudaCase& state, DrawKind kind, int set) {
  const auto& held = state.contents[static_cast<std::size_t>(set)];
  if (held && held->kind == kind && fresh_secret() % kKept != 0) return *held;
  return {fresh_key(), kind};
}

CudaTrial::Verdict CudaTrial::probe_once(CudaCase& state, DrawKind kind, std::size_t place) {
  const int set = state.probe_set(place);
  if (changes_parameters(kind) && state.shares_parameters(set)) return std::optional<Outcome>();
  const auto filled = shop_.reference.fill(state, set, probe_content(state, kind, set));
  // If the reference cannot take these values, the probe is inconclusive.
  if (!filled && filled.error().kind == ErrorKind::kTask) return std::optional<Outcome>();
  if (!filled) return tl::unexpected<Error>(filled.error());
  if (!filled->changed || !filled->usable) return std::optional<Outcome>();
  const SetKeys keys = {{set, fresh_secret()}};
  KP_TRY(poison(shop_.judge, state, keys, true));
  KP_ASSIGN(auto ran, run_on(state, keys));
  if (ran) {
    if (perhaps_killed(*ran)) return ran;
    failures_.push_back(probe_failure(kind, state.c->name, *ran, state.tensors));
    crashed_ = !worker_.link.running() || std::holds_alternative<Crashed>(*ran);
    return std::optional<Outcome>();
  }
  double ignored = 0;
  KP_ASSIGN(const auto wrong, verify(shop_.judge, state, {set}, true, {}, &ignored));
  if (wrong) {
    failures_.push_back(probe_failure(kind, state.c->name, wrong->outcome, state.tensors));
    return std::optional<Outcome>();
  }
  if (kind == DrawKind::kSparse) {
    KP_ASSIGN(const std::vector<Deviation> got, deviations(shop_.judge, state, set));
    std::size_t output = 0;
    for (const JudgeTensor& t : state.judged) {
      if (!t.output) continue;
      const std::size_t at = output++;
      if (t.dtype != DType::kFp32) continue;
      sparse_.push_back({state.c->name, t.name, got[at], state.nudged[at]});
    }
  }
  if (kind != DrawKind::kCentred && kind != DrawKind::kLowBits) return std::optional<Outcome>();
  return compare_times(state, set, kind);
}

}  // namespace kernelpro
