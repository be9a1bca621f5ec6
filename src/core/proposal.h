// SPDX-License-Identifier: Apache-2.0
// A proposer's input and output.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate.h"
#include "core/evaluation.h"
#include "core/evidence.h"
#include "core/fact.h"
#include "core/finding.h"
#include "core/machine.h"
#include "core/task.h"

namespace kernelpro {

// A candidate as the run knows it. A resumed run knows most of them in brief (run/store/ledger.h):
// language, knobs and origin; the kind of outcome; for a correct one the score (as its only
// timing), `versus` and the energy; of the diagnosis bound, floor and fraction. The source and all
// other text stay in the store until needed.
struct Known {
  std::int64_t id = 0;
  Candidate candidate;
  Evaluation evaluation;
  Diagnosis diagnosis;
  // Its time as if measured when the run began, microseconds (run/store/comparable.h); 0: as
  // measured. Compare candidates of a run by comparable_us().
  double comparable = 0;
  // In brief: replace the source and the whole content; "" = it is whole.
  std::string source_hash = {};
  std::string content_hash = {};
  bool brief() const { return !source_hash.empty(); }
};

std::string content_hash(const Known& known);
double comparable_us(const Known& known);  // 0 when not correct
std::string source_hash(const std::string& source);

// Whether a candidate has the same language and source as `as`; keeps a reference to it.
class SameSource {
 public:
  explicit SameSource(const Candidate& as);
  bool operator()(const Known& known) const;

 private:
  const Candidate& as_;
  std::string hash_;
};

// What a writer learns about a candidate's result: only time and outcome; all metrics with their
// values; or the diagnosis, which is what helps (the others are for comparison).
enum class Feedback { kNone, kRaw, kDiagnosed };
std::string_view feedback_name(Feedback feedback);  // "none", "raw", "diagnosed"
std::optional<Feedback> feedback_from_name(std::string_view name);

struct Proposal;

// Everything a proposer may use. Pointers are valid for the call only.
struct ProposalRequest {
  const Task* task = nullptr;
  TargetKind target = TargetKind::kCpu;
  const Known* parent = nullptr;
  std::vector<const Known*> history;  // all evaluated candidates, in order; possibly in brief
  // Makes a member of the history whole; null: all are whole. The parent always is.
  std::function<const Known&(const Known&)> fetch = {};
  std::vector<const Candidate*> pending;  // written for this run, not evaluated yet
  // Lessons from earlier runs, and from this one so far; null: none.
  const std::vector<Fact>* earlier = nullptr;
  const std::vector<Fact>* lately = nullptr;
  bool memory = true;       // false: writers see the parent only
  std::string task_header;  // the generated task.h of the largest timed case
  std::uint64_t seed = 0;   // the run's
  int wanted = 1;
  int implementations = 1;            // sources per idea of a planner, out of `wanted`
  std::optional<double> temperature;  // for models; none: as their names specify
  FindingRef answers;                 // the finding to address this time
  std::string focus;                  // what to try this time, one sentence; "": the writer chooses
  Feedback feedback = Feedback::kDiagnosed;
  const Machine* machine = nullptr;    // where candidates run; null: unknown
  const Evidence* evidence = nullptr;  // about the parent, with kRaw; null: none
  // Receives each candidate as soon as it is written, from any thread, one at a time; `propose`
  // does not return it again. Empty: `propose` returns them all.
  std::function<void(Proposal)> early = {};

  const Known& whole(const Known& known) const { return fetch ? fetch(known) : known; }
};

// A writer's prompt and reply, verbatim: kept with the candidate.
struct Writing {
  std::string request;  // its name: "0003" of the exchange
  std::string writer;   // "exchange", or the model
  std::string prompt;
  std::string reply;
  std::string usage;  // JSON: tokens and cost; "": unknown
};

// One question to a model up to its final reply, whatever the result.
struct ModelCall {
  std::string request;       // its name: "0003" of a plan, "0003.2" of its second idea
  std::string role;          // "planner", "coder" or "fixer"
  std::string model;         // as given by the user
  std::int64_t parent = 0;   // the candidate concerned
  std::int64_t repairs = 0;  // of a fixer: the candidate that failed; 0: an answer without code
  std::string idea;
  std::string outcome;  // "reply", or the kind of failure: "no-code", "rate-limited" ...
  std::string prompt;
  std::string tools;  // what it looked up in between; "": nothing
  std::string reply;
  std::string usage;  // JSON (write/calls.h)
  std::string gave;   // content hash of the resulting candidate; "": none
};

struct Proposal {
  Candidate candidate;             // origin filled in
  std::optional<Writing> writing;  // from a writer
};

}  // namespace kernelpro
