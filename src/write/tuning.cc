// SPDX-License-Identifier: Apache-2.0
#include "write/tuning.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "write/proposer.h"

namespace kernelpro {

namespace {

// A source whose fastest setting is slower than the best by this factor is out of reach. Own.
constexpr double kInReach = 1.5;
constexpr int kLastEvaluations = 2;  // which only the best may have

struct Source {
  KnownPtr fastest;      // of its correct settings
  bool brought = false;  // the run's start, or from elsewhere: no writer of this run gave it
  bool wanted = false;   // whoever gave it
  int tried = 0;         // settings, whatever became of them, and pending ones
};

bool is_brought(const Known& known) {
  const std::string& by = known.candidate.origin.proposer;
  return by == Origin::kStart || by == Origin::kSeed || by == Origin::kGiven;
}

bool is_wanted(const Known& known, const ProposalRequest& request, Tuned which) {
  return which == Tuned::kWrittenAndParent &&
         known.candidate.source == request.parent->candidate.source;
}

// Sources with knobs and a correct setting, the fastest first.
std::vector<Source> sources_of(const ProposalRequest& request, Tuned which) {
  std::map<std::pair<Language, std::string>, Source> all;
  for (const KnownPtr& known : request.history) {
    if (known->brief() || known->candidate.knobs.empty()) continue;
    Source& source = all[{known->candidate.language, known->candidate.source}];
    ++source.tried;
    source.brought = source.brought || is_brought(*known);
    source.wanted = source.wanted || is_wanted(*known, request, which);
    const double us = comparable_us(*known);
    if (us <= 0) continue;
    if (source.fastest == nullptr || us < comparable_us(*source.fastest)) source.fastest = known;
  }
  for (const Candidate& each : request.pending) {
    const auto source = all.find({each.language, each.source});
    if (source != all.end()) ++source->second.tried;
  }
  std::vector<Source> found;
  for (auto& [key, source] : all) {
    if (source.brought && !source.wanted) continue;
    if (source.fastest != nullptr) found.push_back(std::move(source));
  }
  std::sort(found.begin(), found.end(), [](const Source& a, const Source& b) {
    const double a_us = comparable_us(*a.fastest), b_us = comparable_us(*b.fastest);
    return a_us != b_us ? a_us < b_us : a.fastest->id < b.fastest->id;
  });
  return found;
}

bool is_best(const ProposalRequest& request, const Known& known) {
  return request.best != nullptr && SameSource(known.candidate)(*request.best);
}

}  // namespace

int tuning_budget(const ProposalRequest& request, const Known& fastest, int each) {
  if (each <= 0 || request.best == nullptr) return 0;
  if (is_best(request, fastest)) return 2 * each;
  const double best_us = comparable_us(*request.best);
  return comparable_us(fastest) <= kInReach * best_us ? each : each / 4;
}

Result<int> tune_written(const ProposalRequest& request, int each, Tuned which, Proposer& tuner,
                         const WriterSink& give) {
  if (each <= 0) return 0;
  for (const Source& source : sources_of(request, which)) {
    const bool last = request.evaluations_left && *request.evaluations_left <= kLastEvaluations;
    if (last && !is_best(request, *source.fastest)) continue;
    const int left = tuning_budget(request, *source.fastest, each) + 1 - source.tried;
    if (left <= 0) continue;
    ProposalRequest asking = request;
    asking.parent = source.fastest;
    asking.wanted = std::min(request.wanted, left);
    int given = 0;
    KP_TRY(tuner.propose(asking, [&](WriterEvent event) {
      ++given;
      give(std::move(event));
    }));
    if (given > 0) return given;
  }
  return 0;
}

}  // namespace kernelpro
