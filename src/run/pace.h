// SPDX-License-Identifier: Apache-2.0
// How long a search will go on. Pure.
#pragma once

#include "run/store/settings.h"

namespace kernelpro {

// Until a budget ends the search: that of time, or that of evaluations at their pace so far, in
// seconds. 0: there is none, or nothing can be said yet.
double seconds_left(const RunSettings& settings, double elapsed_s, int evaluations);

}  // namespace kernelpro
