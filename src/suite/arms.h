// SPDX-License-Identifier: Apache-2.0
// Arms of an ablation: named sets of settings; every task is run under each. A setting that arms
// can vary is one row of arms.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "run/run.h"

namespace kernelpro {

struct Arm {
  std::string name = "base";  // "feedback=raw", "feedback=raw,seed=2"; also names its folder
  std::map<std::string, std::string> values = {};  // by row; other settings are unchanged
};

// Parses items such as "feedback=none,raw". Each value of each item is an arm; with `cross`, each
// combination of one value per item. No item: one arm, "base". Fails with kBadInput on an unknown
// row or value, on a row that is named twice, and on `cross` with fewer than two items.
Result<std::vector<Arm>> parse_arms(const std::vector<std::string>& items, bool cross);

// `base` with the arm's values applied. REQUIRES: the arm came from parse_arms.
RunSettings settings_of(const Arm& arm, RunSettings base);

}  // namespace kernelpro
