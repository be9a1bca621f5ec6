// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/prepare.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/process/worker_path.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "measure/cpu/case.h"
#include "measure/cuda/trial.h"
#include "measure/judge/cross_check.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kCrossCheckBytes = 2LL << 30;  // of a float64 tensor

}  // namespace

Result<void> CudaPreparation::prepare(const References& references, const GpuRoom& room,
                                      double granularity) {
  cases_.clear();
  KP_TRY(open_cases(room, granularity));
  const bool native = settings_.module == nullptr;
  KP_ASSERT(!native || references.binaries.size() == cases_.size());
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    CudaCase& state = cases_[i];
    if (native) state.reference = references.binaries[i];
    KP_TRY(reference_.attach(state));
    KP_TRY(fill_case(state));
    KP_TRY(widen_tolerances(state));
  }
  if (references.host) KP_TRY(cross_check(*references.host));
  find_labels();
  return {};
}

Result<void> CudaPreparation::open_cases(const GpuRoom& room, double granularity) {
  const std::vector<const Case*> cases = cases_for(task_, TargetKind::kCuda);
  const bool declared = !contract() && settings_.module != nullptr;
  std::vector<MemoryNeed> needs;
  std::vector<double> least;
  std::vector<std::vector<std::string>> labels;
  for (const Case* c : cases) {
    std::optional<ModuleDescription> description;
    if (settings_.module != nullptr) {
      KP_ASSIGN(description,
                settings_.module->describe(task_.module->source, task_.module->path, c->dims));
    }
    auto& names = labels.emplace_back();
    if (description) {
      for (const auto& item : description->items) names.push_back(item.label);
    }
    needs.push_back(memory_need(task_, *c, description ? &*description : nullptr, granularity));
    least.push_back(least_bytes(needs.back()));
  }
  double left = room.free_bytes - kContextBytes;
  const double of_others = room.total_bytes - room.free_bytes;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    double for_others = 0;
    for (std::size_t k = i + 1; k < cases.size(); ++k) for_others += least[k];
    const int wanted = declared           ? kKernelBenchTrials
                       : settings_.timing ? sets_wanted(needs[i])
                                          : kLeastSets;
    const auto plan = plan_memory(needs[i], left - for_others, wanted, declared);
    if (!plan) {
      return tl::unexpected<Error>(memory_shortage(
          needs[i], cases[i]->name, left - for_others,
          plan_memory(needs[i], left - for_others + of_others, wanted, declared) ? of_others : 0));
    }
    KP_ASSIGN(CudaCase state, open_case(judge_, task_, *cases[i], settings_.policy, *plan));
    state.labels = labels[i];
    state.numerics = declared     ? Numerics::kKernelBench
                     : plan->wide ? Numerics::kFloat64
                                  : Numerics::kStrict;
    left -= plan->held;
    cases_.push_back(std::move(state));
  }
  return {};
}

// Fills every set of the rotation, and checks that the task is not degenerate.
Result<void> CudaPreparation::fill_case(CudaCase& state) {
  const std::vector<SetContent> contents = check_contents(state, settings_.policy);
  for (int set = 0; set < state.plan.rotation; ++set) {
    KP_TRY(reference_.fill(state, set, contents[static_cast<std::size_t>(set) % contents.size()]));
  }
  const std::string problem = degenerate_output(state);
  if (problem.empty()) return {};
  if (!contract()) {
    labels_.emplace_back(label_name(Label::kDegenerate));
    return {};
  }
  return fail(ErrorKind::kTask,
              "the task is degenerate: " + problem + " (case " + state.c->name + ")",
              "correct the reference, or draw inputs that matter to the result");
}

// Rounding alone may change results by more than the tolerance, which no kernel could meet.
Result<void> CudaPreparation::widen_tolerances(CudaCase& state) {
  const auto known = state.admitted.find(DrawKind::kGiven);
  if (known == state.admitted.end()) return {};
  bool widened = false;
  std::size_t output = 0;
  for (JudgeTensor& t : state.judged) {
    if (!t.output || output >= known->second.size()) continue;
    const Admitted& needed = known->second[output++];
    if (t.rule.tolerance <= 0) continue;
    if (is_noise(t, needed)) {
      return fail(ErrorKind::kTask,
                  "the task is degenerate: the output " + t.name +
                      " is rounding noise: rounding changes " + std::to_string(needed.jumps) +
                      " of " + std::to_string(t.elements) +
                      " elements by more than half of their size (case " + state.c->name + ")",
                  "draw inputs whose results are larger than their rounding errors");
    }
    t.rule.least = needed.least;
    widened = widened || needed.worst > t.rule.tolerance;
    t.rule.tolerance = std::max(t.rule.tolerance, needed.worst);
  }
  if (!widened) return {};
  labels_.emplace_back(label_name(Label::kToleranceOfModule));
  return tell_rules(state);
}

// Done while no candidate process holds memory, so that float64 fits.
Result<void> CudaPreparation::redraw() {
  for (CudaCase& state : cases_) {
    for (auto& content : state.contents) content.reset();
    KP_TRY(fill_case(state));
  }
  return {};
}

// Gives the judge the rules of `state`.
Result<void> CudaPreparation::tell_rules(const CudaCase& state) {
  Json tolerances = Json::array();
  for (const JudgeTensor& t : state.judged) tolerances.push_back(t.rule.tolerance);
  Json message = about(state, "tolerances", 0);
  message["tolerances"] = tolerances;
  KP_TRY(trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  return {};
}

// reference.cpp and reference.cu must agree at the smallest case, on identical inputs.
Result<void> CudaPreparation::cross_check(const Binary& host_reference) {
  const auto smallest = std::find_if(cases_.begin(), cases_.end(), [&](const CudaCase& each) {
    return each.c->name == host_reference.case_name;
  });
  KP_ASSERT(smallest != cases_.end());
  const CudaCase& state = *smallest;
  for (const Shaped& shaped : state.tensors) {
    if (shaped.elements * 8 <= kCrossCheckBytes) continue;
    return fail(ErrorKind::kTask,
                "the smallest case, " + state.c->name +
                    ", is too large to compare reference.cpp with reference.cu",
                "add a small case for the cuda target to task.toml, or leave reference.cpp out");
  }
  KP_ASSIGN(const std::string worker, worker_path());
  KP_ASSERT(state.contents[0].has_value());
  KP_ASSIGN(const InputSet host,
            make_host_set(task_, *state.c, host_reference, worker, state.contents[0]->key,
                          std::max(settings_.timeout_s, 10.0)));
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& shaped = state.tensors[i];
    const bool output = state.judged[i].output;
    KP_ASSIGN(const std::string device,
              fetch_tensor(judge_, state, 0, static_cast<int>(i), output));
    const InputSet& set = host;
    if (!output) {
      if (!std::equal(set.inputs[i].begin(), set.inputs[i].end(), device.begin(), device.end())) {
        return fail(ErrorKind::kInternal,
                    "the input " + shaped.tensor->name + " drawn on the GPU differs from the CPU's",
                    "report this with your GPU and driver version");
      }
      continue;
    }
    const std::string where = disagreement(shaped, set.expected[i], device);
    if (!where.empty()) {
      return fail(ErrorKind::kTask,
                  "reference.cpp and reference.cu disagree in " + shaped.tensor->name + " (case " +
                      state.c->name + "): " + where,
                  "correct the one that is wrong");
    }
  }
  return {};
}

void CudaPreparation::find_labels() {
  if (settings_.module == nullptr || !contract()) return;
  const auto wide = [](const CudaCase& state) { return state.numerics == Numerics::kFloat64; };
  if (std::all_of(cases_.begin(), cases_.end(), wide)) return;
  const bool some = std::any_of(cases_.begin(), cases_.end(), wide);
  labels_.emplace_back(label_name(some ? Label::kFloat64AtReducedCase : Label::kNoFloat64));
}

}  // namespace kernelpro
