// SPDX-License-Identifier: Apache-2.0
// The registry's tables by source; include metrics.h instead. All tables of a family are in one
// list, one after another.
#pragma once

#include <span>

#include "core/evidence/metric.h"

namespace kernelpro {

std::span<const MetricTable> static_tables();  // the launch plan, ptxas and occupancy, SASS
std::span<const MetricTable> counter_tables();
std::span<const MetricTable> trace_tables();

}  // namespace kernelpro
