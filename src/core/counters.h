// SPDX-License-Identifier: Apache-2.0
// Hardware counters of one call as a profiler gives them: launch by launch, under the registry's
// names (core/metrics.h). profile/collect/counters.h makes evidence of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence.h"
#include "core/launch_plan.h"

namespace kernelpro {

// How much is collected. kTriage: what tells the resource that holds a kernel (few passes); kFull:
// every row of counter_metrics().
enum class CounterSet { kOff, kTriage, kFull };
std::string_view counter_set_name(CounterSet set);  // "off", "triage", "full"
std::optional<CounterSet> counter_set_from_name(std::string_view name);

// The set's metrics, by their names in the registry.
std::vector<std::string> counters_of(CounterSet set);
// What `metric` is called on a chip ("GA100", "GH100", "GB202"): most names are the same on all.
// The chip need not have it.
std::string counter_on(std::string_view metric, std::string_view chip);
// The registry's name for one that a profiler printed on some chip; the name itself where there is
// no other.
std::string counter_from(std::string_view name);

// One profiled launch.
struct LaunchCounters {
  std::string function;                  // as in the cubin: mangled
  int node = -1;                         // its index in the plan's nodes; -1 unknown
  std::map<std::string, double> values;  // what was not read is not there
};

struct CounterAnswers {
  std::string source;  // "cupti" or "ncu"; "" when nothing was collected
  std::string chip;    // "GH100"; "" unknown
  CounterSet set = CounterSet::kOff;
  int passes = 0;                           // how often the call was run
  std::map<std::string, double> phases_ms;  // where the time went: "passes", "decode" ...
  std::vector<LaunchCounters> launches;     // in the order in which they ran
  std::string report;            // instead of launches, what `ncu --page raw --csv` printed
  int left_out = 0;              // launches of the call that were not profiled
  std::vector<Missing> missing;  // counters that could not be had, and why
};

// What a target can tell about one call of a correct candidate besides its verdict.
struct CallFacts {
  LaunchPlan plan;       // no nodes: not known
  AddressLayout layout;  // that the plan's addresses are of; no slots: the plan names tensors
  CounterAnswers counters;
};

std::string counter_answers_to_json(const CounterAnswers& answers);
// nullopt when the text is not such answers. Any bytes are safe.
std::optional<CounterAnswers> counter_answers_from_json(const std::string& json);

}  // namespace kernelpro
