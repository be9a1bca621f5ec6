// SPDX-License-Identifier: Apache-2.0
// The one registry of metric names, shared by store, report, tools and prompts. Metrics that Nsight
// Compute has keep its names; ours are hierarchical, with dots. To add one, add a row to the table
// of its family (metrics.cc, metrics_static.cc, metrics_counters.cc, metrics_trace.cc): the table
// says which level and scope its rows have. Neither these nor the family are ever read off a name.
#pragma once

#include <span>
#include <string_view>

#include "core/evidence/metric.h"

namespace kernelpro {

std::span<const Metric> metrics();
const Metric* find_metric(std::string_view name);  // nullptr: not registered

// Of kCounters, CUPTI and Nsight Compute know each name on sm_90 (a test resolves them all without
// a GPU).
std::span<const Metric> metrics_of(Family family);

}  // namespace kernelpro
