// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kMany = 4.5;       // products of parts for each of the task's
constexpr double kPadded = 3.3;     // the same, in two parts
constexpr double kUsual = 0.5;      // of a surplus, what a change removes
constexpr double kBusy = 0.3;       // of what good kernels take from the matrix units
constexpr double kOfTheWork = 0.5;  // matrix products, of the task's operations
constexpr double kLeastGain = 1.05;
constexpr double kFewerParts = 0.67;  // parts of an operand: two instead of three

// The parts are as few as they can be, and the matrix units multiply what the task does not ask
// for.
std::optional<Finding> padded(const Facts& facts, double now) {
  const KernelAccount* account = facts.account();
  if (account == nullptr || account->us <= 0 || now < kPadded) return std::nullopt;
  const double surplus = account->part(PartKind::kSurplus) / account->us;
  Finding finding;
  finding.likely_speedup = speedup_without(kUsual * surplus);
  finding.upper_speedup = speedup_without(surplus);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.share = surplus;
  finding.metrics = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                     "task.matmul_flops", "ceiling.tensor_rate", "timing.median"};
  finding.cause = "The matrix units compute about " + number(now / kFewestProducts, 3) +
                  " times the products that operands in two parts need: the rest multiplies "
                  "padding of tiles and of the summed dimension, or elements outside the tensor.";
  finding.sites = line_of(facts, {"sass.hot.hgmma", "sass.hot.hmma"});
  finding.prescriptions = {
      {"tile-size",
       "Choose tiles that cover the outputs without a remainder: number pixels through rows and "
       "images instead of padding each row, give the remainder a smaller instruction (any n that "
       "is a multiple of 8).",
       "addresses would no longer be affine, and gathers cost more than the padding"},
      {"layout",
       "Pack the summed dimension: let the window's rows and the channels fill the instruction's "
       "k together, and leave out steps that are zero at a border.",
       "pieces would start at addresses that are no multiple of 16 bytes"}};
  return finding;
}

std::optional<Finding> products_in_parts(const Facts& facts) {
  if (facts("task.half_inputs") > 0 || facts.maybe("task.tf32").value_or(0) > 0) {
    return std::nullopt;
  }
  const double matrix =
      facts.maybe("sass.hgmma").value_or(0) + facts.maybe("sass.hmma").value_or(0);
  if (matrix <= 0 || facts("task.matmul_flops") < kOfTheWork * facts("task.flops")) {
    return std::nullopt;
  }
  const KernelModel& model = facts.model();
  const double busy = model.busy(Resource::kTensor).value_or(0);
  if (model.demand(Resource::kTensor) < kBusy) return std::nullopt;
  const double now = facts.products_of_parts();
  if (now < kMany) return padded(facts, now);
  Effect effect;
  effect.scale(Resource::kTensor, kFewestProducts / now);
  effect.scale(Resource::kL1, kFewerParts).scale(Resource::kIssue, kFewerParts);
  effect.scale(Resource::kAlu, kFewerParts);
  effect.waiting = kFewerParts;
  Finding finding;
  set_gain(facts, effect, &finding);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kCritical;
  finding.metrics = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                     "task.matmul_flops", "ceiling.tensor_rate", "timing.median"};
  finding.cause = "The matrix units are busy " + percent(busy) + " of the time and compute about " +
                  number(std::round(now)) + " products of parts for each of the task's " +
                  number(facts("task.matmul_flops") * 1e-9, 3) +
                  " GFLOP; two fp16 parts need three.";
  finding.sites = line_of(facts, {"sass.hot.hgmma", "sass.hot.hmma"});
  finding.prescriptions = {
      {"tensor-cores",
       "Split into two fp16 parts, high = half(s * x) and low = half(2048 * (s * x - high)), with "
       "s a power of two taken from the data, for each row of the left operand and each column of "
       "the right, that brings the largest magnitude to 1. Add up high * high in one fp32 "
       "accumulator, "
       "high * low + low * high in another, and their sum, the second over 2048, over both scales.",
       "the sums are short (below some 256 terms), as the parts keep 22 bits and not 24; or rows "
       "hold values far below their largest that decide results"},
      {"tensor-cores",
       "Keep bf16 parts, and leave out those of the six products whose operands are zero or exact "
       "in fewer parts (a mask, small integers).",
       ""}};
  return finding;
}

constexpr const char* kProductsInPartsNeeds[] = {
    "task.matmul_flops", "task.flops", "task.half_inputs", "ceiling.tensor_rate", "timing.median"};

}  // namespace

extern const Tool kProductsInParts;
const Tool kProductsInParts{
    .name = "products-in-parts",
    .summary = "Matrix units compute more products of parts than fp32 operands need.",
    .target = ToolTarget::kCuda,
    .bounds = kNotMemoryBound,
    .needs = kProductsInPartsNeeds,
    .analyse = products_in_parts};

}  // namespace kernelpro
