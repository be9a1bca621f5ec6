// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probes.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "measure/judge/probe_rows.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

namespace {

constexpr double kRounded = 0.05;          // larger errors are not a matter of precision
constexpr std::int64_t kFewElements = 16;  // their common scale may be small by chance
constexpr double kNoise = 0.25;            // around a constant parameter, over max(1, |constant|)
constexpr std::size_t kMostLone = 4;       // tensors

// Shifts by the mean if it (practically) never changes sign.
Init centred(const Init& init) {
  Init result = init;
  switch (init.kind) {
    case Init::Kind::kUniform:
      if (init.a < 0 && init.b > 0) break;
      result.a = -(init.b - init.a) / 2;
      result.b = (init.b - init.a) / 2;
      break;
    case Init::Kind::kNormal:
      if (std::fabs(init.a) >= 3 * init.b) result.a = 0;
      break;
    case Init::Kind::kIntegers:
      if (init.a < 0 && init.b > 0) break;
      result.a = -std::floor((init.b - init.a) / 2);
      result.b = result.a + (init.b - init.a);
      break;
    default:  // zeros and ones are masks; a constant would become zero
      break;
  }
  return result;
}

Init scaled(const Init& init, DType dtype) {
  Init result = init;
  if (init.kind != Init::Kind::kUniform && init.kind != Init::Kind::kNormal) return result;
  const double factor = dtype == DType::kFp32 ? 64 : 4;
  result.a *= factor;
  result.b *= factor;
  return result;
}

Init noisy(const Init& init) {
  if (init.kind != Init::Kind::kConstant) return init;
  const double width = kNoise * std::max(1.0, std::fabs(init.a));
  return {Init::Kind::kUniform, init.a - width, init.a + width};
}

Init probe_init(const Tensor& tensor, DrawKind kind) {
  if (!is_floating(tensor.dtype)) return tensor.init;
  if (tensor.role == Role::kInput && kind == DrawKind::kCentred) return centred(tensor.init);
  if (tensor.role == Role::kInput && kind == DrawKind::kScaled) {
    return scaled(tensor.init, tensor.dtype);
  }
  if (tensor.role == Role::kParameter && kind == DrawKind::kParameters) return noisy(tensor.init);
  return tensor.init;
}

// False: it has it already.
bool add_label(ProbeVerdict* verdict, Label label) {
  auto& labels = verdict->labels;
  const std::string_view name = label_name(label);
  if (std::find(labels.begin(), labels.end(), name) != labels.end()) return false;
  labels.emplace_back(name);
  return true;
}

void add_label(ProbeVerdict* verdict, Label label, const ProbeFailure& failure) {
  if (!add_label(verdict, label)) return;
  verdict->notes.push_back("it fails " + probe_words(failure.kind) + " (case " + failure.case_name +
                           "): " + failure.what);
}

// A native task's tensors as it draws them itself; a module draws its own.
ProbePlan plan_of(DrawKind kind, const Task& task) {
  ProbePlan plan;
  plan.kind = kind;
  if (task.module) return plan;
  for (const Tensor& tensor : task.tensors) plan.inits.push_back(tensor.init);
  return plan;
}

void add_drawn(DrawKind kind, const Task& task, std::vector<ProbePlan>* plans) {
  ProbePlan plan = plan_of(kind, task);
  bool changed = task.module.has_value();
  for (std::size_t i = 0; i < plan.inits.size(); ++i) {
    const Init& given = task.tensors[i].init;
    plan.inits[i] = probe_init(task.tensors[i], kind);
    changed = changed || plan.inits[i].kind != given.kind || plan.inits[i].a != given.a ||
              plan.inits[i].b != given.b;
  }
  if (changed) plans->push_back(std::move(plan));
}

void add_shaped(DrawKind kind, const Task& task, std::vector<ProbePlan>* plans) {
  if (!shape_applies(kind, task)) return;
  if (wants_products(kind) && task.precision != Precision::kFp32) return;
  ProbePlan plan = plan_of(kind, task);
  const std::vector<int> all = named_candidates(kind, task);
  const auto draws = static_cast<std::size_t>(probe_row(kind).draws);
  if (all.empty()) plans->insert(plans->end(), draws, plan);
  for (std::size_t k = 0; k < std::min(all.size(), kMostLone); ++k) {
    plan.tensor = all.size() > kMostLone ? -1 : all[k];
    plans->push_back(plan);
  }
}

}  // namespace

std::vector<ProbePlan> plan_probes(const Task& task) {
  std::vector<ProbePlan> plans;
  for (const ProbeRow& row : probe_rows()) {
    if (row.drawn) add_drawn(row.kind, task, &plans);
    if (probe_varies(row.kind)) add_shaped(row.kind, task, &plans);
  }
  const bool any = task.module || std::any_of(task.tensors.begin(), task.tensors.end(), leans);
  if (task.precision == Precision::kFp32 && any) plans.push_back(plan_of(DrawKind::kLowBits, task));
  return plans;
}

// For large inputs a kernel may have a reason where it does more than multiply: an exponential that
// vanishes sends a division, and a large angle a sine, down a longer path.
bool keeps_time(DrawKind kind, bool multiplies) {
  const ProbeTimes times = probe_row(kind).times;
  return times == ProbeTimes::kSame || (times == ProbeTimes::kSameIfProducts && multiplies);
}

bool changes_parameters(DrawKind kind) { return probe_row(kind).changes_parameters; }

std::vector<std::size_t> choose_probes(const std::vector<char>& resident, int most,
                                       std::uint64_t random) {
  std::vector<std::size_t> all(resident.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  for (std::size_t i = all.size(); i > 1; --i) {
    random = kp::mix64(random + i);
    std::swap(all[i - 1], all[random % i]);
  }
  if (most <= 0 || static_cast<std::size_t>(most) >= all.size()) return all;
  std::vector<std::size_t> chosen;
  const auto take = [&](bool ready, std::size_t until) {
    for (const std::size_t i : all) {
      const bool known = std::find(chosen.begin(), chosen.end(), i) != chosen.end();
      if (chosen.size() < until && !known && (!ready || resident[i])) chosen.push_back(i);
    }
  };
  take(true, static_cast<std::size_t>(most) / 2);
  take(false, static_cast<std::size_t>(most));
  return chosen;
}

std::size_t put_telling_first(const std::vector<ProbePlan>& plans,
                              std::vector<std::size_t>* order) {
  // Constant parameters, ones and zeros, tempt most.
  std::stable_partition(order->begin(), order->end(),
                        [&](std::size_t i) { return plans[i].kind == DrawKind::kParameters; });
  std::vector<std::size_t> first, rest;
  std::set<ProbeRank> seen;
  for (const std::size_t i : *order) {
    const ProbeRow& row = probe_row(plans[i].kind);
    const bool unseen = seen.insert(row.rank).second;
    (row.each || unseen ? first : rest).push_back(i);
  }
  std::stable_sort(first.begin(), first.end(), [&](std::size_t a, std::size_t b) {
    return probe_row(plans[a].kind).rank < probe_row(plans[b].kind).rank;
  });
  const std::size_t telling = first.size();
  first.insert(first.end(), rest.begin(), rest.end());
  *order = std::move(first);
  return telling;
}

std::string probe_words(DrawKind kind) { return std::string(probe_row(kind).words); }

double largest_value(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return static_cast<double>(std::numeric_limits<float>::max());
    case DType::kFp16:
      return 65504;
    case DType::kBf16:
      return 3.3895313892515355e38;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

ProbeFailure probe_failure(DrawKind kind, const std::string& case_name, const Outcome& outcome,
                           const std::vector<Shaped>& tensors) {
  ProbeFailure failure;
  failure.kind = kind;
  failure.case_name = case_name;
  const auto* wrong = std::get_if<WrongResult>(&outcome);
  if (wrong == nullptr) {
    failure.what = outcome_summary(outcome);
    return failure;
  }
  failure.what = wrong->tensor + ": " + wrong->reason;
  failure.error = wrong->error;
  failure.tolerance = wrong->tolerance;
  for (const Shaped& t : tensors) {
    if (t.tensor->name != wrong->tensor) continue;
    failure.elements = t.elements;
    failure.dtype = t.tensor->dtype;
  }
  return failure;
}

namespace {

void note(const Imprecision& found, ProbeVerdict* verdict) {
  switch (found.kind) {
    case Imprecision::Kind::kRejected:
      if (verdict->rejected) return;
      verdict->rejected = Rejected{"precision", "computes in less than fp32: " + found.what};
      return;
    case Imprecision::Kind::kCoarser:
      if (!add_label(verdict, Label::kCoarserThanFp32)) return;
      verdict->notes.push_back("less precise than plain fp32 sums in any order: " + found.what);
      return;
    case Imprecision::Kind::kLost:
      if (!add_label(verdict, Label::kGivenDistributionOnly)) return;
      verdict->notes.push_back("it loses what is small beside other results: " + found.what);
      return;
    case Imprecision::Kind::kByNorm:
      if (!add_label(verdict, Label::kPreciseByNorm)) return;
      verdict->notes.push_back(
          "its errors are those of fp32 by their norm alone, as with Winograd's algorithm: " +
          found.what);
      return;
  }
}

}  // namespace

ProbeVerdict judge_probes(Precision precision, const std::vector<ProbeFailure>& failures,
                          const std::vector<NormError>& norms) {
  ProbeVerdict verdict;
  for (const NormError& error : norms) {
    if (precision != Precision::kFp32) break;
    for (const Imprecision& found : judge_norm(error, probe_words(error.kind))) {
      note(found, &verdict);
    }
  }
  for (const ProbeFailure& failure : failures) {
    const bool telling = probe_row(failure.kind).shows_rounding;
    const bool rounded = telling && failure.dtype == DType::kFp32 && failure.tolerance > 0 &&
                         failure.error > failure.tolerance && failure.error < kRounded &&
                         failure.elements >= kFewElements;
    if (precision == Precision::kFp32 && rounded && !verdict.rejected) {
      verdict.rejected = Rejected{
          "precision", "computes in less than fp32: an error of " + number(failure.error, 3) +
                           " of the output's scale " + probe_words(failure.kind) + " (allowed " +
                           number(failure.tolerance, 3) + "), case " + failure.case_name};
    }
    add_label(&verdict,
              changes_parameters(failure.kind) ? Label::kGivenParametersOnly
                                               : Label::kGivenDistributionOnly,
              failure);
  }
  return verdict;
}

}  // namespace kernelpro
