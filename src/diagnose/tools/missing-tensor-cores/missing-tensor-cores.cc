// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

// The fraction of the wgmma rate that mma.sync reaches on Hopper (secondary sources: 50 to 63 %).
constexpr double kHmmaOnHopper = 0.62;
// The fraction of the ceiling that a simply pipelined wgmma kernel reaches (an H200: 0.65 to 0.75).
constexpr double kPlainWgmma = 0.7;
// How far a first kernel with matrix instructions gets toward mma.sync's rate, in logarithms (an
// H200).
constexpr double kFirstMatrixKernel = 0.75;

constexpr double kLeastShare = 0.3;  // of the call's time
// In parts: their rate over that of fp32 multiply-adds, from which it is worth it; and what a
// kernel reaches of the latter, below which other flaws come first.
constexpr double kWorthParts = 1.25;
constexpr double kGoodFma = 0.4;
constexpr double kFmaBusy = 0.35;  // of its peak: the kernel is the one that multiplies
constexpr double kFused = 0.2;     // without counters: of the loop
// Products that plain multiply-adds would compute in this part of the time are not what takes it.
constexpr double kTooFewProducts = 0.05;
constexpr double kWholeCall = 0.8;  // from this share on, the call's bytes are the kernel's
// In code without a task: multiply-adds for each half that is widened, their part of the loop, and
// how busy their pipe is.
constexpr double kReuse = 1.5;
constexpr double kMostOfLoop = 0.5;
constexpr double kPipeBusy = 0.4;
// Those that an exponential, a root or a quotient needs of its own around its special function.
constexpr double kOfSpecial = 6;
// mma.sync's rate over that of fp32 multiply-adds (an H200: 62 % of 990 TFLOP/s over 67).
constexpr double kMatrixOverFma = 9;

std::optional<Finding> warpgroup_form(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  if (!facts.has(GpuFeature::kWgmma) || roof.theory == Bound::kMemory || !roof.known() ||
      roof.fraction > 0.8) {
    return std::nullopt;
  }
  // Do operands come straight from global memory or, as far as known, through shared memory?
  const auto shared = facts.maybe("sass.hot.shared_loads");
  const bool unstaged =
      shared && *shared <= 0 && facts.maybe("sass.hot.global_loads").value_or(0) > 0;
  Finding finding;
  finding.severity = Severity::kInfo;
  finding.metrics = {"sass.hmma", "sass.hgmma", "task.matmul_flops", "ceiling.tensor_rate"};
  finding.cause = "The matrix work issues as " + number(facts("sass.hmma")) +
                  " HMMA and no HGMMA instructions, at " + percent(roof.fraction) +
                  " of the ceiling; mma.sync reaches about " + percent(kHmmaOnHopper) +
                  " of what wgmma does on this architecture." +
                  (unstaged ? " Each warp loads its operands straight from global memory; wgmma "
                              "reads them from shared memory."
                            : "");
  finding.prescriptions = {
      {"tensor-cores",
       "Use warpgroup matrix instructions (`wgmma.mma_async`, for sm_90a) with operands in "
       "swizzled shared memory.",
       "the product has fewer than a wave of 128 x 128 tiles, or is bound by memory"},
      {"pipeline", "Feed them with asynchronous copies, three or four stages deep.", ""}};
  if (unstaged) {
    finding.severity = Severity::kWarning;
    finding.prescriptions.push_back(
        {"shared-memory",
         "Until then, stage the tiles in shared memory and load them with `ldmatrix`.", ""});
  }
  // mma.sync kernels seldom reach its rate either.
  finding.upper_speedup = roof.most();
  finding.likely_speedup =
      std::max(middle(1, 1 / kHmmaOnHopper),
               unstaged ? middle(1, finding.upper_speedup) : kPlainWgmma / roof.fraction);
  return finding;
}

std::vector<Prescription> first_matrix_kernel(const Facts& facts) {
  return {{"tensor-cores",
           facts.has(GpuFeature::kWgmma) ? "Multiply with matrix instructions: `nvcuda::wmma` or "
                                           "`mma.sync.m16n8k16` first, then `wgmma` (sm_90a)."
                                         : "Multiply with matrix instructions: `nvcuda::wmma` or "
                                           "`mma.sync.m16n8k16`.",
           "a dimension of the product is below 16, or the contract needs more than fp32 sums of "
           "half-precision products"},
          {"shared-memory",
           "Stage the operand tiles in shared memory and load them with `ldmatrix`.", ""}};
}

// Where the task is not known: the hot loop widens halves and uses each of them in many fp32
// multiply-adds, which keep their pipe busy.
std::optional<Finding> products_in_the_code(const Facts& facts) {
  const auto hot = [&](const char* name) { return facts.maybe(name).value_or(0); };
  const double ffma = hot("sass.hot.ffma"), widened = hot("sass.hot.half_conversions");
  if (facts("sass.hmma") > 0 || facts("sass.hgmma") > 0) return std::nullopt;
  const double products = ffma - kOfSpecial * hot("sass.hot.mufu");
  if (widened <= 0 || products < kReuse * widened) return std::nullopt;
  if (products < kMostOfLoop * hot("sass.hot.instructions")) return std::nullopt;
  const KernelModel& model = facts.model();
  const double busy = model.busy(Resource::kFma).value_or(0);
  if (!model.counted() || busy < kPipeBusy) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kCritical;
  finding.metrics = {"sass.hot.ffma", "sass.hot.half_conversions", "sass.hmma", "sass.hgmma"};
  finding.cause = "The hot loop widens " + number(widened) + " half-precision values and spends " +
                  number(ffma) + " of its " + number(hot("sass.hot.instructions")) +
                  " instructions on fp32 multiply-adds of them, without a single matrix "
                  "instruction; the multiply-add pipe is busy " +
                  percent(busy) + " of the time.";
  finding.prescriptions = first_matrix_kernel(facts);
  finding.upper_speedup = kMatrixOverFma;
  finding.likely_speedup = std::pow(kMatrixOverFma, kFirstMatrixKernel);
  return finding;
}

// Products in double precision, as exact as fp32's owe and no faster than multiply-adds.
bool on_fp64_units(const Facts& facts) {
  const double wide = facts.maybe("sass.hot.dmma").value_or(0);
  return wide > 0 && facts.maybe("sass.hot.hmma").value_or(0) <= wide;
}

// Whether it is this kernel of the call that multiplies.
bool multiplies(const Facts& facts) {
  if (on_fp64_units(facts)) return true;
  const auto hot = [&](const char* name) { return facts.maybe(name).value_or(0); };
  const auto busy = facts.model().busy(Resource::kFma);
  return busy ? *busy >= kFmaBusy
              : hot("sass.hot.fp32_fused") >= kFused * hot("sass.hot.instructions");
}

// The fp32 operations that it spends on products: those of the task, or what its multiply-add pipe
// did where it needs fewer (Winograd, a sum that was folded in). 0: unknown.
double operations(const Facts& facts, double kernel_us) {
  if (!facts.roofline().less_work) return facts("task.matmul_flops");
  const double busy = facts.model().busy(Resource::kFma).value_or(0);
  // Adds and multiplies by themselves, as of an epilogue, stay.
  const double fused = facts.maybe("sass.hot.fp32_fused").value_or(0) /
                       std::max(1.0, facts.maybe("sass.hot.ffma").value_or(0));
  return fused * busy / resource_limit(Resource::kFma) * facts("ceiling.fma_rate") * kernel_us *
         1e-6;
}

// fp32 products on multiply-adds, which matrix units do faster in parts.
std::optional<Finding> fp32_products(const Facts& facts) {
  const double fma = facts.maybe("ceiling.fma_rate").value_or(0);
  const double rate = facts("ceiling.tensor_rate") / kProductsOfParts;
  const bool matrix = (facts("sass.hmma") > 0 && !on_fp64_units(facts)) ||
                      facts.maybe("plan.matrix_elsewhere").value_or(0) > 0;
  if (matrix || fma <= 0 || rate < kWorthParts * fma || !multiplies(facts)) return std::nullopt;
  const Roofline& roof = facts.roofline();
  const double share = facts.maybe("kernel.share").value_or(1);
  const double us = roof.time_us * share;
  const double flops = operations(facts, us);
  if (flops / fma * 1e6 < kGoodFma * us) return std::nullopt;
  const double memory_us = share >= kWholeCall ? roof.memory_floor_us : 0;
  const double matrix_us = flops / rate * 1e6;
  // A memory-bound product gains nothing from matrix units (a matrix times a vector).
  if (us < kWorthParts * std::max(memory_us, matrix_us)) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kCritical;
  finding.another_unit = true;
  finding.metrics = {"task.matmul_flops", "sass.hmma", "sass.hgmma", "ceiling.tensor_rate",
                     "timing.median"};
  finding.cause =
      number(flops * 1e-9, 3) + " GFLOP of fp32 " +
      (roof.less_work ? "multiply-adds, fewer than the definition's, take "
                      : "matrix products take ") +
      human_us(us) +
      (on_fp64_units(facts) ? " on FP64 matrix units" : " without a single matrix instruction") +
      "; at the measured rate of the tensor cores (" + per_second(rate, "FLOP") +
      " for operands in three bf16 parts) and bandwidth they need " +
      human_us(std::max(memory_us, matrix_us)) + ".";
  finding.prescriptions = advice_to_split();
  const double reached = facts.has(GpuFeature::kWgmma) ? kPlainWgmma : kHmmaOnHopper;
  const double likely_us = matrix_us * kLikelyProducts / kProductsOfParts / reached;
  finding.likely_speedup = std::max(1.0, us / std::max(memory_us, likely_us));
  finding.upper_speedup = us / std::max(memory_us, matrix_us * kFewestProducts / kProductsOfParts);
  return finding;
}

std::optional<Finding> missing_tensor_cores(const Facts& facts) {
  if (!facts.maybe("task.flops")) {
    std::optional<Finding> found = products_in_the_code(facts);
    if (found) {
      found->sites = joined({line_of(facts, {"sass.hot.fp32_fused", "sass.hot.ffma"}),
                             loop_of(facts, {"sass.hot.fp32_fused", "sass.hot.ffma"})});
    }
    return found;
  }
  for (const char* name : {"task.matmul_flops", "task.half_inputs", "ceiling.tensor_rate"}) {
    if (!facts.maybe(name)) return std::nullopt;
  }
  const double flops = facts("task.flops");
  const double matmul = facts("task.matmul_flops");
  const bool half = facts("task.half_inputs") > 0;
  const bool tf32 = !half && facts.maybe("task.tf32").value_or(0) > 0;
  const double fma = facts.maybe("ceiling.fma_rate").value_or(0);
  const double rate = facts("ceiling.tensor_rate") * (half ? 1 : kTf32Rate);
  // The products belong to the call; kernels beside the one that computes them have none.
  const bool elsewhere = facts.maybe("plan.matrix_elsewhere").value_or(0) > 0;
  if (facts.maybe("kernel.share").value_or(elsewhere ? 0 : 1) < kLeastShare) return std::nullopt;
  if (matmul <= 0 || matmul < 0.5 * flops) return std::nullopt;
  if (facts("ceiling.tensor_rate") <= 0 || facts("sass.hgmma") > 0) return std::nullopt;
  if (!half && !tf32) return fp32_products(facts);
  if (facts("sass.hmma") > 0 && !on_fp64_units(facts)) return warpgroup_form(facts);
  if (elsewhere && !multiplies(facts)) return std::nullopt;

  const Roofline& roof = facts.roofline();
  const double matrix_us = matmul / rate * 1e6;
  const double possible = std::max(roof.memory_floor_us, matrix_us);
  // A memory-bound product gains nothing from matrix units (a matrix times a vector).
  if (possible <= 0 || roof.time_us < 1.25 * possible) return std::nullopt;
  if (fma > 0 && matmul / fma * 1e6 < kTooFewProducts * roof.time_us) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kCritical;
  finding.metrics = {"task.matmul_flops", "sass.hmma", "sass.hgmma", "ceiling.tensor_rate",
                     "timing.median"};
  finding.cause =
      number(matmul * 1e-9, 3) + " GFLOP of " + std::string(half ? "half-precision" : "TF32") +
      " matrix products take " + human_us(roof.time_us) +
      (on_fp64_units(facts) ? " on FP64 matrix units" : " without a single matrix instruction") +
      "; at the measured rate of the tensor cores (" + per_second(rate, "FLOP") +
      ") and bandwidth they need " + human_us(possible) + ".";
  finding.prescriptions = first_matrix_kernel(facts);
  finding.upper_speedup = roof.time_us / possible;
  // mma.sync as a first step: a faster unit needs a faster operand feed. A gap beyond the ratio of
  // the two rates is due to other flaws.
  double gap =
      std::max(1.0, roof.time_us / std::max(roof.memory_floor_us, matrix_us / kHmmaOnHopper));
  if (fma > 0) gap = std::min(gap, std::max(1.0, kHmmaOnHopper * rate / fma));
  finding.likely_speedup = std::pow(gap, kFirstMatrixKernel);
  return finding;
}

constexpr const char* kMissingTensorCoresNeeds[] = {"sass.hmma", "sass.hgmma", "timing.median"};

}  // namespace

extern const Tool kMissingTensorCores;
const Tool kMissingTensorCores{
    .name = "missing-tensor-cores",
    .summary =
        "Matrix products do not use the fastest matrix instructions that their precision allows.",
    .target = ToolTarget::kCuda,
    .bounds = kNotMemoryBound,
    .needs = kMissingTensorCoresNeeds,
    .analyse = missing_tensor_cores};

}  // namespace kernelpro
