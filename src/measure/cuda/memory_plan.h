// SPDX-License-Identifier: Apache-2.0
// How many input sets of a case a GPU holds, and in which width their expected results. Decided
// before anything is allocated. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "core/task/module.h"
#include "core/task/task.h"

namespace kernelpro {

// A GPU's memory, in bytes.
struct GpuRoom {
  double free_bytes = 0;
  double total_bytes = 0;
};

// Bytes, of one set unless noted.
struct MemoryNeed {
  double inputs = 0;
  double parameters = 0;
  double outputs = 0;
  double expected_wide = 0;    // expected results with floating types as doubles
  double expected_narrow = 0;  // in the declared types
  double workspace = 0;        // once for all sets
  bool module = false;         // only a module can give narrow results, and may share parameters
  double float64_bytes = 0;    // extra memory of the module's process to compute in float64
  double declared_bytes = 0;   // ... in the declared types
};

struct MemoryPlan {
  int rotation = 0;  // sets that are checked and timed in turn
  int extra = 0;     // further sets: one whose contents change, or that and those for probes
  bool wide = true;
  bool share_parameters = false;  // one memory for the parameters of all sets of the rotation
  double bytes = 0;               // all of it, the module's process included
  double held = 0;                // part of it that the judge holds, with a module's stage
  int sets() const { return rotation + extra; }
};

// Contexts of the judge, two workers and a module's process, and the memory of their libraries.
inline constexpr double kContextBytes = 6e9;
inline constexpr int kProbeSets = 4;  // whose contents stay for further evaluations
// Results cached from one set are wrong on another.
inline constexpr int kLeastSets = 2;

// `module`: null for native tasks.
MemoryNeed memory_need(const Task& task, const Case& c, const ModuleDescription* module,
                       double granularity);

// How many sets rotate if memory is no concern: four, and up to eight small ones, since the time of
// a short call depends on where its memory lies, and more places give a steadier median.
int sets_wanted(const MemoryNeed& need);

// The best plan that fits into `free_bytes`; nullopt if none does. More sets come first, up to
// `rotation` (at least two), then float64 before the declared types. `declared_only`: expected
// results in the declared types, and no sets besides the rotation.
std::optional<MemoryPlan> plan_memory(const MemoryNeed& need, double free_bytes, int rotation,
                                      bool declared_only);

// What the judge holds for two sets, the minimum for a case.
double least_bytes(const MemoryNeed& need);

// "case big needs 143.1 GB of GPU memory for two input sets (inputs ..., outputs ...), 130.0 GB are
// free". `of_others`: bytes that other programs hold, without which the case would fit (0: it would
// not): then the machine lacks something, else the case is too large.
Error memory_shortage(const MemoryNeed& need, const std::string& case_name, double free_bytes,
                      double of_others);

}  // namespace kernelpro
