// SPDX-License-Identifier: Apache-2.0
#include "report/trajectories.h"

#include <algorithm>
#include <map>

#include "core/json.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

Json parsed(const std::string& text) { return parse_json(text).value_or(Json()); }

Json time_of(const Known* known) {
  if (known == nullptr || known->evaluation.correct() == nullptr) return Json();
  return score_us(known->evaluation);
}

Json line_of(const StoredCandidate& each, const Known* parent, const Json& run, const Json& start,
             const std::optional<Writing>& writing) {
  const Known& known = each.known;
  const Candidate& candidate = known.candidate;
  const Json time = time_of(&known), before = time_of(parent);
  Json line = {{"run", run},
               {"candidate", known.id},
               {"parent", candidate.origin.parent},
               {"position", each.order},
               {"proposer", candidate.origin.proposer},
               {"idea", idea_text(candidate.origin)},
               {"answers", candidate.origin.answers.text()},
               {"language", language_name(candidate.language)},
               {"source", candidate.source},
               {"knobs", candidate.knobs},
               {"parent_source", parent != nullptr ? Json(parent->candidate.source) : Json()},
               {"request", Json()},
               {"writer", Json()},
               {"prompt", Json()},
               {"reply", Json()},
               {"usage", Json()},
               {"evaluation", parsed(evaluation_to_json(known.evaluation))},
               {"time_us", time},
               {"start_us", start},
               {"speedup_over_parent", Json()},
               {"diagnosis", parsed(diagnosis_to_json(known.diagnosis))}};
  if (time.is_number() && before.is_number()) {
    line["speedup_over_parent"] = before.get<double>() / time.get<double>();
  }
  if (writing) {
    line["request"] = writing->request;
    line["writer"] = writing->writer;
    line["prompt"] = writing->prompt;
    line["reply"] = writing->reply;
    line["usage"] = parsed(writing->usage);
  }
  return line;
}

}  // namespace

Result<std::string> trajectories(const std::string& directory, bool written) {
  const auto store = Store::open(directory, Store::Mode::kRead);
  if (!store) return tl::unexpected<Error>(store.error());
  const auto header = (*store)->header();
  if (!header) return tl::unexpected<Error>(header.error());
  auto all = (*store)->candidates();
  if (!all) return tl::unexpected<Error>(std::move(all.error()));
  std::erase_if(*all, [](const StoredCandidate& each) { return !each.evaluated; });
  std::sort(all->begin(), all->end(),
            [](const StoredCandidate& a, const StoredCandidate& b) { return a.order < b.order; });
  std::map<std::int64_t, const Known*> known;
  Json start;
  for (const StoredCandidate& each : *all) {
    known[each.known.id] = &each.known;
    if (start.is_null()) start = time_of(&each.known);
  }
  const Json run = {{"task", header->task.name},
                    {"target", target_name(header->target)},
                    {"machine", header->machine.name}};
  std::string text;
  for (const StoredCandidate& each : *all) {
    auto writing = (*store)->writing(each.known.id);
    if (!writing) return tl::unexpected<Error>(std::move(writing.error()));
    if (written && !*writing) continue;
    const auto parent = known.find(each.known.candidate.origin.parent);
    text += dump_json(line_of(each, parent == known.end() ? nullptr : parent->second, run, start,
                              *writing)) +
            "\n";
  }
  return text;
}

}  // namespace kernelpro
