// SPDX-License-Identifier: Apache-2.0
// What a proposer is asked and what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/candidate.h"
#include "core/evaluation.h"
#include "core/finding.h"
#include "core/task.h"

namespace kernelpro {

// A candidate as the run knows it.
struct Known {
  std::int64_t id = 0;
  Candidate candidate;
  Evaluation evaluation;
  Diagnosis diagnosis;
};

// Everything a proposer may look at. Pointers live for the call only.
struct ProposalRequest {
  const Task* task = nullptr;
  TargetKind target = TargetKind::kCpu;
  const Known* parent = nullptr;
  std::vector<const Known*> history;  // all evaluated candidates, by id: the memory
  std::string task_header;            // the generated task.h of the largest timed case
  std::uint64_t seed = 0;             // of the run
  int wanted = 1;
  std::string answers;  // the finding that this time shall be answered: "scalar-loads: vectorize"
  std::string focus;    // what a writer shall try this time, one sentence; "" leaves it the choice
};

// What a writer was asked and what it answered, word for word: kept beside the candidate.
struct Writing {
  std::string request;  // names it: "0003" of the exchange
  std::string writer;   // "exchange", or the model
  std::string prompt;
  std::string reply;
  std::string usage;  // JSON: tokens and cost; "" not known
};

struct Proposal {
  Candidate candidate;             // origin filled in
  std::optional<Writing> writing;  // of a writer
};

}  // namespace kernelpro
