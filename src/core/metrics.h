// SPDX-License-Identifier: Apache-2.0
// The one registry of metric names, shared by store, report, tools and prompts. Metrics that Nsight
// Compute has keep its names; ours are hierarchical, with dots. To add one, add a row in metrics.cc
// or in the table of its source (metrics_static.cc, metrics_counters.cc, metrics_trace.cc).
#pragma once

#include <span>
#include <string_view>

#include "core/metric.h"

namespace kernelpro {

std::span<const Metric> metrics();
const Metric* find_metric(std::string_view name);  // nullptr: not registered

// The hardware counters among them, collected per kernel: CUPTI and Nsight Compute know each name
// on sm_90 (a test resolves them all without a GPU).
std::span<const Metric> counter_metrics();
// Those that come from a trace of a program or a call.
std::span<const Metric> trace_metrics();

}  // namespace kernelpro
