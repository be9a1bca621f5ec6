// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/outcome_text.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kWholeFailure = 4000;

}  // namespace

std::string outcome_text(const Outcome& outcome, const std::string& end, std::size_t most) {
  const std::string summary = printable(outcome_summary(outcome));
  const std::size_t line_end = std::min(summary.find('\n'), summary.size());
  const std::string_view rest = trim(std::string_view(summary).substr(line_end));
  const std::string first = clip(summary.substr(0, line_end), most) + end;
  return rest.empty() ? first : first + "\n" + std::string(trim(fenced(clip(rest, most))));
}

std::string failure_text(const Outcome& outcome) {
  std::string text = outcome_text(outcome, "", kWholeFailure) + "\n";
  std::string more;
  if (const auto* failed = std::get_if<CompileError>(&outcome)) {
    text = "It does not compile:\n";
    more = failed->log;
  } else if (const auto* crashed = std::get_if<Crashed>(&outcome)) {
    more = crashed->output;
  }
  if (trim(more).empty()) return text;
  return text + "\n" + fenced(clip(printable(more), kWholeFailure));
}

}  // namespace kernelpro
