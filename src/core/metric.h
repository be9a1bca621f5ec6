// SPDX-License-Identifier: Apache-2.0
// One row of the registry (core/metrics.h).
#pragma once

#include <string_view>

namespace kernelpro {

struct Metric {
  std::string_view name;
  std::string_view unit;         // "us", "byte/s", "1" ...
  std::string_view description;  // one sentence
};

}  // namespace kernelpro
