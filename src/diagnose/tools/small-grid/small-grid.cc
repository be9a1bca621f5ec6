// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kStageUs = 6;  // a second kernel's start and end

Finding base_finding(const std::string& cause, double upper) {
  Finding finding;
  finding.metrics = {"launch__grid_size", "launch__waves_per_multiprocessor",
                     "machine.parallel_units"};
  finding.cause = cause;
  finding.upper_speedup = upper;
  finding.likely_speedup = middle(1, upper);
  return finding;
}

Finding idle_multiprocessors(double grid, double waves, double units, double loss, double time_us) {
  const std::string cause = grid < units
                                ? number(grid) + " blocks for " + number(units) +
                                      " SMs: " + percent(loss) + " of them get no work."
                                : number(grid) + " blocks do not divide evenly among " +
                                      number(units) + " SMs, all resident at once: about " +
                                      percent(loss) + " of their time is idle.";
  Finding finding = base_finding(cause, speedup_without(loss));
  if (grid < units) {
    // Blocks are independent: throughput grows with the busy multiprocessors, at most up to all
    // block slots, until it hits a ceiling (the runner clamps both gains to the roofline). A second
    // stage usually combines the blocks' results.
    finding.likely_speedup = std::max(1.0, time_us / (time_us * grid / units + kStageUs));
    finding.upper_speedup = std::max(units / grid, 1 / waves);
  }
  finding.severity = loss >= 0.5 ? Severity::kCritical : Severity::kWarning;
  finding.prescriptions = {
      {"grid-size",
       "Use more, smaller blocks: several blocks per row with a second reduction stage, or split "
       "the summed dimension.",
       "the whole call takes only a few microseconds"},
      {"tile-size", "Compute a smaller tile per block.", "the tile feeds the tensor cores"}};
  return finding;
}

Finding tail_wave(double grid, double waves, double loss) {
  Finding finding =
      base_finding(number(grid) + " blocks make " + number(waves, 3) + " waves; the last one is " +
                       percent(waves - std::floor(waves)) + " full, about " + percent(loss) +
                       " of the time is lost to it.",
                   speedup_without(loss));
  finding.prescriptions = {
      {"grid-size",
       "Start as many blocks as fit at once and let each loop over the work (persistent grid), or "
       "choose the work per block so that the last wave is full.",
       "blocks take very different times"},
      {"block-size", "Another block size changes how many blocks a wave holds.", ""}};
  return finding;
}

std::optional<Finding> of_grid(const Facts& facts) {
  const double grid = facts("launch__grid_size");
  const double waves = facts("launch__waves_per_multiprocessor");
  const double units = facts("machine.parallel_units");
  if (grid <= 0 || waves <= 0 || units < 2 || facts("timing.median") < 5) return std::nullopt;
  if (waves <= 1) {
    // All blocks are resident at once, but unevenly spread over multiprocessors.
    const double per_unit = grid / units;
    const double loss = 1 - per_unit / std::ceil(per_unit);
    if (loss < 0.1) return std::nullopt;
    return idle_multiprocessors(grid, waves, units, loss,
                                facts("timing.median") * facts.maybe("kernel.share").value_or(1));
  }
  double loss = 1 - waves / std::ceil(waves);
  if (waves > 10 || loss < 0.1) return std::nullopt;
  // With counters: blocks of the next wave start as others end, and the last blocks share their
  // multiprocessor with fewer others.
  if (facts.maybe("sm__cycles_active.avg") && facts.maybe("gpc__cycles_elapsed.max")) {
    loss = facts.model().idle();
    if (loss < 0.1) return std::nullopt;
  }
  return tail_wave(grid, waves, loss);
}

std::optional<Finding> small_grid(const Facts& facts) {
  std::optional<Finding> finding = of_grid(facts);
  if (finding) {
    finding->sites =
        joined({site_of(facts, {SiteKind::kLaunch}), site_of(facts, {SiteKind::kGrid})});
  }
  return finding;
}

constexpr const char* kSmallGridNeeds[] = {"launch__grid_size", "launch__waves_per_multiprocessor",
                                           "machine.parallel_units", "timing.median"};

}  // namespace

extern const Tool kSmallGrid;
const Tool kSmallGrid{.name = "small-grid",
                      .summary = "The grid leaves SMs idle, from the start or in its last wave.",
                      .target = ToolTarget::kCuda,
                      .needs = kSmallGridNeeds,
                      .analyse = small_grid};

}  // namespace kernelpro
