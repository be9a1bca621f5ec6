// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kOfTheWork = 0.5;  // products, of the task's operations
constexpr double kReached = 0.7;    // of the tensor cores' rate, by a plain kernel (an H200)
constexpr double kLeastGain = 1.25;
constexpr double kSeen = 0.5;  // of the time, by kernels whose machine code is known

// Whether the machine code of the call's kernels shows that none multiplies on tensor cores.
bool off_matrix_units(const Facts& facts) {
  double seen = 0;
  for (const KernelEvidence& kernel : facts.kernels()) {
    if (has_matrix_products(kernel.facts)) return false;
    if (kernel.facts.get("sass.hmma")) seen += kernel.facts.get("kernel.share").value_or(0);
  }
  return seen >= kSeen;
}

std::optional<Finding> products_off_tensor_cores(const Facts& facts) {
  const double time_us = facts("timing.median"), flops = facts("task.matmul_flops");
  const double tensor = facts("ceiling.tensor_rate"), copy = facts("ceiling.copy_bandwidth");
  const double half = facts.maybe("task.half_inputs").value_or(1);
  if (half > 0 || facts.maybe("task.tf32").value_or(0) > 0) return std::nullopt;
  if (flops < kOfTheWork * facts("task.flops") || !off_matrix_units(facts)) return std::nullopt;
  double timed = 0, products = 0, bytes = 0;
  const OperatorCall* longest = nullptr;
  for (const OperatorCall& call : facts.operators()) {
    timed += call.us;
    if (call.kind != OperatorKind::kProduct) continue;
    products += call.us;
    bytes += call.read_bytes + call.written_bytes;
    if (longest == nullptr || call.us > longest->us) longest = &call;
  }
  if (longest == nullptr || !(products > 0) || !(time_us > 0) || tensor <= 0 || copy <= 0) {
    return std::nullopt;
  }
  // Kernels are timed one by one, from a cold L2.
  const double now = products * std::min(1.0, time_us / timed), others = time_us - now;
  const double memory_us = 1e6 * bytes / copy;
  const auto after = [&](double parts, double reached) {
    return others + std::max(memory_us, 1e6 * flops * parts / tensor / reached);
  };
  Finding finding;
  finding.likely_speedup = time_us / after(kLikelyProducts, kReached);
  // Of one fused kernel.
  finding.upper_speedup =
      time_us / std::max(facts.roofline().memory_floor_us, 1e6 * flops * kFewestProducts / tensor);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kCritical;
  finding.another_unit = true;
  finding.share = now / time_us;
  finding.metrics = {"task.matmul_flops", "ceiling.tensor_rate", "timing.median"};
  finding.cause = number(flops * 1e-9, 3) + " GFLOP of fp32 products take " +
                  percent(now / time_us) + " of " + human_us(time_us) + " (" +
                  operator_words(longest->name, longest->where) +
                  ") without a matrix instruction; on tensor cores they need " +
                  human_us(1e6 * flops * kProductsOfParts / tensor) + " in three bf16 parts, " +
                  human_us(1e6 * flops * kFewestProducts / tensor) + " in two fp16 parts.";
  finding.prescriptions = advice_to_split();
  return finding;
}

constexpr const char* kProductsOffTensorCoresNeeds[] = {
    "timing.median", "task.matmul_flops",      "task.flops",
    "plan.kernels",  "ceiling.copy_bandwidth", "ceiling.tensor_rate"};

}  // namespace

extern const Tool kProductsOffTensorCores;
const Tool kProductsOffTensorCores{
    .name = "products-off-tensor-cores",
    .summary = "The fp32 products of a PyTorch module run on multiply-adds.",
    .target = ToolTarget::kCuda,
    .needs = kProductsOffTensorCoresNeeds,
    .analyse = products_off_tensor_cores,
    .scope = Scope::kCall};

}  // namespace kernelpro
