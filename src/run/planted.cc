// SPDX-License-Identifier: Apache-2.0
#include "run/planted.h"

#include "measure/judge/evaluator.h"
#include "run/store/settings.h"
#include "search/searches.h"

namespace kernelpro {

NodeResult node_result(const Ledger& ledger, std::int64_t id, Feedback feedback) {
  const Known& known = *ledger.find_brief(id);
  NodeResult result;
  result.correct = known.evaluation.correct() != nullptr;
  result.time_us = ledger.cost(id);
  result.fraction = known.diagnosis.fraction_of_ceiling;
  const Promise promise = ledger.promise(id);
  result.stop = promise.stop;
  if (feedback != Feedback::kDiagnosed) return result;
  result.likely = promise.likely;
  result.upper = promise.upper;
  return result;
}

Planted::Planted(SearchMaker make) : make_(std::move(make)), search_(make_()) {}

void Planted::add(std::int64_t parent, std::int64_t id, const NodeResult& node) {
  if (parent == 0) {
    search_->add_root(id, node);
  } else {
    search_->restore(parent, id, node);
  }
}

void Planted::place(std::int64_t parent, std::int64_t id, const NodeResult& node) {
  if (parent == 0 && !placed_.empty()) parent = placed_.front().second;
  add(parent, id, node);
  placed_.emplace_back(parent, id);
}

std::optional<std::int64_t> Planted::start() {
  const auto parent = search_->start();
  if (parent) in_flight_.insert(*parent);
  return parent;
}

void Planted::cancel(std::int64_t parent) {
  search_->cancel(parent);
  in_flight_.erase(in_flight_.find(parent));
}

void Planted::close(std::int64_t id) {
  search_->close(id);
  closed_.push_back(id);
}

void Planted::finalize(std::int64_t parent, std::int64_t id, const NodeResult& node) {
  cancel(parent);
  place(parent, id, node);
}

void Planted::replant(const std::function<NodeResult(std::int64_t)>& result) {
  search_ = make_();
  for (const auto& [parent, id] : placed_) add(parent, id, result(id));
  for (const std::int64_t id : closed_) search_->close(id);
  for (const std::int64_t id : in_flight_) search_->begin(id);
}

Result<SearchMaker> search_maker(const RunSettings& settings) {
  const auto make = [name = settings.search, preset = settings.preset, seed = settings.seed] {
    return make_preset_search(name, preset, seed);
  };
  KP_TRY(make());
  return SearchMaker([make] { return std::move(*make()); });
}

Result<std::vector<SearchNode>> stored_nodes(const Store& store) {
  KP_ASSIGN(const auto header, store.header());
  const RunSettings settings = settings_from_json(header.settings_json).value_or(RunSettings());
  KP_ASSIGN(const auto maker, search_maker(settings));
  Ledger ledger(EvaluateSettings().min_effect, settings.objective);
  Planted planted(maker);
  KP_TRY(store.briefs([&](StoredBrief brief) {
    const std::int64_t id = brief.known.id;
    // A missing parent counts as none: a report must not fail over it.
    std::int64_t parent = brief.known.candidate.origin.parent;
    if (ledger.find_brief(parent) == nullptr) parent = 0;
    ledger.record(std::move(brief));
    planted.place(parent, id, node_result(ledger, id, settings.feedback));
  }));
  return planted.search().nodes();
}

}  // namespace kernelpro
