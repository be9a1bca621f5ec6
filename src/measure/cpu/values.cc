// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/values.h"

#include <algorithm>

#include "base/statistics/statistics.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

constexpr std::size_t kEnough = 6;  // calls on a probe's values
constexpr std::size_t kMost = 512;  // calls on the task's own that are remembered
constexpr double kSlackNs = 3000;   // beyond kValuesFactor: an order does not always take as long

bool is_slower(double probe_us, double given_us) {
  return probe_us > kValuesFactor * given_us + kSlackNs * 1e-3;
}

}  // namespace

void ValueTimes::add_given(double wall_ns) {
  if (given_ns_.size() < kMost) given_ns_.push_back(wall_ns);
}

void ValueTimes::add_probe(DrawKind kind, double wall_ns) { probe_ns_[kind].push_back(wall_ns); }

ValueTimes::Slower ValueTimes::compare(DrawKind kind, double order_ns) const {
  const auto probe = probe_ns_.find(kind);
  if (probe == probe_ns_.end() || given_ns_.empty()) return {};
  const auto own_us = [&](double wall_ns) { return 1e-3 * std::max(0.0, wall_ns - order_ns); };
  return {kind, own_us(std::ranges::min(probe->second)), own_us(median(given_ns_))};
}

bool ValueTimes::wants_more(DrawKind kind, double order_ns) const {
  const auto probe = probe_ns_.find(kind);
  if (probe == probe_ns_.end() || probe->second.size() >= kEnough) return false;
  const Slower found = compare(kind, order_ns);
  return is_slower(found.probe_us, found.given_us);
}

std::vector<ValueTimes::Slower> ValueTimes::slower(double order_ns) const {
  std::vector<Slower> all;
  for (const auto& [kind, times] : probe_ns_) {
    const Slower found = compare(kind, order_ns);
    if (times.size() >= kEnough && is_slower(found.probe_us, found.given_us)) all.push_back(found);
  }
  return all;
}

}  // namespace kernelpro
