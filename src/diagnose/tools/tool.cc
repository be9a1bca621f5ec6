// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/tool.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace kernelpro {

double Facts::operator()(const char* name) const {
  const auto value = evidence_.get(name);
  KP_ASSERT(value.has_value());
  return *value;
}

std::string Facts::text(const std::string& name) const {
  const auto found = evidence_.texts.find(name);
  return found == evidence_.texts.end() ? "" : found->second;
}

std::string percent(double fraction) {
  return number(fraction * 100, fraction < 0.0995 ? 2 : 3) + " %";
}

std::string times(double factor) { return number(factor, factor < 10 ? 2 : 3) + "x"; }

std::string per_second(double rate, std::string_view unit) {
  constexpr std::array<const char*, 5> prefixes{"", "k", "M", "G", "T"};
  std::size_t i = 0;
  while (rate >= 1000 && i + 1 < prefixes.size()) {
    rate /= 1000;
    ++i;
  }
  return number(rate, 3) + " " + prefixes[i] + std::string(unit) + "/s";
}

double speedup_without(double share) { return 1 / (1 - std::clamp(share, 0.0, 0.95)); }

}  // namespace kernelpro
