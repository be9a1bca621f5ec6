// SPDX-License-Identifier: Apache-2.0
// How the GPUs spent their time during a search. It shows what limits a run: a GPU that waits for
// compilers gains nothing from a second GPU.
#pragma once

#include <string>

namespace kernelpro {

// Seconds, summed over the GPUs.
struct GpuUse {
  double preparing_s = 0;  // waiting for the reference's outputs
  double measuring_s = 0;  // checking, timing, profiling and observing
  double building_s = 0;   // nothing built yet to measure
  double writing_s = 0;    // nothing written yet to build
  double deciding_s = 0;   // the loop processed a result or requested candidates
  double together_s() const {
    return preparing_s + measuring_s + building_s + writing_s + deciding_s;
  }
};

// "measuring 71 % of the time, waiting for compilers 20 %, for candidates 9 %"; "" when nothing was
// counted. Shares below 1 % are omitted.
std::string gpu_use_text(const GpuUse& use);

}  // namespace kernelpro
