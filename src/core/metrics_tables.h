// SPDX-License-Identifier: Apache-2.0
// The registry's tables by source; include metrics.h instead.
#pragma once

#include <span>

#include "core/metric.h"

namespace kernelpro {

std::span<const Metric> static_metrics();  // ptxas, SASS, the launch plan, occupancy

}  // namespace kernelpro
