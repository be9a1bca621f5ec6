// SPDX-License-Identifier: Apache-2.0
// How many input sets of a case a GPU holds, and in which width their expected results. Decided
// before anything is allocated. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/module.h"
#include "core/task.h"

namespace kernelpro {

// Bytes; of one set where not said otherwise.
struct MemoryNeed {
  double inputs = 0;
  double parameters = 0;
  double outputs = 0;
  double expected_wide = 0;    // expected results with floating types as doubles
  double expected_narrow = 0;  // in the declared types
  double workspace = 0;        // once
  bool module = false;         // only a module can give narrow results, and may share parameters
  double float64_bytes = 0;    // what the module's process takes besides to compute in float64
  double declared_bytes = 0;   // ... in the declared types
};

struct MemoryPlan {
  int rotation = 0;  // sets that are checked and timed in turn
  int extra = 0;     // sets besides: one whose content changes, or that and one for each probe
  bool wide = true;
  bool share_parameters = false;  // one memory for the parameters of all sets of the rotation
  double bytes = 0;               // all of it, the module's process included
  double held = 0;                // of it, what the judge holds as long as the case is open
  int sets() const { return rotation + extra; }
};

// Contexts of the judge, two workers and a module's process, and what their libraries take.
inline constexpr double kContextBytes = 6e9;
inline constexpr int kProbeSets = 4;
// What a kernel remembers of one set shows on another.
inline constexpr int kLeastSets = 2;

// `module`: null for native tasks.
MemoryNeed memory_need(const Task& task, const Case& c, const ModuleDescription* module,
                       double granularity);

// How many sets rotate where memory is no concern: four, and up to eight of small ones, since the
// time of a short call depends on where its memory lies, and more places give a steadier median.
int sets_wanted(const MemoryNeed& need);

// The best plan that fits into `free_bytes`: first as many sets as `rotation` asks for (at least
// two), then float64 against the declared types; nullopt when nothing does. `declared_only`: the
// expected results are wanted in the declared types, and no sets besides the rotation.
std::optional<MemoryPlan> plan_memory(const MemoryNeed& need, double free_bytes, int rotation,
                                      bool declared_only);

// What the judge holds for two sets: the least that a case can do with.
double least_bytes(const MemoryNeed& need);

// "case big needs 143.1 GB of GPU memory for two input sets (inputs ..., outputs ...), 130.0 GB are
// free".
std::string memory_shortage(const MemoryNeed& need, const std::string& case_name,
                            double free_bytes);

}  // namespace kernelpro
