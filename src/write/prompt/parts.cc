// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/parts.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace kernelpro {

namespace {

// A diagnosis is shorter (prompt.cc); three kernels' raw tables of about 11 kB each fit whole.
constexpr PartLimit kLimits[] = {{"standing", 6000}, {"diagnosis", 40000},  {"focus", 1000},
                                 {"best", 16500},    {"definition", 13000}, {"tried", 8000},
                                 {"memory", 6000},   {"cures", 3000},       {"machine", 2000},
                                 {"advice", 16000}};

// After a line: the fence that is open, or "".
std::string fence_after(const std::string& line, const std::string& fence) {
  const std::size_t ticks = std::min(line.find_first_not_of('`'), line.size());
  if (fence.empty()) return ticks >= 3 ? line.substr(0, ticks) : "";
  return ticks >= fence.size() && ticks == line.size() ? "" : fence;
}

}  // namespace

std::span<const PartLimit> part_limits() { return kLimits; }

std::string shortened_part(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::string shown, fence;
  for (const std::string& line : lines(text)) {
    if (shown.size() + line.size() + 1 > most) break;
    shown += line + "\n";
    fence = fence_after(line, fence);
  }
  if (!fence.empty()) shown += fence + "\n";
  return shown + "(" + std::to_string(text.size() - std::min(shown.size(), text.size())) +
         " bytes more are left out)\n";
}

void shorten_parts(PromptFields* fields) {
  for (const PartLimit& limit : kLimits) {
    const auto field = fields->find(std::string(limit.field));
    if (field != fields->end()) field->second = shortened_part(field->second, limit.bytes);
  }
}

}  // namespace kernelpro
