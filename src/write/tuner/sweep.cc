// SPDX-License-Identifier: Apache-2.0
// Every setting of the start's knobs that its requirements allow, once, whatever the results. The
// order is drawn from the run's seed: a truncated sweep is then a random sample of the space, and a
// machine that slowly warms up does not look like a knob's effect.
#include <algorithm>
#include <cstdint>
#include <set>

#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/requirements.h"
#include "core/proposal/proposer.h"
#include "core/task/inputs.h"
#include "write/tuner/tuner.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostSettings = 100'000;

// Setting `index` of the space, the last knob changing fastest.
KnobValues setting(const std::vector<Knob>& knobs, std::size_t index) {
  KnobValues values;
  for (auto knob = knobs.rbegin(); knob != knobs.rend(); ++knob) {
    values[knob->name] = knob->values[index % knob->values.size()];
    index /= knob->values.size();
  }
  return values;
}

class Sweep : public Proposer {
 public:
  std::string name() const override { return kSweepName; }
  std::optional<std::string> finished() const override { return finished_; }

  Result<void> propose(const ProposalRequest& request, const WriterSink& give) override {
    const Known& start = *request.start;
    KP_TRY(begin(start.candidate, request.seed));
    std::set<KnobValues> known;
    const SameSource same(start.candidate);
    for (const KnownPtr& each : request.history) {
      if (same(*each)) known.insert(each->candidate.knobs);
    }
    for (const Candidate& each : request.pending) {
      if (each.source == start.candidate.source) known.insert(each.knobs);
    }
    int given = 0;
    for (const KnobValues& values : space_) {
      if (given >= request.wanted) break;
      if (known.contains(values)) continue;
      Proposal proposal;
      proposal.candidate = start.candidate;
      proposal.candidate.knobs = values;
      proposal.candidate.origin = {name(), start.id, knobs_to_text(values) + ".", {}};
      give(std::move(proposal));
      ++given;
    }
    if (given == 0) {
      finished_ = "all " + std::to_string(space_.size()) + " settings of the knobs were measured";
    }
    return {};
  }

 private:
  Result<void> begin(const Candidate& start, std::uint64_t seed) {
    if (!space_.empty()) return {};
    KP_ASSIGN(const auto knobs, parse_knobs(start.source));
    KP_ASSIGN(const auto size, sweep_size(knobs));
    KP_ASSIGN(const auto requirements, Requirements::parse(start.source, knobs));
    for (std::size_t i = 0; i < size; ++i) {
      KnobValues values = setting(knobs, i);
      if (requirements.broken(values).empty()) space_.push_back(std::move(values));
    }
    for (std::size_t i = space_.size(); i > 1; --i) {
      std::swap(space_[i - 1], space_[kp::mix64(seed * 0x10001 + i) % i]);
    }
    return {};
  }

  std::vector<KnobValues> space_;  // in the order of measurement
  std::optional<std::string> finished_;
};

}  // namespace

Result<std::size_t> sweep_size(const std::vector<Knob>& knobs) {
  std::size_t size = 1;
  for (const Knob& knob : knobs) {
    size *= knob.values.size();
    if (size > kMostSettings) {
      return fail(ErrorKind::kBadInput,
                  "the knobs of this kernel have more than " + std::to_string(kMostSettings) +
                      " settings: too many to measure each",
                  "give knobs fewer values, or let --proposer tuner choose");
    }
  }
  if (knobs.empty()) {
    return fail(
        ErrorKind::kBadInput, "this kernel declares no knobs to sweep",
        "add lines such as `// @knob TILE 16 32 64` (docs/task-format.md), or leave --proposer "
        "out: the tuner finds knobs in the text");
  }
  return size;
}

std::unique_ptr<Proposer> make_sweep() { return std::make_unique<Sweep>(); }

}  // namespace kernelpro
