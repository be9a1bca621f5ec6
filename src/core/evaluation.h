// SPDX-License-Identifier: Apache-2.0
// What happened to a candidate: a variant, never a flag.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kernelpro {

struct CompileError {
  std::string log;  // trimmed to the first causes
};
struct Crashed {
  // Who ended the process. kOutside: nothing that the candidate can do, so the machine or a person.
  // kPerhapsOutside: a signal that the candidate may have sent to itself. Not stored.
  enum class By { kItself, kPerhapsOutside, kOutside };
  std::string reason;  // one sentence: what and where
  std::string output;  // what the candidate printed, clipped
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
  std::string rule;    // name of the rule that was broken
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
// What a call draws, in one case: the board's power while calls follow each other without a pause,
// times how long each takes then. The board's idle power is part of it.
struct Energy {
  std::string case_name;
  double millijoules = 0;  // of a call: mean over windows, with its 95 % interval (Student's t)
  double low = 0, high = 0;
  double variation = 0;  // coefficient of variation over the windows
  int windows = 0;
  double window_s = 0;  // each, about
  double busy_w = 0, idle_w = 0;
  double call_us = 0;  // while calls follow each other; not the time that counts for speed
  std::string method;  // "4 sets of buffers in turn, 1.07 GB: more than L2 holds"
  // The incumbent's energy over this candidate's, window by window in turn: > 1 draws less.
  struct Versus {
    double ratio = 1, low = 1, high = 1;
  };
  std::optional<Versus> versus = {};
};

struct Correct {
  std::vector<Timing> timings;  // one per timed case
  double max_error = 0;         // largest output-scaled error seen, over its tolerance
  // Time of the incumbent over time of this candidate, measured turn by turn on the same buffers
  // (geometric mean over timed cases): > 1 is faster. Absent when there was no incumbent.
  struct Versus {
    std::string incumbent;  // content hash
    double ratio = 1, low = 1, high = 1;
  };
  std::optional<Versus> versus;
  std::optional<Energy> energy = {};  // where the run's objective asks for it
  // What the worker saw while timing: names of the metric registry ("cpu.threads_busy").
  std::map<std::string, double> observed;
  // What a reader of the verdict must know about the kernel; the names are those of
  // docs/evaluation.md: "given-distribution-only", "float64-at-reduced-case",
  // "above-measured-ceiling" ...
  std::vector<std::string> labels;
  // What the machine did meanwhile, as sentences: throttling, other processes on the GPU.
  std::vector<std::string> notes;
};

using Outcome = std::variant<CompileError, Crashed, TimedOut, WrongResult, Rejected, Correct>;

struct Evaluation {
  Outcome outcome;
  double compile_ms = 0;
  double run_ms = 0;  // in workers, waiting included
  // Who ran what: "plan" (launch plan, no host code of the candidate), "in-process" (cpu target),
  // "module" (PyTorch candidate in its own Python process).
  std::string trust;
  // Of its machine code and launches (build/code_hash.h): equal ones are measured once. ""
  // unknown.
  std::string code;
  const Correct* correct() const { return std::get_if<Correct>(&outcome); }
};

std::string outcome_name(const Outcome& outcome);  // "correct", "compile-error", ...
// Its process was ended by a signal that the candidate need not have sent.
bool perhaps_killed(const Outcome& outcome);
std::string outcome_summary(const Outcome& outcome);  // one line for people
// "61.3 mJ a call in case full (61.1 to 61.5; 432 W, of which idle 118 W; 5 windows of 1 s vary by
// 0.2 %; calls in a row ...), 0.934 of the incumbent's (0.93 to 0.94)".
std::string energy_text(const Energy& energy);
// Time that counts: geometric mean over the timed cases, microseconds; 0 when not correct.
double score_us(const Evaluation& evaluation);

std::string evaluation_to_json(const Evaluation& evaluation);
std::optional<Evaluation> evaluation_from_json(const std::string& json);

}  // namespace kernelpro
