// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "core/inputs.h"

namespace kernelpro {

namespace {

constexpr double kRounded = 0.05;          // larger errors are not a matter of precision
constexpr std::int64_t kFewElements = 16;  // their common scale may be small by chance
constexpr double kNoise = 0.25;            // around a constant parameter, over max(1, |constant|)

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

void add_label(ProbeVerdict* verdict, std::string_view label, const ProbeFailure& failure) {
  if (std::find(verdict->labels.begin(), verdict->labels.end(), label) != verdict->labels.end()) {
    return;
  }
  verdict->labels.emplace_back(label);
  verdict->notes.push_back("it fails " + probe_words(failure.kind) + " (case " + failure.case_name +
                           "): " + failure.what);
}

}  // namespace

std::vector<ProbePlan> plan_probes(const Task& task) {
  std::vector<ProbePlan> plans;
  for (const DrawKind kind : {DrawKind::kCentred, DrawKind::kScaled, DrawKind::kParameters}) {
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

bool leans(const Tensor& tensor) {
  const bool drawn =
      tensor.init.kind == Init::Kind::kUniform || tensor.init.kind == Init::Kind::kNormal;
  return tensor.role == Role::kInput && tensor.dtype == DType::kFp32 && drawn;
}

void lean(const Shaped& tensor, std::uint64_t digits, std::vector<char>* data) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements); ++i) {
    unsigned bits = 0;
    std::memcpy(&bits, data->data() + 4 * i, sizeof bits);
    bits = kp::lean_bits(bits, digits, i);
    std::memcpy(data->data() + 4 * i, &bits, sizeof bits);
  }
}

std::string probe_words(DrawKind kind) {
  switch (kind) {
    case DrawKind::kCentred:
      return "on inputs centred on zero";
    case DrawKind::kScaled:
      return "on larger inputs";
    case DrawKind::kParameters:
      return "with other parameters";
    case DrawKind::kLowBits:
      return "on inputs whose last digits round one way";
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

ProbeVerdict judge_probes(Precision precision, const std::vector<ProbeFailure>& failures) {
  ProbeVerdict verdict;
  for (const ProbeFailure& failure : failures) {
    const bool telling = failure.kind == DrawKind::kCentred || failure.kind == DrawKind::kLowBits;
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
              failure.kind == DrawKind::kParameters ? kGivenParametersOnly : kGivenDistributionOnly,
              failure);
  }
  return verdict;
}

}  // namespace kernelpro
