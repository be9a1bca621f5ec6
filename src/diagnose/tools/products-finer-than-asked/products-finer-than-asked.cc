// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kTwice = 1.5;  // 16-bit products for each of the task's: TF32's, which take two
constexpr double kMany = 2.5;   // the same, in parts: three, as a rule
constexpr double kUsual = 0.5;  // of what a step from TF32 to fp16 may save
constexpr double kOfTheWork = 0.5;  // matrix products, of the task's operations
constexpr double kLeastGain = 1.05;
constexpr double kLeastShare = 0.1;  // of the call, of a kernel whose products are TF32's
constexpr const char* kTensorBusy =
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed";

// What the call's matrix units do.
struct Products {
  double halves = 0;  // of 16-bit operands, for each of the task's
  double busy = 0;    // share of the call
  bool tf32 = false;  // there are instructions on TF32 operands
};

Products products(const Facts& facts) {
  Products all;
  const auto add = [&](double halves, std::optional<double> busy, double share) {
    all.halves += halves;
    all.busy += share * std::min(1.0, busy.value_or(0) / 100 / resource_limit(Resource::kTensor));
  };
  constexpr const char* kTf32 = "sass.tf32_products";
  all.tf32 = facts.maybe(kTf32).value_or(0) > 0;
  for (const KernelEvidence& kernel : facts.kernels()) {
    add(facts.products_of_parts(kernel), kernel.facts.get(kTensorBusy),
        kernel.facts.get("kernel.share").value_or(0));
    const bool matters = kernel.facts.get("kernel.share").value_or(0) >= kLeastShare;
    all.tf32 = all.tf32 || (matters && kernel.facts.get(kTf32).value_or(0) > 0);
  }
  if (facts.kernels().empty()) add(facts.products_of_parts(), facts.maybe(kTensorBusy), 1);
  return all;
}

std::optional<Finding> products_finer_than_asked(const Facts& facts) {
  if (facts.maybe("task.tf32").value_or(0) <= 0 ||
      facts.maybe("task.half_inputs").value_or(0) > 0 ||
      facts("task.matmul_flops") < kOfTheWork * facts("task.flops")) {
    return std::nullopt;
  }
  const auto [now, busy, tf32] = products(facts);
  const bool in_parts = now >= kMany;
  // Without TF32's instructions, fewer than three products pad tiles.
  if (!in_parts && (!tf32 || now < kTwice)) return std::nullopt;
  const double surplus = 1 - 1 / now;
  Finding finding;
  finding.likely_speedup =
      speedup_without(busy * (in_parts ? 1 - 1 / kTf32Rate / now : kUsual * surplus));
  finding.upper_speedup = speedup_without(busy * surplus);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = in_parts ? Severity::kCritical : Severity::kWarning;
  finding.share = busy;
  finding.metrics = {kTensorBusy, "task.matmul_flops", "task.tf32", "ceiling.tensor_rate",
                     "timing.median"};
  finding.cause =
      "The matrix units are busy " + percent(busy) + " of the call and take the time of about " +
      number(now, 2) + " products of 16-bit operands for each of the task's " +
      number(facts("task.matmul_flops") * 1e-9, 3) + " GFLOP: " +
      (in_parts ? "fp32's precision, in parts, where the contract allows TF32. One TF32 "
                  "product takes the time of two of them, one fp16 product that of one."
                : "that of TF32 products. fp16 has TF32's 10 bits at twice its rate.");
  finding.sites = line_of(facts, {"sass.hot.hgmma", "sass.hot.hmma"});
  finding.prescriptions = {
      {"tensor-cores",
       "Multiply once, in fp16: scaled by a power of two from the data, for each row and column, "
       "so that the largest is just below 2^15, it has TF32's 10 bits at twice its rate and half "
       "its bytes.",
       "values 2^28 times below their row's largest decide results, or scaling and rounding need a "
       "pass of their own that takes as long"}};
  if (in_parts) {
    finding.prescriptions.push_back(
        {"tensor-cores",
         "Multiply once, in TF32: k8 instructions on the fp32 operands as they lie, rounded with "
         "`cvt.rna.tf32.f32` where a pass over them exists anyway; no parts, no scales, one "
         "accumulator.",
         "an operand of wgmma is not K-major (TF32 must be): transpose it on its way in"});
  }
  return finding;
}

constexpr const char* kProductsFinerThanAskedNeeds[] = {"task.matmul_flops", "task.flops",
                                                        "ceiling.tensor_rate", "timing.median"};

}  // namespace

extern const Tool kProductsFinerThanAsked;
const Tool kProductsFinerThanAsked{
    .name = "products-finer-than-asked",
    .summary = "Matrix units multiply more finely than a contract that allows TF32 asks.",
    .target = ToolTarget::kCuda,
    .bounds = kNotMemoryBound,
    .needs = kProductsFinerThanAskedNeeds,
    .analyse = products_finer_than_asked,
    .scope = Scope::kCall};

}  // namespace kernelpro
