// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/values.h"

#include <algorithm>
#include <optional>

#include "base/statistics/statistics.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

constexpr std::size_t kEnough = 6;      // calls on a probe's values
constexpr std::size_t kMost = 1 << 16;  // calls on the task's own that are remembered
constexpr std::size_t kNear = 5;        // of them, before a probe's and after it
constexpr double kSlackNs = 3000;  // beyond kValuesFactor: an order does not always take as long

bool is_slower(double probe_us, double given_us) {
  return probe_us > kValuesFactor * given_us + kSlackNs * 1e-3;
}

}  // namespace

void ValueTimes::add_given(double wall_ns) {
  if (given_ns_.size() < kMost) given_ns_.push_back(wall_ns);
}

void ValueTimes::add_probe(DrawKind kind, double wall_ns) {
  probes_[kind].push_back({wall_ns, given_ns_.size()});
}

// What a call on the task's own values takes at that time: the larger of the medians of the last
// ones before and of the first ones after.
double ValueTimes::given_near_ns(std::size_t at) const {
  const auto middle_of = [&](std::size_t from, std::size_t to) {
    if (from >= to) return 0.0;
    return median(std::vector<double>(given_ns_.begin() + static_cast<std::ptrdiff_t>(from),
                                      given_ns_.begin() + static_cast<std::ptrdiff_t>(to)));
  };
  const std::size_t after = std::min(at + kNear, given_ns_.size());
  return std::max(middle_of(at - std::min(at, kNear), at), middle_of(at, after));
}

ValueTimes::Slower ValueTimes::compare(DrawKind kind, double order_ns) const {
  const auto probes = probes_.find(kind);
  if (probes == probes_.end() || given_ns_.empty()) return {};
  const auto own_us = [&](double wall_ns) { return 1e-3 * std::max(0.0, wall_ns - order_ns); };
  const auto excess = [](const Slower& each) {
    return each.probe_us - kValuesFactor * each.given_us;
  };
  std::optional<Slower> least;
  for (const Probe& probe : probes->second) {
    const Slower each = {kind, own_us(probe.wall_ns), own_us(given_near_ns(probe.at))};
    if (!least || excess(each) < excess(*least)) least = each;
  }
  return least.value_or(Slower());
}

bool ValueTimes::wants_more(DrawKind kind, double order_ns) const {
  const auto probes = probes_.find(kind);
  if (probes == probes_.end() || probes->second.size() >= kEnough) return false;
  const Slower found = compare(kind, order_ns);
  return is_slower(found.probe_us, found.given_us);
}

std::vector<ValueTimes::Slower> ValueTimes::slower(double order_ns) const {
  std::vector<Slower> all;
  for (const auto& [kind, probes] : probes_) {
    const Slower found = compare(kind, order_ns);
    if (probes.size() >= kEnough && is_slower(found.probe_us, found.given_us)) all.push_back(found);
  }
  return all;
}

}  // namespace kernelpro
