// SPDX-License-Identifier: Apache-2.0
#include "write/repairs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kernelpro {

namespace {

// An idea that answers no finding promises this, or what its parent's best finding does. Own.
constexpr double kOfAnIdea = 1.3;

const Known* parent_of(const Known& failed, const ProposalRequest& request) {
  for (const KnownPtr& known : request.history) {
    if (known->id == failed.candidate.origin.parent) return known.get();
  }
  return nullptr;
}

double likely_gain(const Known& failed, const Known& parent, const ProposalRequest& request) {
  if (request.feedback != Feedback::kDiagnosed) return kOfAnIdea;
  const Finding* finding = answered(parent.diagnosis, failed.candidate.origin.answers);
  if (finding != nullptr) return std::max(finding->likely_speedup, kOfAnIdea);
  const bool has_findings = !parent.diagnosis.findings.empty();
  return has_findings ? std::max(kOfAnIdea, parent.diagnosis.findings.front().likely_speedup)
                      : kOfAnIdea;
}

}  // namespace

double promised_us(const Known& failed, const ProposalRequest& request) {
  const Known* parent = parent_of(failed, request);
  if (parent == nullptr) return 0;
  const double us = comparable_us(*parent);
  const double fraction = std::min(1.0, parent->diagnosis.fraction_of_ceiling);
  return std::max(us / likely_gain(failed, *parent, request), us * fraction);
}

History worth_repairing(const History& failed, const ProposalRequest& request) {
  const double best_us = request.best != nullptr ? comparable_us(*request.best) : 0;
  std::vector<std::pair<double, KnownPtr>> promising;
  for (const KnownPtr& known : failed) {
    const double us = promised_us(*known, request);
    if (us <= 0 || best_us <= 0 || us < best_us) promising.emplace_back(us, known);
  }
  std::stable_sort(promising.begin(), promising.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  History sorted;
  for (auto& [us, known] : promising) sorted.push_back(std::move(known));
  return sorted;
}

}  // namespace kernelpro
