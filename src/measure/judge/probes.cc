// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probes.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

namespace {

constexpr double kRounded = 0.05;          // larger errors are not a matter of precision
constexpr std::int64_t kFewElements = 16;  // their common scale may be small by chance
constexpr double kNoise = 0.25;            // around a constant parameter, over max(1, |constant|)
constexpr DrawKind kShaped[] = {
    DrawKind::kTiny,           DrawKind::kHeavy,     DrawKind::kRepeated,
    DrawKind::kRows,           DrawKind::kTop,       DrawKind::kSparse,
    DrawKind::kShortSums,      DrawKind::kDimSums,   DrawKind::kLargeParameters,
    DrawKind::kTinyParameters, DrawKind::kEnds,      DrawKind::kEqual,
    DrawKind::kRamp,           DrawKind::kConstants, DrawKind::kFewInputs,
    DrawKind::kFewParameters,  DrawKind::kFractions, DrawKind::kOutliers,
    DrawKind::kLone,           DrawKind::kFaint,     DrawKind::kSparing,
    DrawKind::kZeros,          DrawKind::kRuns,      DrawKind::kFewDigits};
constexpr std::size_t kMostLone = 4;  // tensors

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

}  // namespace

std::vector<ProbePlan> plan_probes(const Task& task) {
  std::vector<ProbePlan> plans;
  for (const DrawKind kind :
       {DrawKind::kCentred, DrawKind::kScaled, DrawKind::kFilled, DrawKind::kParameters}) {
    ProbePlan plan;
    plan.kind = kind;
    if (task.module) {
      plans.push_back(std::move(plan));
      continue;
    }
    bool changed = false;
    for (const Tensor& tensor : task.tensors) {
      const Init init = probe_init(tensor, kind);
      changed = changed || init.kind != tensor.init.kind || init.a != tensor.init.a ||
                init.b != tensor.init.b;
      plan.inits.push_back(init);
    }
    if (changed) plans.push_back(std::move(plan));
  }
  for (const DrawKind kind : kShaped) {
    if (!shape_applies(kind, task)) continue;
    if (wants_products(kind) && task.precision != Precision::kFp32) continue;
    ProbePlan plan;
    plan.kind = kind;
    for (const Tensor& tensor : task.tensors) plan.inits.push_back(tensor.init);
    if (task.module) plan.inits.clear();
    if (const std::vector<int> all = named_candidates(kind, task); !all.empty()) {
      for (std::size_t k = 0; k < std::min(all.size(), kMostLone); ++k) {
        plan.tensor = all.size() > kMostLone ? -1 : all[k];
        plans.push_back(plan);
      }
      continue;
    }
    plans.push_back(std::move(plan));
  }
  const bool any = task.module || std::any_of(task.tensors.begin(), task.tensors.end(), leans);
  if (task.precision == Precision::kFp32 && any) {
    ProbePlan plan;
    plan.kind = DrawKind::kLowBits;
    for (const Tensor& tensor : task.tensors) plan.inits.push_back(tensor.init);
    if (task.module) plan.inits.clear();
    plans.push_back(std::move(plan));
  }
  return plans;
}

// For large inputs a kernel may have a reason where it does more than multiply: an exponential that
// vanishes sends a division, and a large angle a sine, down a longer path.
bool keeps_time(DrawKind kind, bool multiplies) {
  switch (kind) {
    case DrawKind::kCentred:
    case DrawKind::kLowBits:
    case DrawKind::kFractions:
    case DrawKind::kTiny:
      return true;
    case DrawKind::kScaled:
      return multiplies;
    default:
      return false;
  }
}

bool changes_parameters(DrawKind kind) {
  return kind == DrawKind::kParameters || kind == DrawKind::kLargeParameters ||
         kind == DrawKind::kTinyParameters || kind == DrawKind::kFewParameters;
}

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

namespace {

int class_of(DrawKind kind) {
  switch (kind) {
    case DrawKind::kSparse:
    case DrawKind::kShortSums:
    case DrawKind::kDimSums:
    case DrawKind::kFaint:
      return 0;
    case DrawKind::kSparing:
      return 1;
    case DrawKind::kParameters:
    case DrawKind::kLargeParameters:
    case DrawKind::kTinyParameters:
      return 2;
    case DrawKind::kFewInputs:
    case DrawKind::kOutliers:
      return 3;
    case DrawKind::kScaled:
    case DrawKind::kTiny:
      return 4;
    case DrawKind::kLone:
      return 5;
    case DrawKind::kFewParameters:  // who looks at some of them leaves out all
      return 6;
    default:
      return 7;
  }
}

}  // namespace

std::size_t put_telling_first(const std::vector<ProbePlan>& plans,
                              std::vector<std::size_t>* order) {
  // Constant parameters, ones and zeros, tempt most.
  std::stable_partition(order->begin(), order->end(),
                        [&](std::size_t i) { return plans[i].kind == DrawKind::kParameters; });
  std::vector<std::size_t> first, rest;
  std::set<int> seen;
  for (const std::size_t i : *order) {
    const bool each = plans[i].kind == DrawKind::kLone || plans[i].kind == DrawKind::kRuns ||
                      wants_products(plans[i].kind);
    const bool unseen = seen.insert(class_of(plans[i].kind)).second;
    (each || unseen ? first : rest).push_back(i);
  }
  std::stable_sort(first.begin(), first.end(), [&](std::size_t a, std::size_t b) {
    return class_of(plans[a].kind) < class_of(plans[b].kind);
  });
  const std::size_t telling = first.size();
  first.insert(first.end(), rest.begin(), rest.end());
  *order = std::move(first);
  return telling;
}

std::string probe_words(DrawKind kind) {
  switch (kind) {
    case DrawKind::kCentred:
      return "on inputs centred on zero";
    case DrawKind::kScaled:
      return "on larger inputs";
    case DrawKind::kFilled:
      return "on inputs with values in rows or columns that are otherwise zero";
    case DrawKind::kParameters:
      return "with other parameters";
    case DrawKind::kLowBits:
      return "on inputs whose last digits round one way";
    case DrawKind::kTiny:
      return "on smaller inputs";
    case DrawKind::kHeavy:
      return "on heavy-tailed inputs";
    case DrawKind::kRepeated:
      return "on inputs with repeated values";
    case DrawKind::kRows:
      return "on inputs whose rows and channels differ in size";
    case DrawKind::kTop:
      return "on rows full of near-maximum values";
    case DrawKind::kSparse:
      return "on sparse inputs";
    case DrawKind::kShortSums:
      return "on inputs with few products that matter";
    case DrawKind::kDimSums:
      return "on inputs with few products that matter much";
    case DrawKind::kLargeParameters:
      return "with larger parameters";
    case DrawKind::kTinyParameters:
      return "with smaller parameters";
    case DrawKind::kEnds:
      return "on integers at both ends of their range";
    case DrawKind::kEqual:
      return "on equal integers";
    case DrawKind::kZeros:
      return "on inputs of which half are zero";
    case DrawKind::kRuns:
      return "on integers in runs of equal ones";
    case DrawKind::kFewDigits:
      return "on whole numbers of which a few get digits";
    case DrawKind::kRamp:
      return "on sorted or distinct integers";
    case DrawKind::kConstants:
      return "on constant inputs that differ";
    case DrawKind::kFewInputs:
      return "on inputs of which a few differ";
    case DrawKind::kFewParameters:
      return "with a few other parameters";
    case DrawKind::kFractions:
      return "on inputs that are no whole numbers";
    case DrawKind::kOutliers:
      return "on inputs with outliers in their rows";
    case DrawKind::kLone:
      return "on inputs of which one is much larger";
    case DrawKind::kSparing:
      return "on inputs of which few elements count";
    case DrawKind::kFaint:
      return "on inputs of which one is too small to hide others";
    default:
      return "on the task's own inputs";
  }
}

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

constexpr DrawKind kTelling[] = {DrawKind::kCentred, DrawKind::kLowBits, DrawKind::kSparse,
                                 DrawKind::kShortSums, DrawKind::kDimSums};

template <std::size_t N>
bool among(const DrawKind (&kinds)[N], DrawKind kind) {
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

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
    const bool telling = among(kTelling, failure.kind);
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
