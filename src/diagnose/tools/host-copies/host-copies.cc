// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.03;
// A program that runs once must copy its data to the GPU: report only a large share.
constexpr double kLeastShareOnce = 0.3;
// Pinned copies run about two to three times as fast as pageable ones.
constexpr double kPinnedLeaves = 0.45;

std::optional<Finding> host_copies(const Facts& facts) {
  const double span = facts("trace.span");
  const double count = facts("trace.copies_host");
  const double time_us = facts("trace.copies_host_us");
  if (span <= 0 || count <= 0 || time_us <= 0) return std::nullopt;
  const bool steady = facts.maybe("trace.periods").value_or(0) > 0;
  // Copies that overlap kernels cost the call nothing.
  const double alone_us =
      std::min(time_us, facts.maybe("trace.copies_host_alone_us").value_or(time_us));
  const double pageable = facts.maybe("trace.copies_pageable").value_or(0) / count;
  const double share = std::min(1.0, alone_us / span);
  if (share < (steady ? kLeastShare : kLeastShareOnce)) return std::nullopt;
  if (!steady && pageable < 0.5) return std::nullopt;

  Finding finding;
  finding.severity = share >= 0.3 && steady ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"trace.copies_host", "trace.copies_host_us", "trace.copies_host_bytes",
                     "trace.copies_pageable", "trace.span"};
  const double bytes = facts.maybe("trace.copies_host_bytes").value_or(0);
  finding.cause =
      number(count) + (count == 1 ? " copy" : " copies") + " between host and device (" +
      human_bytes(bytes) + ", " + per_second(1e6 * bytes / time_us, "B") +
      (pageable > 0 ? ", pageable host memory" : "") + (count == 1 ? ") takes " : ") take ") +
      percent(share) + " of " + human_us(span) + " while no kernel runs.";
  if (steady) {
    finding.prescriptions.push_back(
        {"host",
         "Keep the data on the device: upload constants and weights once, pass scalars as kernel "
         "arguments, decide on the device instead of reading a result back (.item(), .cpu()).",
         "the data changes with every call, or the host needs the result"});
  }
  if (pageable > 0) {
    finding.prescriptions.push_back(
        {"host",
         "Copy from and to pinned memory (cudaMallocHost, cudaHostRegister; PyTorch: "
         "pin_memory=True with non_blocking=True): pageable copies go through a staging buffer.",
         "the buffer is used only once: pinning it costs more than the copy"});
  }
  finding.prescriptions.push_back(
      {"streams",
       "Cut the copy into pieces and overlap them with the kernels on a second stream "
       "(cudaMemcpyAsync, events between the streams).",
       "the first kernel needs all of it at once and nothing else can run meanwhile"});
  // A necessary copy can still get faster or hide behind kernels.
  finding.likely_speedup = steady ? speedup_without(share) : 1 / (1 - share * (1 - kPinnedLeaves));
  const double idle_us = facts.maybe("trace.gaps_sync").value_or(0);
  finding.upper_speedup = speedup_without(std::min(0.95, share + idle_us / span));
  finding.sites = site_of(facts, {SiteKind::kCopy});
  return finding;
}

constexpr const char* kHostCopiesNeeds[] = {"trace.span", "trace.copies_host",
                                            "trace.copies_host_us"};

}  // namespace

extern const Tool kHostCopies;
const Tool kHostCopies{.name = "host-copies",
                       .summary = "Copies between host and device are on the call's path.",
                       .target = ToolTarget::kCuda,
                       .needs = kHostCopiesNeeds,
                       .analyse = host_copies,
                       .scope = Scope::kCall};

}  // namespace kernelpro
