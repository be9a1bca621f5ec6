// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "core/evidence/metrics.h"

namespace kernelpro {

namespace {

// Values closer than this, relatively, are the same. Own.
constexpr double kSame = 0.005;
constexpr std::size_t kMostRows = 24;  // of a table for people

// What describes the code and how it is launched, and what counters saw of it. Times and rates have
// their own lines; task, machine and load are no property of the kernel.
bool is_compared(const Metric& metric) {
  switch (metric.family) {
    case Family::kHostCode:
    case Family::kPlan:
    case Family::kLaunch:
    case Family::kResources:
    case Family::kSass:
    case Family::kCounters:
      return metric.name != "kernel.share";
    default:
      return false;
  }
}

bool same(double a, double b) {
  return std::abs(a - b) <= kSame * std::max(std::abs(a), std::abs(b));
}

ComparedKernel compared(const std::string& name, const Evidence& before, const Evidence& after) {
  ComparedKernel kernel;
  kernel.name = name;
  for (const Metric& metric : metrics()) {
    if (!is_compared(metric)) continue;
    const auto was = before.get(std::string(metric.name)), is = after.get(std::string(metric.name));
    if (!was && !is) continue;
    if (was && is && same(*was, *is)) {
      ++kernel.same;
    } else {
      kernel.differing.push_back({metric.name, metric.unit, metric.description, was, is});
    }
  }
  return kernel;
}

const KernelEvidence* kernel_named(const Evidence& evidence, const std::string& name) {
  for (const KernelEvidence& kernel : evidence.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

void compare_kernels(const Evidence& before, const Evidence& after, SideBySide* comparison) {
  comparison->kernels.push_back(compared("", before, after));
  if (before.kernels.size() == 1 && after.kernels.size() == 1) {  // whatever it is called now
    const KernelEvidence &was = before.kernels[0], &is = after.kernels[0];
    const std::string name = was.name == is.name ? is.name : was.name + " -> " + is.name;
    comparison->kernels.push_back(compared(name, was.facts, is.facts));
    return;
  }
  for (const KernelEvidence& is : after.kernels) {
    const KernelEvidence* was = kernel_named(before, is.name);
    if (was == nullptr) {
      comparison->added.push_back(is.name);
    } else {
      comparison->kernels.push_back(compared(is.name, was->facts, is.facts));
    }
  }
  for (const KernelEvidence& was : before.kernels) {
    if (kernel_named(after, was.name) == nullptr) comparison->removed.push_back(was.name);
  }
}

// Tools of `diagnosis` that `other` does not have.
std::vector<std::string> only_in(const Diagnosis& diagnosis, const Diagnosis& other) {
  std::vector<std::string> tools;
  for (const Finding& finding : diagnosis.findings) {
    const auto same_tool = [&](const Finding& each) { return each.tool == finding.tool; };
    if (std::none_of(other.findings.begin(), other.findings.end(), same_tool)) {
      tools.push_back(finding.tool);
    }
  }
  return tools;
}

std::string shown(const std::optional<double>& value, std::string_view unit) {
  if (!value) return "-";
  if (unit == "byte") return human_bytes(*value);
  if (unit == "us") return human_us(*value);
  return number(*value) + (unit == "1" ? "" : " " + std::string(unit));
}

std::string change_of(const ComparedMetric& metric) {
  if (!metric.before || !metric.after) return metric.after ? "new" : "gone";
  if (*metric.before == 0 || *metric.after == 0) return "";
  const double percent = 100 * (*metric.after / *metric.before - 1);
  if (std::abs(percent) >= 300) return number(*metric.after / *metric.before, 3) + "x";
  return (percent > 0 ? "+" : "") + number(percent, 3) + " %";
}

std::string in_cell(std::string text) {
  return replace_all(printable(std::move(text)), "|", "\\|");
}

std::string table_of(const ComparedKernel& kernel) {
  if (kernel.differing.empty() && kernel.same == 0) return "";
  std::string text =
      kernel.name.empty() ? "\n### The call\n" : "\n### `" + in_cell(kernel.name) + "`\n";
  if (!kernel.differing.empty()) text += "| | old | new | change |\n|---|---|---|---|\n";
  std::size_t rows = 0;
  for (const ComparedMetric& metric : kernel.differing) {
    if (++rows > kMostRows) break;
    text += "| " + std::string(metric.description) + " (`" + std::string(metric.name) + "`) | " +
            shown(metric.before, metric.unit) + " | " + shown(metric.after, metric.unit) + " | " +
            change_of(metric) + " |\n";
  }
  if (kernel.differing.size() > kMostRows) {
    text += "\n" + std::to_string(kernel.differing.size() - kMostRows) +
            " more differ: `--json` lists all.\n";
  }
  if (kernel.same > 0) {
    text += "\n" + std::to_string(kernel.same) +
            (kernel.same == 1 ? " other metric is" : " other metrics are") + " the same.\n";
  }
  return text;
}

std::string names(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& each : all) text += (text.empty() ? "`" : ", `") + in_cell(each) + "`";
  return text;
}

std::string verdict_of(const SideBySide& comparison) {
  for (const auto& [name, wrong] : {std::pair(comparison.before, comparison.before_wrong),
                                    std::pair(comparison.after, comparison.after_wrong)}) {
    if (!wrong.empty()) return "**" + in_cell(name) + " does not work**: " + in_cell(wrong);
  }
  const auto ratio = speedup_of(comparison);
  if (!ratio) return "No times were measured: what follows is what can be told without running.";
  const std::string times =
      human_us(comparison.before_us) + " before, " + human_us(comparison.after_us) + " after";
  if (!comparison.paired) {
    return "**" + number(*ratio, 3) + "x** as fast (" + times + "; not timed in turn)";
  }
  const auto& [incumbent, middle, low, high] = *comparison.paired;
  const std::string interval =
      " (" + number(low, 3) + " to " + number(high, 3) + "; " + times + ")";
  if (low > 1) return "**Faster: " + number(middle, 3) + "x**" + interval;
  if (high < 1) return "**Slower: " + number(middle, 3) + "x**" + interval;
  return "**No difference seen: " + number(middle, 3) + "x**" + interval;
}

}  // namespace

SideBySide compare(const ComparedSide& before, const ComparedSide& after,
                   const std::optional<Correct::Versus>& paired) {
  SideBySide comparison;
  comparison.before = before.name;
  comparison.after = after.name;
  comparison.before_wrong = before.wrong;
  comparison.after_wrong = after.wrong;
  comparison.before_us = before.evidence.get("timing.median").value_or(0);
  comparison.after_us = after.evidence.get("timing.median").value_or(0);
  comparison.paired = paired;
  compare_kernels(before.evidence, after.evidence, &comparison);
  comparison.change = what_changed(before.diagnosis, after.diagnosis, {});
  comparison.mended = only_in(before.diagnosis, after.diagnosis);
  comparison.newly = only_in(after.diagnosis, before.diagnosis);
  return comparison;
}

std::optional<double> speedup_of(const SideBySide& comparison) {
  if (comparison.paired) return comparison.paired->ratio;
  if (comparison.before_us <= 0 || comparison.after_us <= 0) return std::nullopt;
  return comparison.before_us / comparison.after_us;
}

bool falls_below(const SideBySide& comparison, double speedup) {
  if (!comparison.after_wrong.empty()) return true;
  if (comparison.paired) return comparison.paired->high < speedup;
  return speedup_of(comparison).value_or(speedup) < speedup;
}

std::string comparison_text(const SideBySide& comparison) {
  std::string text = "## " + in_cell(comparison.before) + " -> " + in_cell(comparison.after) +
                     "\n" + verdict_of(comparison) + "\n";
  if (comparison.before_wrong.empty() && comparison.after_wrong.empty()) {
    const std::string account = change_to_text(comparison.change, "Where the time went");
    if (!account.empty()) text += "\n" + account;
  }
  if (!comparison.mended.empty()) text += "\nNo longer found: " + names(comparison.mended) + "\n";
  if (!comparison.newly.empty()) text += "\nNewly found: " + names(comparison.newly) + "\n";
  if (!comparison.removed.empty()) text += "\nGone: " + names(comparison.removed) + "\n";
  if (!comparison.added.empty()) text += "\nNew: " + names(comparison.added) + "\n";
  for (const ComparedKernel& kernel : comparison.kernels) text += table_of(kernel);
  return text;
}

Json comparison_json(const SideBySide& comparison) {
  Json kernels = Json::array();
  for (const ComparedKernel& kernel : comparison.kernels) {
    Json differing = Json::array();
    for (const ComparedMetric& metric : kernel.differing) {
      differing.push_back({{"metric", metric.name},
                           {"unit", metric.unit},
                           {"before", metric.before ? Json(*metric.before) : Json()},
                           {"after", metric.after ? Json(*metric.after) : Json()}});
    }
    kernels.push_back({{"name", kernel.name}, {"differing", differing}, {"same", kernel.same}});
  }
  Json json = {{"schema", 1},
               {"before", comparison.before},
               {"after", comparison.after},
               {"before_us", comparison.before_us},
               {"after_us", comparison.after_us},
               {"kernels", kernels},
               {"removed", comparison.removed},
               {"added", comparison.added},
               {"no_longer_found", comparison.mended},
               {"newly_found", comparison.newly}};
  if (!comparison.before_wrong.empty()) json["before_wrong"] = comparison.before_wrong;
  if (!comparison.after_wrong.empty()) json["after_wrong"] = comparison.after_wrong;
  if (const auto ratio = speedup_of(comparison)) json["speedup"] = *ratio;
  if (comparison.paired) {
    json["speedup_low"] = comparison.paired->low;
    json["speedup_high"] = comparison.paired->high;
  }
  return json;
}

}  // namespace kernelpro
