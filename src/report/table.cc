// SPDX-License-Identifier: Apache-2.0
// The tables and lists of the page.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "core/plan/kernel_name.h"
#include "report/dead_ends.h"
#include "report/diagnosis.h"
#include "report/diff.h"
#include "report/html.h"

namespace kernelpro {

namespace {

std::string knob_table(const KnobValues& before, const KnobValues& after) {
  std::set<std::string> names;
  for (const auto& [name, value] : before) names.insert(name);
  for (const auto& [name, value] : after) names.insert(name);
  if (names.empty()) return "";
  const auto value = [](const KnobValues& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string("&ndash;") : escape(found->second);
  };
  std::string html =
      "<table class=\"knobs\"><thead><tr><th>knob</th><th>start</th><th>winner</th></tr></thead>"
      "<tbody>";
  for (const std::string& name : names) {
    const std::string a = value(before, name);
    const std::string b = value(after, name);
    html += "<tr" + std::string(a == b ? "" : " class=\"moved\"") + "><td><code>" + escape(name) +
            "</code></td><td>" + a + "</td><td>" + b + "</td></tr>";
  }
  return html + "</tbody></table>";
}

std::string diff_html(const std::vector<DiffLine>& diff) {
  std::string html = "<div class=\"scroll\"><table class=\"diff\"><tbody>";
  for (const DiffLine& line : diff) {
    if (line.kind == DiffLine::Kind::kSkipped) {
      html += "<tr class=\"skip\"><td></td><td></td><td>" + escape(line.text) + "</td></tr>";
      continue;
    }
    const bool added = line.kind == DiffLine::Kind::kAdded;
    const bool removed = line.kind == DiffLine::Kind::kRemoved;
    html += added ? "<tr class=\"add\"><td>" : removed ? "<tr class=\"del\"><td>" : "<tr><td>";
    html += (line.before > 0 ? std::to_string(line.before) : "") + "</td><td>" +
            (line.after > 0 ? std::to_string(line.after) : "") + "</td><td>" +
            (added     ? "+ "
             : removed ? "- "
                       : "  ") +
            escape(line.text) + "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

std::string short_findings(const Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) return "<span class=\"quiet\">&ndash;</span>";
  std::string names;
  std::string body;
  for (const Finding& finding : diagnosis.findings) {
    names += (names.empty() ? "" : ", ") + escape(finding.tool);
    body += "<p><b>" + escape(finding.tool) + "</b>";
    if (!finding.stop && finding.upper_speedup > 1) {
      body += " &middot; likely " + speedup_text(finding.likely_speedup) + ", at most " +
              speedup_text(finding.upper_speedup);
    }
    body += "<br>" + escape(finding.cause) + "<br>";
    for (const Prescription& p : finding.prescriptions) {
      body += "<span class=\"tag\">" + escape(p.tag) + "</span> ";
    }
    body += "</p>";
  }
  return "<details><summary>" + names + "</summary>" + body + "</details>";
}

// Escapes text and sets `code` between backquotes as code.
std::string prose(const std::string& text) {
  std::string html;
  const std::vector<std::string> parts = split(text, '`');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool code = i % 2 == 1 && i + 1 < parts.size();
    const bool lone = i % 2 == 1 && !code;
    html += code ? "<code>" + escape(parts[i]) + "</code>" : (lone ? "`" : "") + escape(parts[i]);
  }
  return html;
}

std::string sortable(double value) {
  return " data-sort=\"" + number(std::isfinite(value) ? value : 0, 10) + "\"";
}

std::string change_cell(const StoredCandidate& stored, const Story& story) {
  const Candidate& candidate = stored.known.candidate;
  const std::string knobs = knobs_to_text(candidate.knobs);
  std::string html;
  if (!candidate.origin.idea.empty()) {
    html += "<div>" + escape(clip(idea_text(candidate.origin), 600)) + "</div>";
  }
  if (!candidate.origin.answers.empty()) {
    html += "<div class=\"quiet\">answers " + escape(clip(candidate.origin.answers.text(), 300)) +
            "</div>";
  }
  if (!knobs.empty()) html += "<code>" + escape(clip(knobs, 600)) + "</code>";
  if (const auto change = change_of(stored, story)) {
    html += "<details><summary>what it did</summary>" + change_html(*change) + "</details>";
  }
  return html;
}

using Reasons = std::map<std::int64_t, std::string>;

std::string row(const StoredCandidate& candidate, const Story& story, const Reasons& dead) {
  const Known& known = candidate.known;
  const std::string css = outcome_class(candidate, story);
  const double us = candidate.evaluated ? score_us(known.evaluation) : 0;
  const double speedup = story.speedup_of(known.id);
  const double fraction = known.diagnosis.fraction_of_ceiling;
  const std::string outcome =
      candidate.evaluated ? outcome_name(known.evaluation.outcome) : "waiting";
  const std::string id = std::to_string(known.id);
  const std::int64_t parent = known.candidate.origin.parent;

  std::string html = "<tr id=\"c" + id + "\" data-id=\"" + id + "\" class=\"row\">";
  html += "<td" + sortable(static_cast<double>(known.id)) + ">" + id + "</td>";
  html += "<td" + sortable(static_cast<double>(parent)) + ">" +
          (parent > 0 ? std::to_string(parent) : "&ndash;") + "</td>";
  html += "<td data-sort=\"" + outcome + "\"><span class=\"dot " + css + "\"></span>" + outcome;
  if (candidate.evaluated && us <= 0) {
    html += "<details><summary>why</summary><pre>" +
            escape(clip(outcome_summary(known.evaluation.outcome), 1500)) + "</pre></details>";
  }
  if (const auto reason = dead.find(known.id); reason != dead.end()) {
    html += "<div class=\"quiet\">dead end: " + escape(reason->second) + "</div>";
  }
  html += "</td><td class=\"num\"" + sortable(us > 0 ? us : 1e300) + ">" +
          (us > 0 ? human_us(us) : "&ndash;") + "</td>";
  html += "<td class=\"num\"" + sortable(speedup) + ">" +
          (speedup > 0 ? speedup_text(speedup) : "&ndash;") + "</td>";
  html += "<td class=\"num\"" + sortable(us > 0 ? fraction : 0) + ">" +
          (us > 0 && fraction > 0 ? escape(ceiling_share(fraction)) : "&ndash;") + "</td>";
  html += "<td>" + change_cell(candidate, story) + "</td>";
  html += "<td>" + (us > 0 ? short_findings(known.diagnosis) : "") + "</td></tr>\n";
  return html;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

bool stands_out(const StoredCandidate& candidate, const Story& story) {
  return &candidate == story.best || &candidate == story.start;
}

std::string outcome_class(const StoredCandidate& candidate, const Story& story) {
  if (&candidate == story.best) return "best";
  if (&candidate == story.start) return "start";
  if (!candidate.evaluated) return "waiting";
  return outcome_name(candidate.known.evaluation.outcome);
}

namespace {

std::string account_rows(const std::vector<AccountPart>& parts, double call_us) {
  std::string html;
  for (const AccountPart& part : parts) {
    html += "<tr><td>" + escape(part_words(part)) + "</td><td class=\"num\">" +
            escape(human_us(part.us)) + "</td><td class=\"num\">" +
            std::to_string(std::lround(100 * part.us / call_us)) + " %</td><td>" +
            escape(level_words(part.level)) + "</td><td class=\"quiet\">" + escape(part.how) +
            "</td></tr>";
  }
  return html;
}

std::string places_list(const KernelAccount& kernel) {
  std::string html = "<ol>";
  for (const CostlyPlace& place : kernel.places) {
    html += "<li>" + prose(place_words(place.line, place.offset, place.instruction)) + ": " +
            std::to_string(std::lround(100 * place.share)) + " % of the kernel's time " +
            prose(place_cause(place));
    if (place.gain >= 1.005) html += "; " + speedup_text(place.gain) + " if that went";
    if (!place.condition.empty()) html += ". It goes if " + prose(place.condition);
    html += ".</li>";
  }
  return html + "</ol>";
}

std::string operator_table(const Account& account) {
  if (account.operators.empty()) return "";
  std::string html =
      "<div class=\"scroll\"><table class=\"account\"><thead><tr><th>operator</th><th>time</th>"
      "<th>share</th><th>its own floor</th><th>above it</th></tr></thead><tbody>";
  for (const OperatorCost& each : account.operators) {
    html += "<tr><td>" + prose(operator_words(each.name, each.where)) + "</td><td class=\"num\">" +
            escape(human_us(each.us)) + "</td><td class=\"num\">" +
            std::to_string(std::lround(100 * each.us / account.us)) + " %</td><td class=\"num\">" +
            escape(human_us(each.floor_us)) + "</td><td class=\"num\">" +
            escape(human_us(each.us - each.floor_us)) + "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

std::string account_section(const Diagnosis& diagnosis) {
  const Account& account = diagnosis.account;
  if (!account.known()) return "";
  std::string html =
      "<div class=\"scroll\"><table class=\"account\"><thead><tr><th>where the time goes</th>"
      "<th>time</th><th>share</th><th>from</th><th>how</th></tr></thead><tbody>" +
      account_rows(account.parts, account.us);
  for (const KernelAccount& kernel : account.kernels) {
    const std::string name =
        kernel.kernel.empty() ? "its kernel" : short_kernel_name(kernel.kernel);
    html += "<tr><th colspan=\"5\">of " + escape(name) +
            (kernel.launched_by.empty() ? "" : ", launched by " + prose(kernel.launched_by)) +
            "</th></tr>" + account_rows(kernel.parts, account.us);
  }
  html += "</tbody></table></div>" + operator_table(account);
  if (diagnosis.fraction_of_ceiling >= kAtCeiling) return html;
  for (const KernelAccount& kernel : account.kernels) {
    if (!kernel.places.empty()) html += "<p>Costliest places:</p>" + places_list(kernel);
  }
  return html;
}

}  // namespace

std::string findings_list(const Diagnosis& diagnosis) {
  std::string html = "<p>" + escape(diagnosis.summary) + "</p>" + account_section(diagnosis);
  if (diagnosis.findings.empty()) {
    return html + "<p class=\"quiet\">" + escape(nothing_found(diagnosis)) + "</p>";
  }
  for (const Finding& finding : diagnosis.findings) {
    html += "<div class=\"finding " + std::string(severity_name(finding.severity)) + "\"><h4>" +
            escape(finding.tool) + "<span class=\"quiet\"> " +
            (finding.stop ? "nothing left to gain"
                          : "likely " + speedup_text(finding.likely_speedup) + ", at most " +
                                speedup_text(finding.upper_speedup)) +
            " &middot; by " + escape(level_words(finding.level)) + "</span></h4><p>" +
            (finding.kernel.empty() ? std::string()
                                    : "<code title=\"" + escape(finding.kernel) + "\">" +
                                          escape(short_kernel_name(finding.kernel)) + "</code>: ") +
            escape(finding.cause) + "</p>" +
            (finding.sites.empty()
                 ? std::string()
                 : "<p class=\"quiet\">at " + prose(sites_text(finding.sites)) + "</p>") +
            "<ul>";
    for (const Prescription& p : finding.prescriptions) {
      html += "<li><span class=\"tag\">" + escape(p.tag) + "</span> " + prose(p.text);
      if (!p.not_when.empty()) {
        html += " <span class=\"quiet\">Not when " + prose(p.not_when) + ".</span>";
      }
      html += "</li>";
    }
    html += "</ul></div>";
  }
  return html;
}

std::string tool_runs(const Diagnosis& diagnosis) {
  if (diagnosis.tools.empty()) return "";
  static constexpr const char* kStates[] = {"fired", "ran, found nothing", "could not run",
                                            "left out"};
  std::string html =
      "<details><summary>what each tool did</summary><div class=\"scroll\"><table "
      "class=\"tools\"><thead><tr><th>tool</th><th>state</th><th>why</th></tr></thead><tbody>";
  for (const ToolRun& run : diagnosis.tools) {
    html += "<tr><td>" + escape(run.tool) + "</td><td>" + kStates[static_cast<int>(run.state)] +
            "</td><td>" + escape(run.reason) + "</td></tr>";
  }
  html += "</tbody></table></div>";
  if (!diagnosis.record.empty()) {
    html += "<p class=\"quiet\">Ranked with the record <code>" + escape(diagnosis.record) +
            "</code> of how earlier findings turned out.</p>";
  }
  return html + "</details>";
}

std::string tool_step_table(const RunView& view) {
  if (view.steps.empty()) {
    return "<p class=\"quiet\">No candidate so far answers a finding.</p>";
  }
  std::string html =
      "<div class=\"scroll\"><table class=\"steps\"><thead><tr><th>#</th><th>tool</th>"
      "<th>advice</th><th>likely</th><th>at most</th><th>measured</th></tr></thead><tbody>";
  for (const ToolStep& step : view.steps) {
    html += "<tr><td>" + std::to_string(step.candidate) + "</td><td>" + escape(step.tool) +
            "</td><td><span class=\"tag\">" + escape(clip(step.tag, 60)) +
            "</span></td><td class=\"num\">" + speedup_text(step.likely) +
            "</td><td class=\"num\">" + speedup_text(step.upper) + "</td><td class=\"num\">" +
            (step.measured > 0 ? speedup_text(step.measured) : "not correct") + "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

std::string held_out_section(const RunView& view) {
  if (!view.confirmation || view.confirmation->held_out.empty()) return "";
  const std::vector<HeldOut>& all = view.confirmation->held_out;
  std::string html =
      "<div class=\"scroll\"><table class=\"steps\"><thead><tr><th>case</th><th>the winner</th>"
      "</tr></thead><tbody>";
  for (const HeldOut& one : all) {
    html += "<tr><td>" + escape(one.case_name) + "</td><td>" + escape(held_out_outcome(one)) +
            "</td></tr>";
  }
  html += "</tbody></table></div>";
  if (const double mean = held_out_speedup(all); mean > 0) {
    html += "<p>" + speedup_text(mean) + " the start, geometric mean over held-out cases.</p>";
  }
  if (held_out_failed(all)) {
    html +=
        "<p><b>The winner is valid only for the sizes that the search knew.</b> Use it for those "
        "alone, or leave <code>held_out</code> out of the case that failed and search again in a "
        "new run.</p>";
  }
  return html;
}

std::string replayed_table(const RunView& view, const std::vector<Replayed>& rows) {
  const Recorded recorded = recorded_from_json(view.header.recorded_json);
  std::string html =
      "<div class=\"scroll\"><table "
      "class=\"steps\"><thead><tr><th>recorded</th><th>now</th><th>outcome</th><th>time</"
      "th><th>speed-up</th><th>result</th></tr></thead><tbody>";
  const auto two = [](const std::string& then, const std::string& now) {
    return then == now ? then : then + " &rarr; " + now;
  };
  const auto time = [](double us) { return us > 0 ? human_us(us) : std::string("&ndash;"); };
  const auto ratio = [](double x) { return x > 0 ? speedup_text(x) : std::string("&ndash;"); };
  for (const Replayed& row : rows) {
    html += "<tr><td>#" + std::to_string(row.then.id) + "</td><td>" +
            (row.now == nullptr ? "&ndash;" : "#" + std::to_string(row.now->known.id)) +
            "</td><td>" +
            two(escape(row.then.outcome), row.now == nullptr ? "&ndash;" : escape(row.outcome)) +
            "</td><td class=\"num\">" + two(time(row.then.us), time(row.us)) +
            "</td><td class=\"num\">" + two(ratio(row.then.speedup), ratio(row.speedup)) +
            "</td><td>" + change_words(row.change) + "</td></tr>";
  }
  return html + "</tbody></table></div><p class=\"quiet\">Recorded in <code>" +
         escape(recorded.directory) + "</code> on " + escape(recorded.machine) +
         ". Times are compared as speed-ups over the start; " + percent_text(kReplayTolerance) +
         " or more counts as a change.</p>";
}

std::string changes(const Story& story) {
  if (story.start == nullptr || story.best == nullptr) return "";
  const Candidate& a = story.start->known.candidate;
  const Candidate& b = story.best->known.candidate;
  std::string html = knob_table(a.knobs, b.knobs);
  const std::string source =
      "<details class=\"source\"><summary>the winner's source</summary><pre>" + escape(b.source) +
      "</pre></details>";
  if (a.language != b.language) {
    return html + "<p class=\"quiet\">The start is " + std::string(language_name(a.language)) +
           ", the winner " + std::string(language_name(b.language)) +
           ": the whole source is new.</p>" + source;
  }
  const std::vector<DiffLine> diff = line_diff(a.source, b.source);
  html += diff.empty()
              ? "<p class=\"quiet\">The source text is unchanged" +
                    std::string(a.knobs == b.knobs ? "." : "; only knob values moved.") + "</p>"
              : diff_html(diff);
  return html + source;
}

std::string candidate_table(const RunView& view, const Story& story) {
  std::string html =
      "<div class=\"scroll\"><table class=\"candidates\" id=\"candidates\"><thead><tr>";
  for (const char* name :
       {"#", "parent", "outcome", "time", "speed-up", "of ceiling", "change", "findings"}) {
    html += "<th><button type=\"button\">" + std::string(name) + "</button></th>";
  }
  html += "</tr></thead><tbody>\n";
  const Reasons dead = dead_ends(view);
  for (const StoredCandidate& candidate : view.candidates) html += row(candidate, story, dead);
  return html + "</tbody></table></div>";
}

}  // namespace kernelpro
