// SPDX-License-Identifier: Apache-2.0
#include "report/pareto.h"

#include <algorithm>

#include "base/text.h"

namespace kernelpro {

const Energy* energy_of(const StoredCandidate& candidate) {
  const Correct* correct = candidate.known.evaluation.correct();
  return correct != nullptr && correct->energy ? &*correct->energy : nullptr;
}

std::vector<const StoredCandidate*> pareto_front(const RunView& view) {
  std::vector<const StoredCandidate*> all;
  for (const StoredCandidate& candidate : view.candidates) {
    if (candidate.evaluated && energy_of(candidate) != nullptr) all.push_back(&candidate);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    const double x = score_us(a->known.evaluation), y = score_us(b->known.evaluation);
    return x != y ? x < y : energy_of(*a)->millijoules < energy_of(*b)->millijoules;
  });
  std::vector<const StoredCandidate*> front;
  for (const StoredCandidate* candidate : all) {
    const bool better =
        front.empty() || energy_of(*candidate)->millijoules < energy_of(*front.back())->millijoules;
    if (better) front.push_back(candidate);
  }
  return front;
}

std::string energy_lines(const RunView& view) {
  const std::vector<const StoredCandidate*> front = pareto_front(view);
  if (front.empty()) return "";
  std::string text;
  if (view.confirmation) {
    const Correct* winner = view.confirmation->evaluation.correct();
    if (winner != nullptr && winner->energy) {
      text +=
          "energy of the winner, compared with the start: " + energy_text(*winner->energy) + "\n";
    }
  }
  text += "Pareto front of time and energy:\n";
  for (const StoredCandidate* candidate : front) {
    const Known& known = candidate->known;
    text += "  #" + std::to_string(known.id) + "  " + human_us(score_us(known.evaluation)) + "  " +
            number(energy_of(*candidate)->millijoules, 4) + " mJ  " +
            clip(printable(knobs_to_text(known.candidate.knobs)), 120) + "\n";
  }
  return text;
}

}  // namespace kernelpro
