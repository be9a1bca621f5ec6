// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/load.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace kernelpro {

namespace {

std::string percent_of(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

std::string count_of(double number, const char* one, const char* many) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f %s", number, number == 1 ? one : many);
  return text;
}

}  // namespace

Load load_of(const std::map<std::string, double>& observed) {
  const auto value = [&](const char* name) {
    const auto it = observed.find(name);
    return it == observed.end() ? 0.0 : it->second;
  };
  return {value("load.foreign_cpu"), value("load.pairs_dropped"), value("load.pairs_disturbed"),
          value("load.gpu_processes")};
}

std::string load_text(const Load& load) {
  std::string text;
  if (load.foreign_cpu >= kBusyShare) {
    text = "other processes used " + percent_of(load.foreign_cpu) + " of this machine";
  }
  if (load.gpu_processes > 0) {
    text += (text.empty() ? "" : ", and ") +
            count_of(load.gpu_processes, "other process", "other processes") + " used the GPU";
  }
  return text;
}

void LoadSummary::add(const Load& load) {
  mean_cpu = (mean_cpu * timed + load.foreign_cpu) / (timed + 1);
  ++timed;
  if (load.busy()) ++busy;
  most_cpu = std::max(most_cpu, load.foreign_cpu);
  pairs_dropped += load.pairs_dropped;
  pairs_disturbed += load.pairs_disturbed;
  gpu_processes = std::max(gpu_processes, load.gpu_processes);
}

std::string busy_note(double foreign_cpu, int disturbed, int kept) {
  return "the machine was busy while this was timed: other processes took " +
         number(100 * foreign_cpu, 2) + " % of it, and " + std::to_string(disturbed) + " of " +
         std::to_string(kept) +
         " measurements were disturbed. Small differences may be missed; stop the other work "
         "to see them";
}

std::string load_text(const LoadSummary& s) {
  if (s.busy == 0) return "";
  std::string text = "The machine was busy while " + std::to_string(s.busy) + " of " +
                     count_of(s.timed, "candidate was", "candidates were") + " timed";
  if (s.most_cpu >= kBusyShare) {
    text += ": other processes used up to " + percent_of(s.most_cpu) + " of it (" +
            percent_of(s.mean_cpu) + " on average)";
  }
  if (s.gpu_processes > 0) {
    text += std::string(s.most_cpu >= kBusyShare ? ", and up to " : ": up to ") +
            count_of(s.gpu_processes, "other process", "other processes") + " used the GPU";
  }
  text += ".";
  if (s.pairs_dropped > 0) {
    text += " " + count_of(s.pairs_dropped, "disturbed pair", "disturbed pairs") +
            " of timings were dropped.";
  }
  if (s.pairs_disturbed > 0) {
    text += " " + count_of(s.pairs_disturbed, "pair", "pairs") +
            " count although disturbed: the machine did not calm down.";
  }
  return text;
}

}  // namespace kernelpro
