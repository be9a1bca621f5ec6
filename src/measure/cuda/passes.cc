// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/passes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/task/inputs.h"

namespace kernelpro {

std::vector<int> secret_order(int count, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[kp::mix64(seed + i) % i]);
  }
  return order;
}

std::vector<PassStep> plan_pass(int sets, int spare, bool incumbent, bool warm_up, int at_most,
                                std::uint64_t pass, std::uint64_t seed) {
  std::vector<PassStep> steps;
  if (!incumbent) {
    const std::vector<int> order = secret_order(sets, kp::mix64(seed ^ (2 * pass + 1)));
    std::size_t timed = order.size();
    if (warm_up && spare >= 0) {
      steps.push_back({true, spare, false});
    } else if (warm_up && timed > 1) {
      steps.push_back({true, order.back(), false});
      --timed;
    }
    timed = std::min(timed, static_cast<std::size_t>(at_most));
    for (std::size_t k = 0; k < timed; ++k) steps.push_back({true, order[k], true});
    return steps;
  }
  const std::vector<int> order = secret_order(sets, kp::mix64(seed ^ (pass & ~1ull)));
  const int half = std::min(sets / 2, at_most);
  const bool swapped = (pass & 1) != 0;
  const auto set_of = [&](int k, bool first_half) {
    return order[static_cast<std::size_t>(first_half ? k : sets / 2 + k)];
  };
  if (warm_up) {
    // With an odd number the set left over, else one of the incumbent's.
    const int warm = spare >= 0 ? spare : sets % 2 == 1 ? order.back() : set_of(0, swapped);
    steps.push_back({true, warm, false});
    steps.push_back({false, warm, false});
  }
  for (int k = 0; k < half; ++k) {
    const PassStep candidate{true, set_of(k, !swapped), true};
    const PassStep other{false, set_of(k, swapped), true};
    const bool candidate_first = (kp::mix64(seed + 97 * pass + static_cast<unsigned>(k)) & 1) != 0;
    steps.push_back(candidate_first ? candidate : other);
    steps.push_back(candidate_first ? other : candidate);
  }
  return steps;
}

namespace {

// Places of the candidate's timed calls.
std::vector<std::size_t> timed_places(const std::vector<PassStep>& steps) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].candidate && steps[i].timed) places.push_back(i);
  }
  return places;
}

}  // namespace

std::size_t timed_calls(const std::vector<PassStep>& steps) { return timed_places(steps).size(); }

void place_probes(const std::vector<int>& probes, std::uint64_t seed,
                  std::vector<PassStep>* steps) {
  const std::vector<std::size_t> places = timed_places(*steps);
  const std::vector<int> order = secret_order(static_cast<int>(places.size()), seed);
  for (std::size_t k = 0; k < std::min(probes.size(), places.size()); ++k) {
    PassStep& step = (*steps)[places[static_cast<std::size_t>(order[k])]];
    step.set = probes[k];
    step.probe = true;
  }
}

std::vector<double> couple_ratios(const std::vector<PassStep>& first,
                                  const std::vector<double>& first_us,
                                  const std::vector<PassStep>& second,
                                  const std::vector<double>& second_us) {
  const auto ratios = [](const std::vector<PassStep>& steps, const std::vector<double>& us) {
    std::vector<double> mine, others, result;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].timed) continue;
      (steps[i].candidate ? mine : others).push_back(steps[i].probe ? NAN : us[i]);
    }
    for (std::size_t k = 0; k < std::min(mine.size(), others.size()); ++k) {
      result.push_back(others[k] / mine[k]);
    }
    return result;
  };
  const std::vector<double> a = ratios(first, first_us), b = ratios(second, second_us);
  std::vector<double> result;
  for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    if (!std::isnan(a[k]) && !std::isnan(b[k])) result.push_back(std::sqrt(a[k] * b[k]));
  }
  return result;
}

}  // namespace kernelpro
