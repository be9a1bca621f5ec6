// SPDX-License-Identifier: Apache-2.0
// What became of the GPUs' time while a run searched. What limits a run is told by this: a GPU that
// waits for compilers is not made faster by another GPU beside it.
#pragma once

#include <string>

namespace kernelpro {

// Seconds, added up over the GPUs.
struct GpuUse {
  double preparing_s = 0;  // the reference's outputs were not computed yet
  double measuring_s = 0;  // checking, timing, profiling and observing
  double building_s = 0;   // nothing was built that could be measured
  double writing_s = 0;    // nothing was written that could be built
  double deciding_s = 0;   // the loop took a result or asked for candidates
  double together_s() const {
    return preparing_s + measuring_s + building_s + writing_s + deciding_s;
  }
};

// "measuring 71 % of the time, waiting for compilers 20 %, for candidates 9 %"; "" when nothing was
// counted. Shares below 1 % are left out.
std::string gpu_use_text(const GpuUse& use);

}  // namespace kernelpro
