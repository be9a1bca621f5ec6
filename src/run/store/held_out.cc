// SPDX-License-Identifier: Apache-2.0
#include "run/store/held_out.h"

#include <algorithm>

#include "base/json.h"
#include "base/statistics/statistics.h"
#include "base/text.h"

namespace kernelpro {

namespace {

bool failed(const HeldOut& one) {
  return one.problem.empty() && one.evaluation.correct() == nullptr;
}

const Correct::Versus* versus(const HeldOut& one) {
  const Correct* correct = one.problem.empty() ? one.evaluation.correct() : nullptr;
  return correct != nullptr && correct->versus ? &*correct->versus : nullptr;
}

}  // namespace

double held_out_speedup(const std::vector<HeldOut>& cases) {
  std::vector<double> ratios;
  for (const HeldOut& one : cases) {
    if (versus(one) == nullptr) return 0;
    ratios.push_back(versus(one)->ratio);
  }
  return ratios.empty() ? 0 : geometric_mean(ratios);
}

bool held_out_failed(const std::vector<HeldOut>& cases) {
  return std::any_of(cases.begin(), cases.end(), failed);
}

std::string held_out_outcome(const HeldOut& one) {
  if (!one.problem.empty()) return "not measured: " + one.problem;
  if (failed(one)) return "FAILED: " + outcome_summary(one.evaluation.outcome);
  const std::string time = human_us(score_us(one.evaluation)) + " a call";
  const Correct::Versus* v = versus(one);
  if (v == nullptr) return time;
  return number(v->ratio, 3) + "x the baseline (95 % interval " + number(v->low, 3) + " to " +
         number(v->high, 3) + "), " + time;
}

std::string held_out_text(const std::vector<HeldOut>& cases) {
  if (cases.empty()) return "";
  std::string text;
  for (const HeldOut& one : cases) {
    text += "held out: case " + one.case_name + ": " + printable(held_out_outcome(one)) + "\n";
  }
  if (const double mean = held_out_speedup(cases); mean > 0 && cases.size() > 1) {
    text += "held out: " + number(mean, 3) + "x the baseline over all " +
            std::to_string(cases.size()) + " (geometric mean)\n";
  }
  if (held_out_failed(cases)) {
    text +=
        "held out: the winner holds only for the sizes that the search knew. Use it for those "
        "alone, or leave held_out out of the case that failed and search again in a new run.\n";
  }
  return text;
}

std::string held_out_to_json(const std::vector<HeldOut>& cases) {
  Json all = Json::array();
  for (const HeldOut& one : cases) {
    Json json = {{"case", one.case_name}, {"text", held_out_outcome(one)}};
    if (one.problem.empty()) {
      json["outcome"] = outcome_name(one.evaluation.outcome);
      json["time_us"] = score_us(one.evaluation);
    } else {
      json["problem"] = one.problem;
    }
    if (const Correct::Versus* v = versus(one)) {
      json["speedup"] = v->ratio;
      json["speedup_low"] = v->low;
      json["speedup_high"] = v->high;
    }
    all.push_back(std::move(json));
  }
  return dump_json({{"speedup", held_out_speedup(cases)},
                    {"failed", held_out_failed(cases)},
                    {"cases", std::move(all)}});
}

}  // namespace kernelpro
