// SPDX-License-Identifier: Apache-2.0
#include "run/store/recorded.h"

#include "base/json.h"
#include "run/store/store.h"

namespace kernelpro {

Result<Recorded> read_recorded(const std::string& directory) {
  KP_ASSIGN(auto store, Store::open(directory, Store::Mode::kRead));
  KP_ASSIGN(const auto header, store->header());
  KP_ASSIGN(const auto candidates, store->candidates(false));
  const StoredCandidate* start = nullptr;
  for (const StoredCandidate& each : candidates) {
    if (!each.evaluated || score_us(each.known.evaluation) <= 0) continue;
    if (start == nullptr || each.order < start->order) start = &each;
  }
  Recorded recorded{directory, header.machine.name, {}};
  for (const StoredCandidate& each : candidates) {
    if (!each.evaluated) continue;
    const double us = score_us(each.known.evaluation);
    recorded.results.push_back({each.known.candidate.content_hash(), each.known.id,
                                outcome_name(each.known.evaluation.outcome), us,
                                us > 0 ? score_us(start->known.evaluation) / us : 0});
  }
  return recorded;
}

std::string recorded_to_json(const Recorded& recorded) {
  Json results = Json::array();
  for (const RecordedResult& each : recorded.results) {
    results.push_back({{"hash", each.hash},
                       {"id", each.id},
                       {"outcome", each.outcome},
                       {"us", each.us},
                       {"speedup", each.speedup}});
  }
  return dump_json({{"directory", recorded.directory},
                    {"machine", recorded.machine},
                    {"results", std::move(results)}});
}

Recorded recorded_from_json(const std::string& json) {
  const Json parsed = parse_json(json).value_or(Json());
  const JsonReader reader(parsed);
  Recorded recorded{reader.text("directory"), reader.text("machine"), {}};
  for (const Json& each : reader.array("results")) {
    const JsonReader r(each);
    recorded.results.push_back(
        {r.text("hash"), r.integer("id"), r.text("outcome"), r.real("us"), r.real("speedup")});
  }
  return recorded;
}

}  // namespace kernelpro
