// SPDX-License-Identifier: Apache-2.0
// The one registry of metric names, shared by store, report, tools and prompts. Names that Nsight
// Compute has are Nsight Compute's; ours are hierarchical, with dots. Adding one: a row in
// metrics.cc.
#pragma once

#include <span>
#include <string_view>

namespace kernelpro {

struct Metric {
  std::string_view name;
  std::string_view unit;         // "us", "byte/s", "1" ...
  std::string_view description;  // one sentence
};

std::span<const Metric> metrics();
const Metric* find_metric(std::string_view name);  // nullptr: not registered

}  // namespace kernelpro
