// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/cross_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "core/task/inputs.h"

namespace kernelpro {

std::string disagreement(const Shaped& output, const Expected& host, const std::string& device) {
  const double tolerance = tolerance_of(*output.tensor);
  for (std::int64_t i = 0; i < output.elements; ++i) {
    const auto at = static_cast<std::size_t>(i);
    double got = 0, want = 0, scale = 0;
    if (is_floating(output.tensor->dtype)) {
      std::memcpy(&got, device.data() + at * sizeof got, sizeof got);
      want = host.values[at];
      scale = std::max(std::fabs(want), host.rms);
    } else {
      got = element_as_double(output.tensor->dtype, device.data(), i);
      want = element_as_double(output.tensor->dtype, host.bytes.data(), i);
    }
    const bool same = got == want || (std::isnan(got) && std::isnan(want)) ||
                      std::fabs(got - want) <= tolerance * scale;
    if (!same) {
      return "at " + coordinates(output.shape, i) + " " + number(want, 9) + " and " +
             number(got, 9);
    }
  }
  return "";
}

}  // namespace kernelpro
