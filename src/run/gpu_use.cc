// SPDX-License-Identifier: Apache-2.0
#include "run/gpu_use.h"

#include <cmath>

#include "base/text.h"

namespace kernelpro {

std::string gpu_use_text(const GpuUse& use) {
  const double all = use.together_s();
  if (all <= 0) return "";
  const auto percent = [](double share) { return number(std::round(share), 3) + " %"; };
  std::string text = "measuring " + percent(100 * use.measuring_s / all) + " of the time";
  bool waits = false;
  const auto wait = [&](double seconds, const char* what) {
    const double share = 100 * seconds / all;
    if (share < 1) return;
    text += (waits ? ", for " : ", waiting for ") + (what + (" " + percent(share)));
    waits = true;
  };
  wait(use.preparing_s, "the reference");
  wait(use.building_s, "compilers");
  wait(use.writing_s, "candidates");
  wait(use.deciding_s, "the loop");
  return text;
}

}  // namespace kernelpro
