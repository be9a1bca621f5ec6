// SPDX-License-Identifier: Apache-2.0
#include "run/store/recorded.h"

#include <algorithm>

#include "base/json.h"
#include "run/store/store.h"
#include "run/store/winner.h"

namespace kernelpro {

Result<Recorded> read_recorded(const std::string& directory) {
  KP_ASSIGN(auto store, Store::open(directory, Store::Mode::kRead));
  KP_ASSIGN(const auto header, store->header());
  KP_ASSIGN(const auto candidates, store->candidates(false));
  const RankedRun run(header, candidates);
  Recorded recorded{directory, header.machine.name, {}};
  for (std::size_t i = 0; i < run.order.size(); ++i) {
    const Known& known = run.order[i]->known;
    const auto speedup = run.ranking.speedup_of(i);
    recorded.results.push_back({known.candidate.content_hash(), known.id,
                                outcome_name(known.evaluation.outcome), score_us(known.evaluation),
                                speedup ? speedup->ratio : 0});
  }
  std::sort(recorded.results.begin(), recorded.results.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
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
