// SPDX-License-Identifier: Apache-2.0
// The outcome of a candidate: a variant, never a flag.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/evaluation/label.h"

namespace kernelpro {

struct CompileError {
  std::string log;  // trimmed to the first causes
};
struct Crashed {
  // What ended the process. kOutside: something the candidate cannot cause, so the machine or a
  // person. kPerhapsOutside: a signal that the candidate may have sent itself. Not stored.
  enum class By { kItself, kPerhapsOutside, kOutside };
  std::string reason;  // one sentence: what and where
  std::string output;  // the candidate's output, clipped
  By by = By::kItself;
};
struct TimedOut {
  double seconds = 0;
  std::string phase;  // "checking case small", "timing"
};
struct WrongResult {
  std::string case_name;
  std::string tensor;
  std::string reason;  // one sentence: where, how much, the pattern
  double error = 0;    // output-scaled
  double tolerance = 0;
};
struct Rejected {
  std::string rule;    // name of the broken rule
  std::string reason;  // one sentence
};

// Time of one call in one case, in microseconds, with a 95 % confidence interval.
struct Timing {
  std::string case_name;
  double median_us = 0;
  double low_us = 0;
  double high_us = 0;
  int samples = 0;
  std::string method;  // "graph replay, L2 cold", "calls in turn"
};
// Energy of a call in one case: board power during back-to-back calls, times the duration of a
// call. Includes the board's idle power.
struct Energy {
  std::string case_name;
  double millijoules = 0;  // per call: mean over windows, with its 95 % interval (Student's t)
  double low = 0, high = 0;
  double variation = 0;  // coefficient of variation over the windows
  int windows = 0;
  double window_s = 0;  // length of each, approximately
  double busy_w = 0, idle_w = 0;
  double call_us = 0;  // during back-to-back calls; not the time that counts for speed
  std::string method;  // "4 sets of buffers in turn, 1.07 GB: more than L2 holds"
  // The incumbent's energy over this candidate's, in alternating windows: > 1 uses less.
  struct Versus {
    double ratio = 1, low = 1, high = 1;
  };
  std::optional<Versus> versus = {};
};

// Differences below this are ties.
inline constexpr double kLeastEffect = 0.005;

struct Correct {
  std::vector<Timing> timings;  // one per timed case
  double max_error = 0;         // largest output-scaled error seen, over its tolerance
  // Time of the incumbent over time of this candidate, measured in alternation on the same inputs
  // (geometric mean over timed cases): > 1 is faster. Absent when there was no incumbent.
  struct Versus {
    std::string incumbent;  // content hash
    double ratio = 1, low = 1, high = 1;
  };
  std::optional<Versus> versus;
  std::optional<Energy> energy = {};  // if the run's objective needs it
  // What the worker observed while timing, by metric registry name ("cpu.threads_busy").
  std::map<std::string, double> observed;
  // Caveats that belong to the verdict: names of Labels (core/evaluation/label.h).
  std::vector<std::string> labels;
  // Machine events during the run, as sentences: throttling, other processes on the GPU.
  std::vector<std::string> notes;
};

using Outcome = std::variant<CompileError, Crashed, TimedOut, WrongResult, Rejected, Correct>;
// By its alternatives, in their order.
enum class OutcomeKind { kCompileError, kCrashed, kTimedOut, kWrongResult, kRejected, kCorrect };
OutcomeKind outcome_kind(const Outcome& outcome);
// In stores, JSON and reports: "compile-error".
std::string_view outcome_name(OutcomeKind kind);
std::optional<OutcomeKind> outcome_kind_from_name(std::string_view name);
Outcome bare_outcome(OutcomeKind kind);  // without any of its details

struct Evaluation {
  Outcome outcome;
  double compile_ms = 0;
  double run_ms = 0;  // in workers, including waiting
  std::string trust;  // how it was run: the name of a Trust (core/evaluation/label.h)
  // Hash of its machine code and launches (build/code_hash.h): equal ones are measured once. "":
  // unknown.
  std::string code;
  const Correct* correct() const { return std::get_if<Correct>(&outcome); }
};

// Among what was observed: 1 for a variant that screening found no faster than its incumbent
// (measure/judge/evaluator.h).
inline constexpr const char* kScreened = "evaluate.screened";
bool is_screened(const Evaluation& evaluation);
bool has_label(const Correct& correct, Label label);
// Whether its own process held the data and the clock.
bool is_host_form(const Correct& correct);
// Labels that the starting kernel bears too, and which therefore rank nothing below it.
using Borne = std::vector<std::string>;
Borne borne_by(const Correct* start);  // null, a start that is not correct: none
// Whether it keeps the contract in part only (LabelRow::partial), by a label that is not borne.
bool is_partial(const Correct& correct, const Borne& borne);
// Whether `a`, whatever its time, comes before `b`: a launch plan before a host form, and among
// either what keeps the whole contract before what keeps a part of it.
bool outranks(const Correct& a, const Correct& b, const Borne& borne);
// The better of two results: the one that costs less (a time on one scale), unless the other
// outranks it.
bool beats(const Correct& a, double cost_a, const Correct& b, double cost_b, const Borne& borne);

std::string outcome_name(const Outcome& outcome);  // of its kind
// Its process was killed by a signal that the candidate need not have sent.
bool perhaps_killed(const Outcome& outcome);
std::string outcome_summary(const Outcome& outcome);  // one line for display
// "61.3 mJ a call in case full (61.1 to 61.5; 432 W, of which idle 118 W; 5 windows of 1 s vary by
// 0.2 %; calls in a row ...), 0.934 of the incumbent's (0.93 to 0.94)".
std::string energy_text(const Energy& energy);
// The time that counts: geometric mean over the timed cases, microseconds; 0 when not correct.
double score_us(const Evaluation& evaluation);

std::string evaluation_to_json(const Evaluation& evaluation);
std::optional<Evaluation> evaluation_from_json(const std::string& json);

}  // namespace kernelpro
