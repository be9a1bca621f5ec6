// SPDX-License-Identifier: Apache-2.0
// task: scalar
// expect: correct
// One element.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) { *args.y = std::exp(*args.x) + 1; }
