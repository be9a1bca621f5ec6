// SPDX-License-Identifier: Apache-2.0
// One source text, its language, its knob values and its origin. Content-addressed: two candidates
// with the same language, source and knob values are the same candidate.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/candidate/language.h"

namespace kernelpro {

using KnobValues = std::map<std::string, std::string>;

// Refers to a prescription of a finding.
struct FindingRef {
  std::string tool;  // "" = none
  std::string tag;   // of the prescription; "" = any

  bool empty() const { return tool.empty(); }
  std::string text() const;  // "scalar-loads: vectorize"
  static FindingRef parse(std::string_view text);
  auto operator<=>(const FindingRef&) const = default;
};

struct Origin {
  // Origins without a proposer: the kernel that a run starts from, one brought along
  // (--start-from), one given for a verdict.
  static constexpr const char* kStart = "start";
  static constexpr const char* kSeed = "seed";
  static constexpr const char* kGiven = "given";

  std::string proposer;      // its name (run/proposers.h), or one of the above
  std::int64_t parent = 0;   // candidate id in the run; 0: none
  std::string idea;          // one sentence: what was changed and why
  FindingRef answers = {};   // prescription of the parent's diagnosis
  std::int64_t repairs = 0;  // the failed candidate whose idea this one retries; 0: none
};
// For display: "repair of 7: Load four numbers at once."
std::string idea_text(const Origin& origin);

struct Candidate {
  Language language = Language::kCpp;
  std::string source;
  KnobValues knobs;
  Origin origin;

  std::string content_hash() const;  // of language, source and knobs; not of the origin
};

std::string knobs_to_text(const KnobValues& knobs);  // "TILE=32 VEC=4"

std::string candidate_to_json(const Candidate& candidate);
std::optional<Candidate> candidate_from_json(const std::string& json);  // nullopt: damaged

}  // namespace kernelpro
