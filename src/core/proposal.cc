// SPDX-License-Identifier: Apache-2.0
#include "core/proposal.h"

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

}  // namespace kernelpro
