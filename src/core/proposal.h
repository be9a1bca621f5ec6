// SPDX-License-Identifier: Apache-2.0
// What a proposer is asked and what it answers.
#pragma once

#include <cstdint>
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
};

struct Proposal {
  Candidate candidate;  // origin filled in
};

}  // namespace kernelpro
