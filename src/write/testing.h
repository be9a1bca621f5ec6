// SPDX-License-Identifier: Apache-2.0
// For this room's tests: a task, measured candidates, and what proposers give.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/candidate/knobs.h"
#include "core/proposal/proposal.h"
#include "core/testing/toy_task.h"

namespace kernelpro::proposing {

inline constexpr const char* kSource =
    "// @knob VEC 1 2 4 : vectorize\n// @knob THREADS 1 2 4 : threads\n// @knob TILE 8 16 32\n"
    "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {}\n";

inline Task task() {
  Task t = testing::toy_task();
  t.summary = "Multiplies each element by two: y = 2 x. No {{field}} is meant here.";
  t.tensors.back().tolerance = 1e-5;
  return t;
}

inline Known known(std::int64_t id, const KnobValues& values, double us) {
  Known k;
  k.id = id;
  k.candidate.source = kSource;
  k.candidate.knobs = default_values(*parse_knobs(kSource));
  for (const auto& [name, value] : values) k.candidate.knobs[name] = value;
  k.candidate.origin = {id == 1 ? "start" : "tuner", id == 1 ? 0 : 1, "an idea", {}};
  if (us > 0) {
    Correct correct;
    correct.timings.push_back({"large", us, us, us, 20, "calls in turn"});
    k.evaluation.outcome = correct;
  } else {
    k.evaluation.outcome = CompileError{"kernel.cpp:7:3: error: no such register"};
  }
  return k;
}

inline Finding finding(const std::string& tool, const std::vector<std::string>& tags) {
  Finding f;
  f.tool = tool;
  f.cause = "12 of 12 operations in the hot loop are scalar.";
  f.severity = Severity::kWarning;
  f.likely_speedup = 2;
  f.upper_speedup = 4;
  for (const std::string& tag : tags) f.prescriptions.push_back({tag, "do it", ""});
  return f;
}

inline KnownPtr shared(const Known& known) { return std::make_shared<const Known>(known); }

inline History shared(const std::vector<Known>& all) {
  History history;
  for (const Known& each : all) history.push_back(shared(each));
  return history;
}

// All that was evaluated: the first is the start and, if correct, the baseline. `best`: an id.
inline void set_history(const std::vector<Known>& all, std::int64_t best,
                        ProposalRequest* request) {
  request->history = shared(all);
  request->start = request->history.front();
  if (all.front().evaluation.correct() != nullptr) request->baseline = request->start;
  for (const KnownPtr& each : request->history) {
    if (each->id == best) request->best = each;
  }
}

// What a proposer gives, by kind.
struct Given {
  std::vector<Proposal> proposals;
  std::vector<ModelCall> calls;
  std::vector<ExchangeRequest> requests;
  std::vector<WriterNote> notes;

  WriterSink sink() {
    return [this](WriterEvent event) {
      std::visit([this](auto& each) { add(std::move(each)); }, event);
    };
  }

 private:
  void add(Proposal each) { proposals.push_back(std::move(each)); }
  void add(ModelCall each) { calls.push_back(std::move(each)); }
  void add(ExchangeRequest each) { requests.push_back(std::move(each)); }
  void add(WriterNote each) { notes.push_back(std::move(each)); }
};

}  // namespace kernelpro::proposing
