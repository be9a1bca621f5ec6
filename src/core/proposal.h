// SPDX-License-Identifier: Apache-2.0
// What a proposer is asked and what it answers.
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

// A candidate as the run knows it. A resumed run knows most in brief (run/store/ledger.h): their
// language, knobs and origin; the kind of outcome; of a correct one the score (as its only timing),
// `versus` and the energy; of the diagnosis bound, floor and fraction. The source and all other
// text stay in the store until somebody asks.
struct Known {
  std::int64_t id = 0;
  Candidate candidate;
  Evaluation evaluation;
  Diagnosis diagnosis;
  // What stands for the source of a brief one, and for all its content; "" = it is whole.
  std::string source_hash = {};
  std::string content_hash = {};
  bool brief() const { return !source_hash.empty(); }
};

std::string content_hash(const Known& known);
std::string source_hash(const std::string& source);

// Tells who has the same language and source as one candidate; keeps a reference to it.
class SameSource {
 public:
  explicit SameSource(const Candidate& as);
  bool operator()(const Known& known) const;

 private:
  const Candidate& as_;
  std::string hash_;
};

// What a writer is told of how a candidate fared: time and outcome alone; every metric with its
// value; or the diagnosis, which is what helps (the others are for comparison).
enum class Feedback { kNone, kRaw, kDiagnosed };
std::string_view feedback_name(Feedback feedback);  // "none", "raw", "diagnosed"
std::optional<Feedback> feedback_from_name(std::string_view name);

struct Proposal;

// Everything a proposer may look at. Pointers live for the call only.
struct ProposalRequest {
  const Task* task = nullptr;
  TargetKind target = TargetKind::kCpu;
  const Known* parent = nullptr;
  std::vector<const Known*> history;  // all evaluated candidates, in their order; maybe in brief
  // Makes one of the history whole; null: all are. The parent always is.
  std::function<const Known&(const Known&)> fetch = {};
  std::vector<const Candidate*> pending;  // written for this run and not evaluated yet
  // What earlier runs taught, and this one so far; null: nothing.
  const std::vector<Fact>* earlier = nullptr;
  const std::vector<Fact>* lately = nullptr;
  bool memory = true;       // false: writers are told of the parent alone
  std::string task_header;  // the generated task.h of the largest timed case
  std::uint64_t seed = 0;   // of the run
  int wanted = 1;
  int implementations = 1;            // sources for each idea of a planner, among those wanted
  std::optional<double> temperature;  // to ask models with; none: what their names say
  FindingRef answers;                 // the finding that this time shall be answered
  std::string focus;  // what a writer shall try this time, one sentence; "" leaves it the choice
  Feedback feedback = Feedback::kDiagnosed;
  const Machine* machine = nullptr;    // where candidates run; null: not known
  const Evidence* evidence = nullptr;  // about the parent, with kRaw; null: there is none
  // Takes a candidate as soon as it is written, while others of the request still are; from any
  // thread, one at a time. What it takes is not given back again. Empty: all come together.
  std::function<void(Proposal)> early = {};

  const Known& whole(const Known& known) const { return fetch ? fetch(known) : known; }
};

// What a writer was asked and what it answered, word for word: kept beside the candidate.
struct Writing {
  std::string request;  // names it: "0003" of the exchange
  std::string writer;   // "exchange", or the model
  std::string prompt;
  std::string reply;
  std::string usage;  // JSON: tokens and cost; "" not known
};

// One question to a model until its last word, whatever came of it.
struct ModelCall {
  std::string request;       // names it: "0003" of a plan, "0003.2" of its second idea
  std::string role;          // "planner", "coder" or "fixer"
  std::string model;         // as the user named it
  std::int64_t parent = 0;   // candidate that it is about
  std::int64_t repairs = 0;  // of a fixer: the candidate that failed; 0: an answer without code
  std::string idea;
  std::string outcome;  // "reply", or the kind of failure: "no-code", "rate-limited" ...
  std::string prompt;
  std::string tools;  // what it looked up in between; "" = nothing
  std::string reply;
  std::string usage;  // JSON (write/calls.h)
  std::string gave;   // content hash of the candidate that came of it; "" = none
};

struct Proposal {
  Candidate candidate;             // origin filled in
  std::optional<Writing> writing;  // of a writer
};

}  // namespace kernelpro
