// SPDX-License-Identifier: Apache-2.0
#include "run/planted.h"

#include "core/candidate/language.h"
#include "measure/judge/evaluator.h"
#include "run/proposers.h"
#include "run/store/settings.h"
#include "search/searches.h"

namespace kernelpro {

namespace {

bool is_faster(const NodeResult& a, const NodeResult& b) {
  if (!a.correct || !b.correct) return a.correct && !b.correct;
  return a.time_us < b.time_us;
}

// No candidate's source is called that.
std::string own_source(std::int64_t id) { return "#" + std::to_string(id); }

}  // namespace

std::string source_of(const Known& known, const RunSettings& settings) {
  return proposer_of(settings).writes_sources ? source_key(known) : "";
}

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

std::int64_t Planted::node_of(std::int64_t id) const {
  const auto found = setting_of_.find(id);
  return found == setting_of_.end() ? id : found->second;
}

// Whether it is the node's fastest setting now.
bool Planted::add_setting(std::int64_t node, std::int64_t id) {
  Node& known = nodes_[node];
  setting_of_[id] = node;
  known.settings.push_back(id);
  const bool better = known.fastest == 0 || is_faster(results_.at(id), results_.at(known.fastest));
  if (better) known.fastest = id;
  return better;
}

void Planted::place(std::int64_t parent, std::int64_t id, const NodeResult& node,
                    const std::string& source) {
  results_[id] = node;
  const auto [known, added] = by_source_.emplace(source.empty() ? own_source(id) : source, id);
  const bool better = add_setting(known->second, id);
  if (added) {
    if (parent == 0 && !steps_.empty()) parent = steps_.front().id;
    steps_.push_back({id, parent == 0 ? 0 : node_of(parent)});
    add(steps_.back(), node);
  } else {
    stale_ |= better;
  }
  ++placed_;
  while (!expected_.empty() && expected_.front().after <= placed_) {
    close(expected_.front().candidate);
    expected_.pop_front();
  }
}

const Search& Planted::search() {
  if (stale_) plant();
  return *search_;
}

std::optional<Turn> Planted::start() {
  if (stale_) plant();
  auto turn = search_->start();
  if (!turn) return turn;
  in_flight_.insert(turn->parent);
  turn->parent = nodes_.at(turn->parent).fastest;
  return turn;
}

Turn Planted::start_on(std::int64_t id) {
  if (stale_) plant();
  const std::int64_t node = node_of(id);
  search_->begin(node);
  in_flight_.insert(node);
  return Turn{nodes_.at(node).fastest};
}

void Planted::cancel(std::int64_t parent) {
  const std::int64_t node = node_of(parent);
  search_->cancel(node);
  in_flight_.erase(in_flight_.find(node));
}

void Planted::close(std::int64_t id) {
  const std::int64_t node = node_of(id);
  search_->close(node);
  closed_.insert(node);
  steps_.push_back({node, 0, true});
}

void Planted::finalize(std::int64_t parent, std::int64_t id, const NodeResult& node,
                       const std::string& source) {
  cancel(parent);
  place(parent, id, node, source);
}

void Planted::replant(const std::function<NodeResult(std::int64_t)>& result) {
  for (auto& [id, known] : results_) known = result(id);
  for (auto& [id, node] : nodes_) {
    node.fastest = node.settings.front();
    for (const std::int64_t each : node.settings) {
      if (is_faster(results_.at(each), results_.at(node.fastest))) node.fastest = each;
    }
  }
  plant();
}

// The search, from nothing, with every node at its fastest setting.
void Planted::plant() {
  stale_ = false;
  search_ = make_();
  for (const Step& step : steps_) {
    if (step.closed) {
      search_->close(step.id);
    } else {
      add(step, results_.at(nodes_.at(step.id).fastest));
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
    const std::string source = source_of(brief.known, settings);
    ledger.record(std::move(brief));
    planted.place(parent, id, node_result(ledger, id, settings.feedback), source);
  }));
  return planted.search().nodes();
}

}  // namespace kernelpro
