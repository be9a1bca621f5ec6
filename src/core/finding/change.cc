// SPDX-License-Identifier: Apache-2.0
#include "core/finding/change.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr double kLeastMoved = 0.02;  // of the parent's time
constexpr std::size_t kMostMoved = 6;

using PartKey = std::pair<PartKind, std::optional<Stall>>;

PartKey key_of(const AccountPart& part) {
  return {part.kind, part.kind == PartKind::kWait ? part.stall : std::nullopt};
}

std::map<PartKey, double> parts_of(const Account& account) {
  std::map<PartKey, double> all;
  double in_kernels = 0;
  for (const KernelAccount& kernel : account.kernels) {
    in_kernels += kernel.us;
    for (const AccountPart& part : kernel.parts) all[key_of(part)] += part.us;
  }
  for (const AccountPart& part : account.parts) {
    // What the kernels' own accounts hold counts once.
    const double us = part.kind == PartKind::kKernels ? part.us - in_kernels : part.us;
    if (us > 0) all[key_of(part)] += us;
  }
  return all;
}

// Whether it says where the time of kernels goes.
bool looks_inside(const Account& account) {
  return std::any_of(account.kernels.begin(), account.kernels.end(),
                     [](const KernelAccount& kernel) { return !kernel.parts.empty(); });
}

}  // namespace

WhatChanged what_changed(const Diagnosis& parent, const Diagnosis& child, const FindingRef& answers,
                         double drift) {
  WhatChanged change;
  change.before_us = drift * parent.account.us;
  change.after_us = child.account.us;
  change.answers = answers;
  if (const Finding* finding = answered(parent, answers)) change.promised = finding->likely_speedup;
  if (!parent.account.known() || !child.account.known()) return change;
  change.parts_known = looks_inside(parent.account) == looks_inside(child.account);
  if (!change.parts_known) return change;
  std::map<PartKey, MovedPart> both;
  for (const auto& [key, us] : parts_of(parent.account)) both[key].before_us = drift * us;
  for (const auto& [key, us] : parts_of(child.account)) both[key].after_us = us;
  for (const auto& [key, part] : both) {
    if (std::abs(part.after_us - part.before_us) < kLeastMoved * change.before_us) continue;
    // The floor is one of measured ceilings, and does not drift as the parent's time did.
    if (key.first == PartKind::kFloor && std::abs(drift - 1) > kLeastMoved) continue;
    change.moved.push_back({key.first, key.second, part.before_us, part.after_us});
  }
  std::stable_sort(change.moved.begin(), change.moved.end(),
                   [](const MovedPart& a, const MovedPart& b) {
                     return std::abs(a.after_us - a.before_us) > std::abs(b.after_us - b.before_us);
                   });
  if (change.moved.size() > kMostMoved) change.moved.resize(kMostMoved);
  return change;
}

std::string change_to_text(const WhatChanged& change, const std::string& title) {
  if (change.before_us <= 0 || change.after_us <= 0) return "";
  std::string text = title + ": " + human_us(change.before_us) + " became " +
                     human_us(change.after_us) + " (" +
                     number(change.before_us / change.after_us, 3) + "x)";
  if (!change.answers.empty()) {
    text += ", in answer to " + one_line(change.answers.text());
    if (change.promised > 1) text += ", which promised " + number(change.promised, 3) + "x";
  }
  text += ".\n";
  for (const MovedPart& part : change.moved) {
    const double moved = part.after_us - part.before_us;
    text += "- " + part_words(part.kind, part.stall) + ": " + human_us(part.before_us) + " to " +
            human_us(part.after_us) + " (" + (moved < 0 ? "-" : "+") + human_us(std::abs(moved)) +
            ")\n";
  }
  if (!change.parts_known) {
    text += "- which parts moved is unknown: one of the two was not profiled\n";
  } else if (change.moved.empty()) {
    text += "- no part of the time moved by 2 % or more\n";
  }
  return text;
}

}  // namespace kernelpro
