// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/finding/finding.h"
#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

// Further findings stay in the store; a writer acts on one at a time.
constexpr std::size_t kShown = 4;
constexpr std::size_t kPrescriptionsShown = 5;
// At most this many tools that could not run are named: a full list would drown the findings.
constexpr std::size_t kBlindShown = 8;

std::string gain(const Finding& finding) {
  if (finding.stop) return "nothing left to gain";
  if (finding.upper_speedup <= 1) return "no estimated gain";
  return "likely " + number(finding.likely_speedup, 3) + "x, at most " +
         number(finding.upper_speedup, 3) + "x";
}

std::string share_of(const Finding& finding) {
  if (finding.share < 0.005) return "";
  return (finding.sites.empty() ? "; " : ", ") + number(100 * finding.share, 2) + " % of the time";
}

// The operator of a PyTorch module that launches a finding's kernel: ", of `relu`".
std::string launched_by(const Account& account, const std::string& kernel) {
  for (const KernelAccount& each : account.kernels) {
    if (each.kernel == kernel && !each.launched_by.empty())
      return " of " + one_line(each.launched_by);
  }
  return "";
}

std::string finding_text(const Account& account, const Finding& finding, std::size_t position) {
  std::string text =
      std::to_string(position) + ". **" + finding.tool + "** (" +
      std::string(severity_name(finding.severity)) + "; " + gain(finding) + "; from " +
      std::string(level_name(finding.level)) + " evidence" +
      (finding.kernel.empty() ? ""
                              : "; kernel `" + one_line(short_kernel_name(finding.kernel)) + "`" +
                                    launched_by(account, finding.kernel)) +
      (finding.sites.empty() ? "" : "; " + sites_text(finding.sites)) + share_of(finding) +
      ")\n   " + one_line(finding.cause) + "\n";
  const std::size_t count = std::min(finding.prescriptions.size(), kPrescriptionsShown);
  for (std::size_t i = 0; i < count; ++i) {
    const Prescription& prescription = finding.prescriptions[i];
    text += "   - [" + prescription.tag + "] " + prescription.text;
    if (!prescription.not_when.empty()) text += " Not when " + prescription.not_when + ".";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string sites_text(const FindingSites& sites) {
  std::string text;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const FindingSite& site = sites[i];
    const bool begins = i == 0 || sites[i - 1].group != site.group;
    if (i > 0) text += begins ? "; " : ", ";
    // A role holds for all lines up to the next one.
    const bool named = !site.role.empty() && (begins || sites[i - 1].role != site.role);
    if (named) text += one_line(site.role);
    if (site.line.file.empty()) continue;
    text += (named ? " " : "") + place_words(site.line, 0, "");
  }
  return text;
}

std::string nothing_found(const Diagnosis& diagnosis) {
  if (!diagnosis.account.known() || diagnosis.fraction_of_ceiling >= kAtCeiling) {
    return "No tool found anything to change.";
  }
  return "No tool names a single cause; start with the largest part of the time beyond the floor.";
}

std::string diagnosis_to_text(const Diagnosis& diagnosis) {
  std::string text = "## Diagnosis\n" + diagnosis.summary + "\n";
  const std::string account =
      account_to_text(diagnosis.account, diagnosis.fraction_of_ceiling >= kAtCeiling);
  if (!account.empty()) text += "\n" + account;
  const std::size_t count = std::min(diagnosis.findings.size(), kShown);
  if (count > 0) text += "\n";
  for (std::size_t i = 0; i < count; ++i) {
    text += finding_text(diagnosis.account, diagnosis.findings[i], i + 1);
  }
  if (count == 0) text += "\n" + nothing_found(diagnosis) + "\n";

  std::vector<std::string> blind;
  for (const ToolRun& run : diagnosis.tools) {
    if (run.state == ToolRun::State::kNotEvaluable) blind.push_back(run.tool);
  }
  if (!blind.empty()) {
    const std::size_t more = blind.size() > kBlindShown ? blind.size() - kBlindShown : 0;
    blind.resize(blind.size() - more);
    text += "\nNot checked, for lack of evidence: " + join_text(blind, ", ") +
            (more > 0 ? " and " + std::to_string(more) + " more" : "") + ".\n";
  }
  return text;
}

}  // namespace kernelpro
