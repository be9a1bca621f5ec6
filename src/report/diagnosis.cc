// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "core/evidence/metrics.h"
#include "core/plan/kernel_name.h"
#include "report/not_seen.h"
#include "report/view.h"

namespace kernelpro {

namespace {

constexpr const char* kBold = "1";
constexpr const char* kRed = "31";
constexpr const char* kYellow = "33";
constexpr const char* kGreen = "32";
constexpr const char* kDim = "2";

constexpr double kLeastPart = 0.015;  // of the call: smaller ones are shown with --all

std::string painted(const std::string& text, const char* code, const DiagnosisStyle& style) {
  return style.color ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

// Counts characters, not bytes; sufficient for the characters that we print.
int columns(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(const std::string& text, int width) {
  return text + std::string(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ');
}

std::string padded_left(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ') + text;
}

const char* color_of(const Finding& finding) {
  if (finding.stop) return kGreen;
  return finding.severity == Severity::kCritical  ? kRed
         : finding.severity == Severity::kWarning ? kYellow
                                                  : kBold;
}

std::string gain_of(const Finding& finding, int likely_width, int upper_width) {
  if (finding.stop) return "nothing left to gain";
  if (finding.upper_speedup <= 1) return "no estimated gain";
  return "likely " + padded_left(speedup_text(finding.likely_speedup), likely_width) +
         ", at most " + padded_left(speedup_text(finding.upper_speedup), upper_width);
}

struct Widths {
  int tool = 0, likely = 0, upper = 0;
};

std::string finding_lines(const Finding& finding, std::size_t position, const Widths& widths,
                          const DiagnosisStyle& style) {
  const std::string number = padded_left(std::to_string(position), 2) + ". ";
  std::string text =
      number + painted(padded(one_line(finding.tool), widths.tool), color_of(finding), style) +
      "  " + gain_of(finding, widths.likely, widths.upper) +
      painted("  (" + level_words(finding.level) + ")", kDim, style) + "\n";
  std::string cause = one_line(finding.cause);
  if (!finding.kernel.empty()) cause = short_kernel_name(one_line(finding.kernel)) + ": " + cause;
  text += wrapped(cause, style.width, 4);
  if (!finding.sites.empty()) {
    std::string at = "at " + sites_text(finding.sites);
    if (finding.share >= 0.005)
      at += " (" + kernelpro::number(100 * finding.share, 2) + " % of the time)";
    text += painted(wrapped(at, style.width, 4), kDim, style);
  }
  for (const Prescription& p : finding.prescriptions) {
    std::string line = one_line(p.text);
    if (!p.not_when.empty()) line += " Not when " + one_line(p.not_when) + ".";
    std::string part = wrapped(line, style.width, 6);
    part.replace(4, 1, "-");
    text += part;
  }
  return text;
}

std::string account_rows(const std::vector<AccountPart>& parts, double call_us, int indent,
                         const DiagnosisStyle& style) {
  constexpr int kName = 46;
  std::string text;
  for (const AccountPart& part : parts) {
    if (part.us < kLeastPart * call_us && !style.all) continue;
    const int margin = indent + kName > style.width - 18 ? style.width - 18 - indent : kName;
    std::string name = part_words(part);
    if (columns(name) > margin) name = std::string(utf8_prefix(name, margin - 1)) + "~";
    text += std::string(static_cast<std::size_t>(indent), ' ') + padded(name, margin) +
            padded_left(human_us(part.us), 10) +
            padded_left(std::to_string(std::lround(100 * part.us / call_us)) + " %", 6) + "\n";
    if (style.all && !part.how.empty()) {
      text +=
          painted(wrapped(part.how + " (" + level_words(part.level) + ")", style.width, indent + 2),
                  kDim, style);
    }
  }
  return text;
}

std::string place_lines(const CostlyPlace& place, const DiagnosisStyle& style) {
  std::string line = place_words(place) + ": " + place_costs(place, "the kernel's time");
  if (!place.condition.empty()) line += ". It goes if " + place.condition;
  return wrapped(line + ".", style.width, 4);
}

std::string operator_rows(const Account& account, const DiagnosisStyle& style) {
  std::string text;
  for (const OperatorCost& each : account.operators) {
    if (each.us < kLeastPart * account.us && !style.all) continue;
    text += wrapped(operator_words(each.name, each.where) + ": " + human_us(each.us) + ", " +
                        std::to_string(std::lround(100 * each.us / account.us)) +
                        " %; by itself it needs " + human_us(each.floor_us),
                    style.width, 4);
  }
  return text.empty() ? "" : "  by operator:\n" + text;
}

std::string account_table(const Diagnosis& diagnosis, const DiagnosisStyle& style) {
  const Account& account = diagnosis.account;
  if (!account.known()) return "";
  std::string text = painted("where the time goes", kBold, style) + ", by " +
                     level_words(account.level()) + "\n" +
                     account_rows(account.parts, account.us, 2, style);
  for (const KernelAccount& kernel : account.kernels) {
    text +=
        "  of kernel " +
        (kernel.kernel.empty() ? std::string("time") : short_kernel_name(one_line(kernel.kernel))) +
        (kernel.launched_by.empty() ? "" : ", launched by " + one_line(kernel.launched_by)) +
        ":\n" + account_rows(kernel.parts, account.us, 4, style);
    if (!kernel.roles.empty()) text += wrapped(roles_words(kernel.roles), style.width, 4);
    if (!kernel.mix.empty()) text += wrapped(mix_words(kernel), style.width, 4);
    if (kernel.places.empty() || diagnosis.fraction_of_ceiling >= kAtCeiling) continue;
    text += "  costliest places, by " +
            std::string(kernel.places_level == Level::kCounters ? "samples"
                                                                : "estimates from machine code") +
            ":\n";
    for (const CostlyPlace& place : kernel.places) text += place_lines(place, style);
  }
  return text + operator_rows(account, style) + "\n";
}

std::string findings_text(const Diagnosis& diagnosis, const DiagnosisStyle& style) {
  if (diagnosis.findings.empty()) return wrapped(nothing_found(diagnosis), style.width, 0);
  Widths widths;
  for (const Finding& finding : diagnosis.findings) {
    widths.tool = std::max(widths.tool, columns(one_line(finding.tool)));
    if (finding.stop || finding.upper_speedup <= 1) continue;
    widths.likely = std::max(widths.likely, columns(speedup_text(finding.likely_speedup)));
    widths.upper = std::max(widths.upper, columns(speedup_text(finding.upper_speedup)));
  }
  std::string text;
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) {
    text += (i == 0 ? "" : "\n") + finding_lines(diagnosis.findings[i], i + 1, widths, style);
  }
  return text;
}

std::string tools_text(const Diagnosis& diagnosis, const DiagnosisStyle& style) {
  int width = 0;
  for (const ToolRun& run : diagnosis.tools) width = std::max(width, columns(run.tool));
  std::string text = painted("tools", kBold, style) + "\n";
  for (const ToolRun& run : diagnosis.tools) {
    std::string told = state_words(run.state);
    if (!run.reason.empty()) told += ": " + one_line(run.reason);
    // Continuation lines leave the name column empty.
    bool first = true;
    for (const std::string& part : lines(wrapped(told, style.width - width - 4, 0))) {
      text += "  " + padded(first ? one_line(run.tool) : "", width) + "  " + part + "\n";
      first = false;
    }
  }
  return text;
}

// In the registry's unit; integers have no fraction.
std::string value_text(double value) {
  if (value == static_cast<double>(static_cast<long long>(value)) && std::abs(value) < 1e15) {
    return std::to_string(static_cast<long long>(value));
  }
  return number(value, 5);
}

std::string items_text(const std::string& title, const Evidence& evidence,
                       const DiagnosisStyle& style) {
  if (evidence.items().empty()) return "";
  int name_width = 0, value_width = 0;
  for (const auto& [name, item] : evidence.items()) {
    name_width = std::max(name_width, columns(name));
    value_width = std::max(value_width, columns(value_text(item.value)));
  }
  std::string text = painted(title, kBold, style) + "\n";
  for (const auto& [name, item] : evidence.items()) {
    const Metric* metric = find_metric(name);
    const std::string unit =
        metric == nullptr || metric->unit == "1" ? "" : " " + std::string(metric->unit);
    text += "  " + padded(name, name_width) + "  " +
            padded_left(value_text(item.value), value_width) + padded(unit, 7) + "  " +
            painted(one_line(item.source), kDim, style) + "\n";
  }
  return text;
}

std::string all_items(const Evidence& evidence, const DiagnosisStyle& style) {
  const std::string items = items_text("evidence about the call", evidence, style);
  std::string text = items.empty() ? "" : "\n" + items;
  for (const KernelEvidence& kernel : evidence.kernels) {
    text += "\n" + items_text("evidence about " + short_kernel_name(one_line(kernel.name), 60),
                              kernel.facts, style);
  }
  return text;
}

std::string missing_text(const Evidence& evidence, const DiagnosisStyle& style) {
  const std::vector<NotSeen> all = not_seen(evidence);
  if (all.empty()) return "";
  std::string text = painted("missing", kBold, style) + "\n";
  constexpr std::size_t kNamed = 4;
  for (const auto& [names, reason, next] : all) {
    std::vector<std::string> shown = names;
    if (!style.all && shown.size() > kNamed) shown.resize(kNamed);
    std::string line = one_line(join_text(shown, ", "));
    if (shown.size() < names.size()) {
      line += " and " + std::to_string(names.size() - shown.size()) + " more";
    }
    line += ": " + one_line(reason) + (next.empty() ? "" : "; " + one_line(next)) + ".";
    text += wrapped(line, style.width, 2);
  }
  return text;
}

std::string blind_text(const Diagnosis& diagnosis, const DiagnosisStyle& style) {
  const auto count =
      std::count_if(diagnosis.tools.begin(), diagnosis.tools.end(),
                    [](const ToolRun& run) { return run.state == ToolRun::State::kNotEvaluable; });
  if (count == 0) return "";
  return painted(wrapped(std::to_string(count) + " of " + std::to_string(diagnosis.tools.size()) +
                             " tools could not run for lack of evidence" +
                             (style.more.empty() ? "." : " (" + style.more + " shows why)."),
                         style.width, 0),
                 kDim, style);
}

}  // namespace

const char* state_words(ToolRun::State state) {
  switch (state) {
    case ToolRun::State::kFired:
      return "fired";
    case ToolRun::State::kSilent:
      return "ran, found nothing";
    case ToolRun::State::kNotEvaluable:
      return "could not run";
    default:
      return "left out";
  }
}

std::string level_words(Level level) {
  switch (level) {
    case Level::kCounters:
      return "hardware counters";
    case Level::kStatic:
      return "machine code";
    default:
      return "timing";
  }
}

std::string wrapped(const std::string& text, int width, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string result, line;
  for (const std::string& word : words(text)) {
    if (!line.empty() && indent + columns(line) + 1 + columns(word) > width) {
      result += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? result : result + margin + line + "\n";
}

std::string numbers_text(const Evidence& evidence) {
  return std::string(trim(all_items(evidence, {})));
}

std::string diagnosis_for_terminal(const Diagnosis& diagnosis, const Evidence& evidence,
                                   const DiagnosisStyle& asked) {
  DiagnosisStyle style = asked;
  style.width = std::clamp(style.width, 40, 120);
  std::string text = wrapped(one_line(diagnosis.summary), style.width, 0) + "\n" +
                     account_table(diagnosis, style) + findings_text(diagnosis, style);
  if (!style.all) {
    const std::string blind = blind_text(diagnosis, style);
    return blind.empty() ? text : text + "\n" + blind;
  }
  text += "\n" + tools_text(diagnosis, style) + all_items(evidence, style);
  const std::string missing = missing_text(evidence, style);
  return missing.empty() ? text : text + "\n" + missing;
}

}  // namespace kernelpro
