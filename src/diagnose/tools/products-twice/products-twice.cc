// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "core/plan/kernel_name.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kWhole = 0.8;       // products of one kernel, of all that the task needs: at least
constexpr double kNoMore = 1.5;      // and at most
constexpr double kAlike = 1.25;      // one of the two over the other
constexpr double kUsual = 0.4;       // of the shorter one's time, what another way leaves out
constexpr double kLeastPart = 0.12;  // of the kernels' time, for each of the two

struct Multiplier {
  std::string name;
  double share = 0;
  double products = 0;  // of the task's
};

std::optional<Finding> products_twice(const Facts& facts) {
  if (facts.maybe("task.tf32").value_or(0) > 0) return std::nullopt;
  std::vector<Multiplier> found;
  for (const KernelEvidence& kernel : facts.kernels()) {
    const double products = facts.products_of_parts(kernel) / kFewestProducts;
    if (products < kWhole) continue;
    found.push_back({kernel.name, kernel.facts.get("kernel.share").value_or(0), products});
  }
  if (found.size() != 2) return std::nullopt;
  std::ranges::sort(found, {}, &Multiplier::share);
  const auto [fewer, more] = std::minmax(found[0].products, found[1].products);
  if (more > kNoMore || more > kAlike * fewer || found[0].share < kLeastPart) return std::nullopt;
  Finding finding;
  finding.likely_speedup = speedup_without(kUsual * found[0].share);
  finding.upper_speedup = speedup_without(found[0].share);
  finding.severity = Severity::kWarning;
  finding.metrics = {"kernel.share",
                     "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                     "task.matmul_flops"};
  const auto named = [](const Multiplier& each) {
    return "`" + one_line(short_kernel_name(each.name)) + "` (" + percent(each.share) +
           " of the kernels' time)";
  };
  finding.cause = named(found[0]) + " and " + named(found[1]) +
                  " each compute about as many products as the task has: all of them twice.";
  finding.prescriptions = {
      {"algorithm",
       "Where the first pass is for statistics alone, get them from the inputs: means are linear "
       "in them (sum the windows once, then multiply by the weights), and a sum of squares over "
       "all positions is w'Gw for each output channel, with G the Gram matrix of the windows: as "
       "large as the summed dimension, whatever the number of outputs.",
       "the summed dimension is longer than some hundred, or squares would cancel: centre the "
       "inputs, and sum in double"},
      {"fusion",
       "Keep the first pass's results: in shared memory or registers of blocks that all stay "
       "resident until the statistics are complete (a counter in the workspace for each group), or "
       "in memory, where writing and reading them takes less than the products.",
       "they fit nowhere on chip and their bytes take as long as the products"}};
  return finding;
}

constexpr const char* kProductsTwiceNeeds[] = {"timing.median", "task.matmul_flops",
                                               "ceiling.tensor_rate", "plan.kernels"};

}  // namespace

extern const Tool kProductsTwice;
const Tool kProductsTwice{
    .name = "products-twice",
    .summary = "Two kernels of the call each compute all of the task's matrix products.",
    .target = ToolTarget::kCuda,
    .needs = kProductsTwiceNeeds,
    .analyse = products_twice,
    .scope = Scope::kCall};

}  // namespace kernelpro
