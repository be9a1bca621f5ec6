// SPDX-License-Identifier: Apache-2.0
// A proposer's input and output: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/candidate/candidate.h"
#include "core/candidate/dialect.h"
#include "core/evaluation/evaluation.h"
#include "core/evaluation/objective.h"
#include "core/evidence/evidence.h"
#include "core/finding/finding.h"
#include "core/machine/machine.h"
#include "core/proposal/call_outcome.h"
#include "core/proposal/event.h"
#include "core/proposal/fact.h"
#include "core/proposal/model_role.h"
#include "core/task/task.h"

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

// Never changes: when a candidate is completed or revised, the run holds another one instead.
using KnownPtr = std::shared_ptr<const Known>;
using History = std::vector<KnownPtr>;  // in order of evaluation

std::string content_hash(const Known& known);
std::string source_key(const Known& known);  // the same for one source, whatever its knobs
double comparable_us(const Known& known);    // 0 when not correct
// What `before` would take when `after` was measured, over what it took when it was measured
// itself. 1 where one of them is not correct.
double drift_between(const Known& before, const Known& after);
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

// Everything a proposer may use. Nothing in it changes while the run continues, so that a writer on
// another thread may keep it.
struct ProposalRequest {
  const Task* task = nullptr;  // the run's; outlives every request
  TargetKind target = TargetKind::kCpu;
  KnownPtr parent;  // whole
  KnownPtr start;   // the run's first candidate, whole
  // All evaluated candidates: whole for proposers that write sources, else possibly in brief.
  History history;
  // Of these, the first correct one, which speed-ups are over, and the best; null: none yet.
  KnownPtr baseline, best;
  std::vector<Candidate> pending;  // written for this run, not evaluated yet
  // Lessons from earlier runs, and from this one so far; for proposers that write sources.
  std::vector<Fact> earlier, lately;
  bool memory = true;       // false: writers see the parent only
  std::string task_header;  // the generated task.h of the largest timed case
  std::uint64_t seed = 0;   // the run's
  // Of the run's budget, this request's included; none: there is no such limit.
  std::optional<int> evaluations_left;
  std::optional<Dialect> dialect;  // to write in; none: the target's own language
  int wanted = 1;
  int implementations = 1;            // sources per idea of a planner, out of `wanted`
  std::optional<double> temperature;  // for models; none: as their names specify
  FindingRef answers;                 // the finding to address this time
  std::string focus;                  // what to try this time, one sentence; "": the writer chooses
  Feedback feedback = Feedback::kDiagnosed;
  Objective objective;               // the run's
  std::optional<Machine> machine;    // where candidates run; none: unknown
  std::optional<Evidence> evidence;  // about the parent, with kRaw
};

const DialectRow& wanted_dialect(const ProposalRequest& request);

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
  std::string request;  // its name: "0003" of a plan, "0003.2" of its second idea
  ModelRole role = ModelRole::kCoder;
  std::string model;         // as given by the user
  std::int64_t parent = 0;   // the candidate concerned
  std::int64_t repairs = 0;  // of a fixer: the candidate that failed; 0: an answer without code
  std::string idea;
  CallOutcome outcome = CallOutcome::kReply;
  std::string prompt;
  std::string tools;  // what it looked up in between; "": nothing
  std::string reply;
  std::string usage;  // JSON (write/calls.h)
  std::string gave;   // content hash of the resulting candidate; "": none
};

// One request to the writer behind the exchange. Replies name it by the folder they are in, and the
// rest of what they answer comes from here.
struct ExchangeRequest {
  std::string name;         // of its folder: "0003"
  std::int64_t parent = 0;  // the candidate to build on
  FindingRef answers;       // the finding to address; empty: a free choice
  std::string prompt;       // verbatim
};

struct Proposal {
  Candidate candidate;             // origin filled in
  std::optional<Writing> writing;  // from a writer
};

// For display: the run's progress shows it under this event (run/result.h).
struct WriterNote {
  Event event = Event::kNote;
  std::string text;
};

// What a proposer gives the run, in order: a question precedes what came of it.
using WriterEvent = std::variant<ModelCall, ExchangeRequest, Proposal, WriterNote>;
// Takes events from any thread, one at a time, and returns when the run has the event: a ModelCall
// or an ExchangeRequest is then durable, unless the run is ending.
using WriterSink = std::function<void(WriterEvent)>;

}  // namespace kernelpro
