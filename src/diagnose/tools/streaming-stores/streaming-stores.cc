// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

std::optional<Finding> streaming_stores(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  const double bytes = facts("task.compulsory_bytes");
  // Smaller outputs stay in a cache, where a streaming store costs more than it gains.
  if (bytes < 32e6 || facts("cpu.asm.hot.streaming_stores") > 0) return std::nullopt;
  const double fraction = roof.time_us > 0 ? roof.memory_floor_us / roof.time_us : 0;
  if (fraction < 0.4 || fraction >= 0.95) return std::nullopt;

  // Write-allocate: a stored line is read first, so an output costs its bytes twice. If the
  // outputs' share is unknown, assume the maximum, half of the compulsory bytes.
  const auto output = facts.maybe("task.output_bytes");
  const double share = std::clamp(output ? *output / bytes : 0.5, 0.0, 1.0);
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.metrics = {"cpu.asm.hot.streaming_stores", "task.compulsory_bytes", "timing.median"};
  finding.cause =
      "The hot loop has no streaming stores, so every output line is read before it "
      "is overwritten: up to " +
      times(1 + share) + " the compulsory " + human_bytes(bytes) + ", at " + percent(fraction) +
      " of the measured copy bandwidth.";
  finding.prescriptions = {
      {"streaming",
       "Write outputs that are not read again with non-temporal stores (`_mm256_stream_ps`, or "
       "`#pragma omp simd nontemporal`), whole lines at a time, with `_mm_sfence` at the end.",
       "the output is read again soon, or is written in pieces smaller than a cache line"}};
  finding.upper_speedup = 1 + share;
  finding.likely_speedup = 1 + share / 2;
  return finding;
}

constexpr const char* kStreamingStoresNeeds[] = {"cpu.asm.hot.streaming_stores",
                                                 "task.compulsory_bytes", "timing.median",
                                                 "ceiling.copy_bandwidth"};

}  // namespace

extern const Tool kStreamingStores;
const Tool kStreamingStores{
    .name = "streaming-stores",
    .summary = "Ordinary stores read every output line before they overwrite it.",
    .target = ToolTarget::kCpu,
    .bounds = kMemoryLike,
    .needs = kStreamingStoresNeeds,
    .analyse = streaming_stores};

}  // namespace kernelpro
