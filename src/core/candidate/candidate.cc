// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/candidate.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace kernelpro {

std::string FindingRef::text() const {
  return tool.empty() || tag.empty() ? tool : tool + ": " + tag;
}

FindingRef FindingRef::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  FindingRef ref{std::string(trim(text.substr(0, colon))), ""};
  if (colon != std::string_view::npos) ref.tag = trim(text.substr(colon + 1));
  return ref;
}

std::string idea_text(const Origin& origin) {
  if (origin.repairs == 0) return origin.idea;
  return "repair of " + std::to_string(origin.repairs) + ": " + origin.idea;
}

std::string knobs_to_text(const KnobValues& knobs) {
  std::string text;
  for (const auto& [name, value] : knobs) {
    if (!text.empty()) text += ' ';
    text += name + "=" + value;
  }
  return text;
}

std::string Candidate::content_hash() const {
  return hash_hex({language_name(language), source, knobs_to_text(knobs)});
}

std::string candidate_to_json(const Candidate& candidate) {
  const Origin& origin = candidate.origin;
  return dump_json({{"language", language_name(candidate.language)},
                    {"source", candidate.source},
                    {"knobs", candidate.knobs},
                    {"proposer", origin.proposer},
                    {"parent", origin.parent},
                    {"idea", origin.idea},
                    {"answers", {{"tool", origin.answers.tool}, {"tag", origin.answers.tag}}},
                    {"repairs", origin.repairs}});
}

std::optional<Candidate> candidate_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root) return std::nullopt;
  const JsonReader r(*root);
  const std::optional<Language> language = language_from_name(r.text("language"));
  if (!language) return std::nullopt;
  Candidate candidate;
  candidate.language = *language;
  candidate.source = r.text("source");
  for (const auto& [name, value] : r.object("knobs").items()) {
    if (!value.is_string()) return std::nullopt;
    candidate.knobs[name] = value.get<std::string>();
  }
  Origin& origin = candidate.origin;
  origin.proposer = r.text("proposer");
  origin.parent = r.integer("parent");
  origin.idea = r.text("idea");
  const JsonReader answers(r.object("answers"));
  origin.answers = {answers.text("tool"), answers.text("tag")};
  origin.repairs = r.integer("repairs");
  return candidate;
}

}  // namespace kernelpro
