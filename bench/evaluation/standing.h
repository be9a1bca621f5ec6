// SPDX-License-Identifier: Apache-2.0
// What every measurement of the evaluator starts from: a task, kernels for it that succeed or fail
// in a chosen way, and a prepared evaluator. Every fault of the bench itself ends the program.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/evaluation/evaluation.h"
#include "measure/station/target.h"

namespace kernelpro::bench {

[[noreturn]] void give_up(const Error& error);

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}
inline void must(const Result<void>& result) {
  if (!result) give_up(result.error());
}

// y = x where that is positive, else x / 4; elementwise, n elements.
Task leaky_task(std::int64_t n);

// A kernel for the task; `body` runs after it has written its results, `note` only makes the text
// unique. `form` is "plan" or "host".
Candidate kernel(TargetKind target, const std::string& form, const std::string& body,
                 const std::string& note);

// Standby worker processes for a long series of evaluations.
inline constexpr int kManyWorkers = 8;

// A prepared evaluator with its task; `task` must not move.
struct Standing {
  Standing(Task given, TargetKind kind, double timeout_s, int standby = 1);
  std::variant<Subject, CompileError> build(const Candidate& candidate) const;
  Subject subject(const Candidate& candidate) const;
  Evaluation evaluate(const Subject& candidate, const Subject* incumbent) const;

  Task task;
  StationSettings settings;
  Target target;
};

const Correct& correct_or_give_up(const Evaluation& evaluation);

// Number of elements for a call of about `us` microseconds.
std::int64_t elements_for(TargetKind target, int us);

// The machine and the time, below a table.
std::string machine_line(const Target& target);

}  // namespace kernelpro::bench
