// SPDX-License-Identifier: Apache-2.0
// What the registry (core/evidence/metrics.h) says about a metric: its unit, how well it is known,
// what it is about, and which family it belongs to.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace kernelpro {

// From best to worst: a finding states the weakest level that it relies on.
enum class Level { kCounters, kStatic, kTiming };
std::string_view level_name(Level level);
std::optional<Level> level_from_name(std::string_view name);

// What a metric is about. Those of a kernel are in its own evidence if the call has several.
enum class Scope { kTask, kMachine, kCall, kKernel };

// Metrics that have the same source, and so are missing together and for the same reason.
enum class Family {
  kTask,       // what the task asks for
  kCeilings,   // the machine's limits, and the floors that follow from them
  kTiming,     // the candidate's time, and the rates that follow from it
  kLoad,       // what else the machine did meanwhile
  kProcessor,  // what the processor did during calls (CPU target)
  kHostCode,   // the candidate's machine code (CPU target)
  kPlan,       // the call's graph, and each kernel's place in it
  kLaunch,     // a kernel's largest launch
  kResources,  // registers, spills, shared memory, and the occupancy that follows
  kSass,       // a kernel's machine code
  kCounters,   // hardware counters
  kSamples,    // program-counter samples of a kernel (core/evidence/places.h)
  kTrace,      // a trace of a call or of a whole program
};
inline constexpr int kFamilies = 13;
// In JSON: "ceilings".
std::string_view family_name(Family family);
std::optional<Family> family_from_name(std::string_view name);
// For people: "hardware counters".
std::string_view family_words(Family family);

// A row as the tables have it.
struct MetricRow {
  std::string_view name;
  std::string_view unit;         // "us", "byte/s", "1" ...
  std::string_view description;  // one sentence
};

// Rows that have all the rest in common.
struct MetricTable {
  Family family;
  Level level;
  Scope scope;
  std::span<const MetricRow> rows;
};

struct Metric {
  std::string_view name;
  std::string_view unit;
  std::string_view description;
  Family family;
  Level level;  // of its usual source; an observation has its own (core/evidence/evidence.h)
  Scope scope;
};

}  // namespace kernelpro
