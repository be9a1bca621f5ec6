// SPDX-License-Identifier: Apache-2.0
// The one registry of metric names, shared by store, report, tools and prompts. Names that Nsight
// Compute has are Nsight Compute's; ours are hierarchical, with dots. Adding one: a row in
// metrics.cc, or in the table of its source (metrics_static.cc, metrics_counters.cc,
// metrics_trace.cc).
#pragma once

#include <span>
#include <string_view>

#include "core/metric.h"

namespace kernelpro {

std::span<const Metric> metrics();
const Metric* find_metric(std::string_view name);  // nullptr: not registered

// Of them, the hardware counters that are collected per kernel: each name is one that CUPTI and
// Nsight Compute know on sm_90 (a test resolves them all without a GPU).
std::span<const Metric> counter_metrics();
// Of them, what a trace of a program or of a call shows.
std::span<const Metric> trace_metrics();

}  // namespace kernelpro
