// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kernelpro {

// Windows for each of the two subjects, and their length, for measuring energy. An H200's counter
// updates ten times a second; five windows of a second vary by 0.1 to 0.3 %.
struct EnergyPlan {
  int windows = 3;
  double window_s = 0.5;
};

}  // namespace kernelpro
