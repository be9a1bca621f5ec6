// SPDX-License-Identifier: Apache-2.0
// What one evaluation taught: what was tried, on which parent, for which finding, and what came of
// it. Facts are only ever added; what is made of them is decided when they are read
// (write/prompt/recall.h). Plain values; docs/memory.md explains each field.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate.h"
#include "core/evaluation.h"
#include "core/task.h"

namespace kernelpro {

struct Fact {
  std::string when;     // UTC, when it was written down; "" in the run that it comes from
  std::string machine;  // as it names itself: "NVIDIA H200"
  std::string arch;     // "sm_90a", "x86-64"
  TargetKind target = TargetKind::kCpu;
  Language language = Language::kCpp;
  std::vector<std::string> family;  // kinds of operation (core/operator_family.h)
  std::string task;                 // its name
  std::string task_hash;            // Task::content_hash

  std::string candidate;  // content hash of what was tried
  std::string proposer;   // who did: "model", "tuner"
  std::string idea;       // one line, clipped
  std::string knobs;      // those that differ from the parent's: "TILE 16 -> 32"
  FindingRef answers;     // of the parent's diagnosis

  std::string parent;   // content hash
  std::string bound;    // of the parent, as its diagnosis said: "memory"; "" not known
  double fraction = 0;  // of the ceiling that the parent reached; 0 not known

  std::string outcome;  // outcome_name
  std::string failure;  // the failure's first line; "" when correct
  double speedup = 0;   // the parent's time over the candidate's; 0: one of them is not correct
  // Its 95 % interval where both were measured turn by turn; 0 where they were not, and `speedup`
  // comes from times that were made comparable.
  double low = 0, high = 0;

  // A correct candidate that repairs one that failed: the failure's first line, and the lines that
  // went ("- ...") and came ("+ ...").
  std::string error;
  std::string cure;
  // What a correct candidate uses and its parent did not: headers, intrinsics, PTX instructions
  // (core/api_names.h).
  std::vector<std::string> api;
};

// The line of a failure that says what is wrong: the first with "error" in it, else the first.
// Printable, clipped.
std::string failure_line(std::string_view text);
std::string failure_line(const Outcome& outcome);  // "" when correct

std::string fact_to_json(const Fact& fact);  // on one line
// nullopt: not a fact.
std::optional<Fact> fact_from_json(const std::string& json);
std::string facts_to_json(const std::vector<Fact>& facts);
// "" is none; nullopt when the text is damaged.
std::optional<std::vector<Fact>> facts_from_json(const std::string& json);

}  // namespace kernelpro
