// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/case_probes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/task/inputs.h"
#include "core/task/key.h"
#include "measure/judge/probes.h"
#include "measure/judge/short_sums.h"

namespace kernelpro {

namespace {

constexpr double kShortSum = 2048;      // terms
constexpr double kTellingBudgets = 5;   // of time for probes: for those that tell most
constexpr double kLevelBudgets = 2;     // of time for probes: after these, only their first level
constexpr double kUntimedShare = 0.25;  // of the time for probes
// Of a case that is not timed, where others are.
constexpr std::size_t kMostUntimed = 10;

// Whether all probes are wanted: of timed cases, and of all where none is timed.
bool counts(const Task& task, const Case& c) {
  const std::vector<const Case*> all = cases_for(task, TargetKind::kCpu);
  return c.timed ||
         std::none_of(all.begin(), all.end(), [](const Case* other) { return other->timed; });
}

// Long sums accumulate the last digits too, in the same direction, and honest fp32 would look less
// precise. They are shortest in the smallest of the cases that count alike.
bool leans_here(const Task& task, const Case& c) {
  if (sum_length(task, c) > kShortSum) return false;
  const std::vector<const Case*> all = cases_for(task, TargetKind::kCpu);
  return std::none_of(all.begin(), all.end(), [&](const Case* other) {
    return counts(task, *other) == counts(task, c) &&
           compulsory_bytes(task, *other) < compulsory_bytes(task, c);
  });
}

std::vector<OutputLook> looks_of(const InputSet& set) {
  std::vector<OutputLook> looks;
  for (const Expected& expected : set.expected) {
    if (expected.values.empty()) continue;
    const auto [low, high] = std::minmax_element(expected.values.begin(), expected.values.end());
    looks.push_back({expected.rms, *low, *high});
  }
  return looks;
}

// What is known of a task whose results are linear in each input.
struct Linear {
  std::vector<int> tensors;  // the inputs, or the factors if there are any; empty: not linear
  bool addend = false;
  std::optional<std::vector<Contraction>> contractions;  // once looked for
};

LookAt looks_at(const kp::Key& key, CpuReference& reference) {
  return [key, &reference](const std::vector<kp::ShapeSpec>& shapes)
             -> Result<std::optional<std::vector<OutputLook>>> {
    SetRequest request;
    request.key = key;
    request.shapes = shapes;
    KP_ASSIGN(const std::optional<InputSet> set, reference.make_set(request));
    if (!set) return std::optional<std::vector<OutputLook>>();
    return std::optional(looks_of(*set));
  };
}

Result<Linear> linear_inputs(const Task& task, const std::vector<Shaped>& tensors,
                             CpuReference& reference) {
  if (!reference.has_float64()) return Linear{};
  const LookAt look = looks_at(fresh_key(), reference);
  std::vector<int> all = linear_candidates(task), factors;
  Linear found;
  for (const int tensor : all) {
    std::vector<std::vector<OutputLook>> looks;
    for (const float factor : kLinearFactors) {
      KP_ASSIGN(auto looked, look(power_shapes(tensors, tensor, factor, 1, true)));
      if (!looked) return Linear{};
      looks.push_back(std::move(*looked));
    }
    if (!is_linear(looks[0], looks[1], looks[2])) return Linear{};
    found.addend = found.addend || has_addend(looks[0], looks[3]);
    KP_ASSIGN(const auto together,
              look(power_shapes(tensors, tensor, kLinearFactors[0], kOtherFactor, true)));
    if (together && is_factor(looks[0], *together)) factors.push_back(tensor);
  }
  found.tensors = factors.empty() ? all : factors;
  return found;
}

// How a probe of products changes the inputs; empty where it does not apply.
Result<std::vector<kp::ShapeSpec>> product_shapes(const Task& task,
                                                  const std::vector<Shaped>& tensors,
                                                  CpuReference& reference, DrawKind kind,
                                                  std::uint64_t word,
                                                  std::optional<Linear>* linear) {
  Linear& known = **linear;
  if (known.tensors.empty()) return std::vector<kp::ShapeSpec>();
  if (kind == DrawKind::kSparse) {
    return probe_shapes(task, tensors, kind, word, known.tensors[word % known.tensors.size()],
                        known.addend);
  }
  if (!known.contractions) {
    KP_ASSIGN(known.contractions,
              find_contractions(tensors, known.tensors, looks_at(fresh_key(), reference)));
  }
  if (known.contractions->empty()) return std::vector<kp::ShapeSpec>();
  return short_sum_shapes(tensors, *known.contractions, kind, word, known.addend);
}

// Whether few elements decide the results of a probe's contents.
Result<bool> decides(const SetRequest& request, CpuReference& reference) {
  if (request.shapes.empty()) return false;
  const LookAt look = looks_at(request.key, reference);
  std::optional<std::vector<OutputLook>> all, background;
  for (auto* each : {&all, &background}) {
    auto looked = look(each == &all ? request.shapes : background_alone(request.shapes));
    if (!looked && looked.error().kind != ErrorKind::kTask) {
      return tl::unexpected<Error>(looked.error());
    }
    if (!looked || !*looked) return false;
    *each = std::move(*looked);
  }
  return few_decide(*all, *background);
}

// The set of a probe, at the first level that shows something; nullopt if none does. Without
// `time`, only the first is tried.
Result<std::optional<InputSet>> make_probe(const Task& task, const std::vector<Shaped>& tensors,
                                           CpuReference& reference, const ProbePlan& plan,
                                           const std::function<bool()>& time,
                                           std::optional<Linear>* linear) {
  SetRequest request;
  request.key = plan.tensor >= 0 ? naming_key(plan.kind, task, plan.tensor) : fresh_key();
  request.probe = &plan;
  const std::uint64_t word = kp::subkey(request.key, kp::kShapeStream);
  if (wants_products(plan.kind) && !*linear) {
    KP_ASSIGN(*linear, linear_inputs(task, tensors, reference));
  }
  if (wants_products(plan.kind) && (*linear)->tensors.empty()) return std::optional<InputSet>();
  if (shows_products(plan.kind)) {
    KP_ASSIGN(request.shapes, product_shapes(task, tensors, reference, plan.kind, word, linear));
    if (request.shapes.empty()) return std::optional<InputSet>();
    return reference.make_set(request);
  }
  for (int level = 0; level < probe_levels(plan.kind); ++level) {
    if (level > 0 && plan.kind != DrawKind::kSparing && !time()) break;
    request.shapes = probe_shapes(task, tensors, plan.kind, word, -1, false, level);
    if (plan.kind == DrawKind::kSparing) {
      KP_ASSIGN(const bool decide, decides(request, reference));
      if (!decide) continue;
    }
    Result<std::optional<InputSet>> set = reference.make_set(request);
    // A reference that cannot take a probe's values has nothing to say about them.
    if (!set && set.error().kind != ErrorKind::kTask) return tl::unexpected<Error>(set.error());
    if (set && *set) return set;
  }
  return std::optional<InputSet>();
}

}  // namespace

std::size_t most_probes(const Task& task, const Case& c) {
  const std::size_t plans = plan_probes(task).size();
  return counts(task, c) ? plans : std::min(plans, kMostUntimed);
}

Result<void> make_probes(const Task& task, const Case& c, const std::vector<Shaped>& tensors,
                         double budget_s, CpuReference& reference, CaseProbes* made) {
  const int before = reference.runs();
  const std::vector<ProbePlan> plans = plan_probes(task);
  const bool all = counts(task, c);
  const double budget = budget_s * (all ? 1 : kUntimedShare);
  const auto passed = [&](double budgets) {
    // Not by a clock: a busy machine takes longer, but leaves no probe out.
    return (reference.runs() - before) * reference.fastest_s() > budgets * budget;
  };
  std::vector<std::size_t> order =
      choose_probes(std::vector<char>(plans.size()), 0, fresh_secret());
  const std::size_t telling = put_telling_first(plans, &order);
  std::optional<Linear> linear;
  std::size_t tried = 0;
  for (const std::size_t i : order) {
    if (passed(1) && tried >= (passed(kTellingBudgets) ? kFewestProbes : telling)) break;
    if (!all && made->sets.size() >= kMostUntimed) break;
    if (plans[i].kind == DrawKind::kLowBits && !leans_here(task, c)) continue;
    if (wants_products(plans[i].kind) && !multiplies(task, c)) continue;
    if (has_short_sums(plans[i].kind) && passed(1)) continue;
    ++tried;
    // Where time is short, more kinds tell more than more levels of one.
    const auto time = [&] { return !passed(kLevelBudgets); };
    Result<std::optional<InputSet>> set =
        make_probe(task, tensors, reference, plans[i], time, &linear);
    if (set && !*set && probe_varies(plans[i].kind) && time()) {  // another draw may tell
      set = make_probe(task, tensors, reference, plans[i], time, &linear);
    }
    // A reference that cannot take a probe's values has nothing to say about them.
    if (!set && set.error().kind != ErrorKind::kTask) return tl::unexpected<Error>(set.error());
    if (!set || !*set) continue;
    (*set)->named = plans[i].tensor;
    made->sets.push_back({plans[i].kind, std::move(**set)});
  }
  made->linear = linear && !linear->tensors.empty();
  return {};
}

}  // namespace kernelpro
