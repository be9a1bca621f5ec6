// SPDX-License-Identifier: Apache-2.0
// The lesson of one evaluation: what was tried, on which parent, for which finding, with what
// result. Facts are only ever added; their use is decided at reading time (write/prompt/recall.h).
// Plain values; docs/memory.md explains each field.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate/candidate.h"
#include "core/evaluation/evaluation.h"
#include "core/finding/finding.h"
#include "core/task/task.h"

namespace kernelpro {

struct Fact {
  std::string when;     // UTC, when it was recorded; "" in the run that it comes from
  std::string machine;  // its own name: "NVIDIA H200"
  std::string arch;     // "sm_90a", "x86-64"
  TargetKind target = TargetKind::kCpu;
  Language language = Language::kCpp;
  std::vector<std::string> family;  // kinds of operation (core/task/operator_family.h)
  std::string task;                 // task name
  std::string task_hash;            // Task::content_hash

  std::string candidate;  // content hash of the candidate
  std::string proposer;   // its author: "model", "tuner"
  std::string idea;       // one line, clipped
  std::string knobs;      // "TILE 16 -> 32": what differs from a parent with the same source
  FindingRef answers;     // prescription of the parent's diagnosis

  std::string parent;             // content hash
  Bound bound = Bound::kUnknown;  // the parent's, from its diagnosis
  double fraction = 0;            // of the ceiling, reached by the parent; 0: unknown

  OutcomeKind outcome = OutcomeKind::kCorrect;
  std::string failure;  // the failure's first line; "" when correct
  double speedup = 0;   // the parent's time over the candidate's; 0: one of them is incorrect
  // Its 95 % interval if both were measured in alternation; else 0, and `speedup` comes from times
  // that were made comparable.
  double low = 0, high = 0;

  // For a correct candidate that repairs a failed one: the failure's first line, and the lines
  // removed ("- ...") and added ("+ ...").
  std::string error;
  std::string cure;
  // What a correct candidate uses and its parent did not: headers, intrinsics, PTX instructions
  // (core/plan/api_names.h).
  std::vector<std::string> api;
};

// The most telling line of a failure: the first that contains "error", else the first. Printable,
// clipped.
std::string failure_line(std::string_view text);
std::string failure_line(const Outcome& outcome);  // "" when correct

std::string fact_to_json(const Fact& fact);  // on one line
// nullopt: not a fact.
std::optional<Fact> fact_from_json(const std::string& json);
std::string facts_to_json(const std::vector<Fact>& facts);
// "" gives no facts; nullopt when the text is damaged.
std::optional<std::vector<Fact>> facts_from_json(const std::string& json);

}  // namespace kernelpro
