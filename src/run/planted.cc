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

void Planted::place(std::int64_t parent, std::int64_t id, const NodeResult& node) {
  if (parent != 0) {
    search_->restore(parent, id, node);
  } else if (root_ != 0) {
    search_->restore(root_, id, node);
  } else {
    search_->add_root(id, node);
    root_ = id;
  }
}

Result<std::vector<SearchNode>> stored_nodes(const Store& store) {
  const auto header = store.header();
  if (!header) return tl::unexpected<Error>(header.error());
  const RunSettings settings = settings_from_json(header->settings_json).value_or(RunSettings());
  auto search = make_preset_search(settings.search, settings.preset, settings.seed);
  if (!search) return tl::unexpected<Error>(std::move(search.error()));
  Ledger ledger(EvaluateSettings().min_effect, settings.objective);
  Planted planted(search->get());
  KP_TRY(store.briefs([&](StoredBrief brief) {
    const std::int64_t id = brief.known.id;
    // A missing parent counts as none: a report must not fail over it.
    std::int64_t parent = brief.known.candidate.origin.parent;
    if (ledger.find_brief(parent) == nullptr) parent = 0;
    ledger.record(std::move(brief));
    planted.place(parent, id, node_result(ledger, id, settings.feedback));
  }));
  return (*search)->nodes();
}

}  // namespace kernelpro
