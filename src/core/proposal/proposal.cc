// SPDX-License-Identifier: Apache-2.0
#include "core/proposal/proposal.h"

#include "base/hash.h"
#include "core/candidate/language.h"

namespace kernelpro {

std::string_view feedback_name(Feedback feedback) {
  switch (feedback) {
    case Feedback::kNone:
      return "none";
    case Feedback::kRaw:
      return "raw";
    case Feedback::kDiagnosed:
      break;
  }
  return "diagnosed";
}

std::optional<Feedback> feedback_from_name(std::string_view name) {
  for (const Feedback f : {Feedback::kNone, Feedback::kRaw, Feedback::kDiagnosed}) {
    if (feedback_name(f) == name) return f;
  }
  return std::nullopt;
}

std::string source_key(const Known& known) {
  return std::string(language_name(known.candidate.language)) + ":" +
         (known.brief() ? known.source_hash : source_hash(known.candidate.source));
}

double comparable_us(const Known& known) {
  const double us = score_us(known.evaluation);
  return us > 0 && known.comparable > 0 ? known.comparable : us;
}

double drift_between(const Known& before, const Known& after) {
  const double then = score_us(before.evaluation), now = score_us(after.evaluation);
  if (then <= 0 || now <= 0) return 1;
  return comparable_us(before) / comparable_us(after) * now / then;
}

const DialectRow& wanted_dialect(const ProposalRequest& request) {
  return request.dialect ? dialect_row(*request.dialect) : native_dialect(request.target);
}

std::string content_hash(const Known& known) {
  return known.brief() ? known.content_hash : known.candidate.content_hash();
}

std::string source_hash(const std::string& source) { return hash_hex(source); }

SameSource::SameSource(const Candidate& as) : as_(as), hash_(source_hash(as.source)) {}

bool SameSource::operator()(const Known& known) const {
  if (known.candidate.language != as_.language) return false;
  return known.brief() ? known.source_hash == hash_ : known.candidate.source == as_.source;
}

}  // namespace kernelpro
