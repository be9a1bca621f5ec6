// SPDX-License-Identifier: Apache-2.0
#include "run/planted.h"

#include "measure/judge/evaluator.h"
#include "run/store/settings.h"
#include "search/searches.h"

namespace kernelpro {

NodeResult node_result(const Ledger& ledger, std::int64_t id, Feedback feedback) {
  const KnownPtr known = ledger.find(id);
  NodeResult result;
  result.correct = known->evaluation.correct() != nullptr;
  result.time_us = ledger.cost(id);
  result.fraction = known->diagnosis.fraction_of_ceiling;
  const Promise promise = ledger.promise(id);
  result.stop = promise.stop;
  if (feedback != Feedback::kDiagnosed) return result;
  result.likely = promise.likely;
  result.upper = promise.upper;
  return result;
}

Planted::Planted(SearchMaker make) : make_(std::move(make)), search_(make_()) {}

void Planted::expect(std::vector<ClosedLine> closed) {
  expected_.assign(closed.begin(), closed.end());
}

void Planted::add(const Step& placed, const NodeResult& node) {
  if (placed.parent == 0) {
    search_->add_root(placed.id, node);
  } else {
    search_->restore(placed.parent, placed.id, node);
  }
}

void Planted::place(std::int64_t parent, std::int64_t id, const NodeResult& node) {
  if (parent == 0 && !steps_.empty()) parent = steps_.front().id;
  steps_.push_back({id, parent});
  add(steps_.back(), node);
  ++placed_;
  while (!expected_.empty() && expected_.front().after <= placed_) {
    close(expected_.front().candidate);
    expected_.pop_front();
  }
}

std::optional<Turn> Planted::start() {
  const auto turn = search_->start();
  if (turn) in_flight_.insert(turn->parent);
  return turn;
}

void Planted::cancel(std::int64_t parent) {
  search_->cancel(parent);
  in_flight_.erase(in_flight_.find(parent));
}

void Planted::close(std::int64_t id) {
  search_->close(id);
  steps_.push_back({id, 0, true});
}

void Planted::finalize(std::int64_t parent, std::int64_t id, const NodeResult& node) {
  cancel(parent);
  place(parent, id, node);
}

void Planted::replant(const std::function<NodeResult(std::int64_t)>& result) {
  search_ = make_();
  for (const Step& step : steps_) {
    if (step.closed) {
      search_->close(step.id);
    } else {
      add(step, result(step.id));
    }
  }
  for (const std::int64_t id : in_flight_) search_->begin(id);
}

Result<SearchMaker> search_maker(const RunSettings& settings) {
  const auto make = [name = settings.search, preset = settings.preset, seed = settings.seed] {
    return make_preset_search(name, preset, seed);
  };
  KP_TRY(make());
  return SearchMaker([make] { return std::move(*make()); });
}

Result<std::vector<ClosedLine>> closed_lines(const Store& store, const RunSettings& settings) {
  KP_ASSIGN(auto closed, store.closed_lines());
  std::erase_if(closed, [&](const ClosedLine& each) { return each.proposer != settings.proposer; });
  return closed;
}

Result<std::vector<SearchNode>> stored_nodes(const Store& store) {
  KP_ASSIGN(const auto header, store.header());
  const RunSettings settings = settings_from_json(header.settings_json).value_or(RunSettings());
  KP_ASSIGN(const auto maker, search_maker(settings));
  Ledger ledger(settings.objective);
  Planted planted(maker);
  KP_ASSIGN(auto closed, closed_lines(store, settings));
  planted.expect(std::move(closed));
  KP_TRY(store.briefs([&](StoredBrief brief) {
    const std::int64_t id = brief.known.id;
    // A missing parent counts as none: a report must not fail over it.
    std::int64_t parent = brief.known.candidate.origin.parent;
    if (ledger.find(parent) == nullptr) parent = 0;
    ledger.record(std::move(brief));
    planted.place(parent, id, node_result(ledger, id, settings.feedback));
  }));
  return planted.search().nodes();
}

}  // namespace kernelpro
