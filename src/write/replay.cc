// SPDX-License-Identifier: Apache-2.0
// Replays recorded candidates in order. Skips those that the run already has, so that a resumed
// replay continues where it was.
#include <set>

#include "write/proposer.h"

namespace kernelpro {

namespace {

class Replay : public Proposer {
 public:
  explicit Replay(std::vector<Candidate> recorded) : recorded_(std::move(recorded)) {
    for (const Candidate& candidate : recorded_) hashes_.push_back(candidate.content_hash());
  }

  std::string name() const override { return kReplayName; }
  std::optional<std::string> finished() const override { return finished_; }

  Result<void> propose(const ProposalRequest& request, const WriterSink& give) override {
    std::set<std::string> known;
    for (const KnownPtr& each : request.history) known.insert(content_hash(*each));
    for (const Candidate& each : request.pending) known.insert(each.content_hash());
    int given = 0;
    for (std::size_t i = 0; i < recorded_.size(); ++i) {
      if (given >= request.wanted) break;
      if (!known.insert(hashes_[i]).second) continue;
      Proposal proposal{recorded_[i], std::nullopt};
      Origin& origin = proposal.candidate.origin;
      if (origin.idea.empty()) origin.idea = "recorded as a candidate of " + origin.proposer;
      origin.proposer = name();
      origin.parent = request.parent->id;
      origin.repairs = 0;  // refers to the recorded run
      give(std::move(proposal));
      ++given;
    }
    if (given == 0) finished_ = "every recorded candidate was measured";
    return {};
  }

 private:
  std::vector<Candidate> recorded_;
  std::vector<std::string> hashes_;
  std::optional<std::string> finished_;
};

}  // namespace

std::unique_ptr<Proposer> make_replay(std::vector<Candidate> recorded) {
  return std::make_unique<Replay>(std::move(recorded));
}

}  // namespace kernelpro
