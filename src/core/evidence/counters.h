// SPDX-License-Identifier: Apache-2.0
// Hardware counters of one call, as a profiler reports them: per launch, under the registry's names
// (core/evidence/metrics.h). profile/collect/counters.h turns them into evidence.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/missing.h"
#include "core/evidence/operators.h"
#include "core/evidence/samples.h"
#include "core/plan/launch_plan.h"

namespace kernelpro {

// Which counters to collect. kTriage: enough to find the limiting resource (few passes); kFull:
// every metric of the family. Program-counter samples come with both.
enum class CounterSet { kOff, kTriage, kFull };
std::string_view counter_set_name(CounterSet set);  // "off", "triage", "full"
std::optional<CounterSet> counter_set_from_name(std::string_view name);

// The set's metrics, by registry name.
std::vector<std::string> counters_of(CounterSet set);
// The name of `metric` on a chip ("GA100", "GH100", "GB202"): most names are the same on all. The
// chip need not support it.
std::string counter_on(std::string_view metric, std::string_view chip);
// The registry's name for a name that a profiler printed on some chip; unchanged if there is no
// other.
std::string counter_from(std::string_view name);

// One profiled launch.
struct LaunchCounters {
  std::string function;                  // mangled, as in the cubin
  int node = -1;                         // index in the plan's nodes; -1 unknown
  std::map<std::string, double> values;  // without those that were not read
};

struct CounterAnswers {
  std::string source;  // "cupti" or "ncu"; "" when nothing was collected
  std::string chip;    // "GH100"; "" unknown
  CounterSet set = CounterSet::kOff;
  int passes = 0;                           // how often the call ran
  std::map<std::string, double> phases_ms;  // where the time went: "passes", "decode" ...
  std::vector<LaunchCounters> launches;     // in the order in which they ran
  std::string report;            // instead of launches, the output of `ncu --page raw --csv`
  int left_out = 0;              // launches of the call that were not profiled
  std::vector<Missing> missing;  // counters that were unavailable, and why
};

// What a target reports about one call of a correct candidate, in addition to its verdict.
struct CallFacts {
  LaunchPlan plan;       // no nodes: not known
  AddressLayout layout;  // where the case's tensors lie; no slots: not known
  // Of a captured PyTorch call: paths of its cubins; the operators that launch the plan's nodes.
  std::vector<std::string> images;
  std::vector<OperatorCall> operators;
  CounterAnswers counters;
  SampleAnswers samples;
};

std::string counter_answers_to_json(const CounterAnswers& answers);
// nullopt when the text is not valid answers. Safe on any bytes.
std::optional<CounterAnswers> counter_answers_from_json(const std::string& json);

}  // namespace kernelpro
