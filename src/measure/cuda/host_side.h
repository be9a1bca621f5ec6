// SPDX-License-Identifier: Apache-2.0
// PyTorch candidates in host form: called one turn at a time on a stage, and timed by the judge's
// clock (measure/worker/cuda/judge_turn.h). Nothing that their process says counts.
//
// A turn: the process waits at its gate; the judge starts its clock, copies a set's inputs and
// parameters to the stage, flushes L2 and gives the order; the process calls the module, copies the
// results to the stage and answers; the judge takes them away and stops its clock. Between turns
// the process is stopped and its stage poisoned.
//
// From a turn's time the overhead is taken that no process can avoid or use, as measured before any
// code of the candidate was loaded: copying, flushing, the GPU's changes from process to process.
// What a clever process could avoid stays in: launching, waiting, Python. So an honest host form
// looks slower than it is, by some 10 us and what Python takes to submit its work.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/process/gate.h"
#include "measure/cuda/case.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

struct HostSide {
  Gate gate;
  int stage = 0;
  std::uint64_t turns = 0;
  struct Overhead {
    double revealing_us = 0, rest_us = 0;
  };
  std::map<const CudaCase*, Overhead> overheads;  // of timed turns
  double launch_us = 0;                           // of the judge's small kernels; 0: unknown
};

// Makes a stage of a case, unless there is one. kBadInput: too little GPU memory.
Result<void> open_stage(CudaLink& judge, CudaCase& state, int stage);

// Gives a process that has just started a gate, and the stages of all cases; without waiting for
// it.
Result<void> post_stage(CudaWorker& worker, const Task& task, const std::vector<CudaCase>& cases,
                        int stage);

// Tells the judge that the stage is this process's. Call once it has answered.
Result<void> open_gate(CudaLink& judge, const CudaWorker& worker);

// Measures the overhead of turns. REQUIRES: nothing has been loaded. An Outcome: the process died.
Result<std::optional<Outcome>> measure_overhead(CudaLink& judge, CudaWorker& worker,
                                                const CudaCase& state);

struct TurnPlan {
  bool timed = true;     // L2 cold, overhead taken off
  double timeout_s = 0;  // of a call
  std::string doing;     // "timing", "checking"
};

// One call on each of `sets`, in order: its time in microseconds; results lie in the sets, for
// comparison. An Outcome: the candidate's fault.
Result<std::variant<std::vector<double>, Outcome>> take_turns(CudaLink& judge, CudaWorker& worker,
                                                              const CudaCase& state,
                                                              const std::string& subject,
                                                              const std::vector<int>& sets,
                                                              const TurnPlan& plan);

// "from outside, L2 cold, less 61.2 us of overhead": how times of take_turns come about.
std::string turn_method(const CudaWorker& worker, const CudaCase& state);

// Waits, though not for long, until no other process's work is on the GPU, so that a launch takes
// `usual_us` as before (0: unknown). False: some is still there.
Result<bool> await_quiet(CudaLink& judge, double usual_us);

}  // namespace kernelpro
