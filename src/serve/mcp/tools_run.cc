// SPDX-License-Identifier: Apache-2.0
// history, best and diagnose: tools that read a run.
#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "report/diagnosis.h"
#include "report/view.h"
#include "serve/mcp/arguments.h"
#include "serve/mcp/tools.h"

namespace kernelpro {

namespace {

constexpr std::size_t kListed = 200;  // most candidates in a structured history

std::string head(const Sitting& sitting) {
  return "Run " + sitting.directory() + " of task " + printable(sitting.task().name) + " on " +
         sitting.machine() + "\n";
}

std::string with_fence(const Candidate& candidate) {
  return fenced(candidate.source, language_name(candidate.language));
}

// Evidence is only in the store.
Evidence evidence_of(const Sitting& sitting, std::int64_t id) {
  const auto store = Store::open(sitting.directory(), Store::Mode::kRead);
  if (!store) return {};
  auto stored = (*store)->candidate(id, true);
  return stored ? std::move(stored->evidence) : Evidence();
}

Result<Diagnosis> only_tool(const Diagnosis& diagnosis, const std::string& tool) {
  Diagnosis one = diagnosis;
  std::erase_if(one.findings, [&](const Finding& each) { return each.tool != tool; });
  std::erase_if(one.tools, [&](const ToolRun& each) { return each.tool != tool; });
  if (!one.findings.empty() || !one.tools.empty()) return one;
  std::vector<std::string> names;
  for (const Finding& finding : diagnosis.findings) names.push_back(finding.tool);
  return fail(ErrorKind::kBadInput,
              "no tool named " + clip(printable(tool), 100) + " ran on this candidate",
              names.empty() ? "there is no finding: leave the tool out"
                            : "findings are of " + join_text(names, ", "));
}

}  // namespace

Result<ToolAnswer> history_tool(Desk& desk, const Json& arguments, Ticket&) {
  KP_ASSIGN(const auto sitting, desk.begun(task_choice(arguments)));
  const auto rows = sitting->rows();
  const auto best = sitting->best();
  std::string text = head(*sitting);
  Json list = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Candidate& candidate = rows[i]->known.candidate;
    const Origin& origin = candidate.origin;
    text += "- " + std::to_string(rows[i]->known.id);
    if (origin.parent != 0) text += " (from " + std::to_string(origin.parent) + ")";
    text += ": " + (origin.idea.empty() ? origin.proposer : clip(one_line(idea_text(origin)), 200));
    if (!candidate.knobs.empty()) text += " [" + knobs_to_text(candidate.knobs) + "]";
    text += " => " + row_line(*rows[i]) + (best == rows[i] ? " (best)" : "") + "\n";
    if (i + kListed < rows.size()) continue;
    const Correct* correct = rows[i]->known.evaluation.correct();
    list.push_back({{"candidate", rows[i]->known.id},
                    {"parent", origin.parent},
                    {"idea", clip(printable(idea_text(origin)), 200)},
                    {"outcome", outcome_name(rows[i]->known.evaluation.outcome)},
                    {"time_us", correct != nullptr ? score_us(rows[i]->known.evaluation) : 0},
                    {"speedup", rows[i]->speedup}});
  }
  if (rows.empty()) text += "Nothing was evaluated yet.\n";
  return ToolAnswer{page_of(text, arguments),
                    {{"run", absolute(sitting->directory())},
                     {"evaluations", rows.size()},
                     {"best", best ? Json(best->known.id) : Json(nullptr)},
                     {"candidates", std::move(list)}}};
}

Result<ToolAnswer> best_tool(Desk& desk, const Json& arguments, Ticket&) {
  KP_ASSIGN(const auto sitting, desk.begun(task_choice(arguments)));
  const auto best = sitting->best();
  if (best == nullptr) {
    return fail(ErrorKind::kBadInput, "nothing of this run is correct yet",
                "history shows what was tried, diagnose shows why one failed");
  }
  const Candidate& candidate = best->known.candidate;
  std::string text = head(*sitting) + "Candidate " + std::to_string(best->known.id) + ": " +
                     row_line(*best) + ".\n";
  if (!candidate.knobs.empty()) text += "Knobs: " + knobs_to_text(candidate.knobs) + "\n";
  text += with_fence(candidate);
  std::size_t next = 0;
  std::string page = page_of(text, arguments, &next);
  return ToolAnswer{page,
                    {{"candidate", best->known.id},
                     {"time_us", score_us(best->known.evaluation)},
                     {"speedup", best->speedup},
                     {"knobs", candidate.knobs},
                     {"text", page},
                     {"next_offset", next == 0 ? Json(nullptr) : Json(next)}}};
}

Result<ToolAnswer> diagnose_tool(Desk& desk, const Json& arguments, Ticket&) {
  const JsonReader given(arguments);
  KP_ASSIGN(const auto sitting, desk.begun(task_choice(arguments)));
  const auto rows = sitting->rows();
  const std::int64_t id = given.integer("candidate");
  const auto row = id != 0 ? sitting->row(id) : rows.empty() ? nullptr : rows.back();
  if (row == nullptr) {
    return fail(ErrorKind::kBadInput, "this run has no evaluated candidate " + std::to_string(id),
                "history lists them all");
  }
  const Known& known = row->known;
  std::string text = row_text(*sitting, *row);
  if (const auto* error = std::get_if<CompileError>(&known.evaluation.outcome)) {
    text = "Candidate " + std::to_string(known.id) + ": does not compile.\n" +
           fenced(printable(error->log));
  } else if (known.evaluation.correct() != nullptr) {
    Diagnosis diagnosis = known.diagnosis;
    // Tools for the other target would fill the page.
    std::erase_if(diagnosis.tools,
                  [](const ToolRun& each) { return each.state == ToolRun::State::kFilteredOut; });
    DiagnosisStyle style;
    style.all = true;
    style.width = 100;
    if (const std::string tool = given.text("tool"); !tool.empty()) {
      KP_ASSIGN(diagnosis, only_tool(diagnosis, tool));
      style.all = diagnosis.findings.empty();
    }
    text += "\n" + diagnosis_for_terminal(diagnosis, evidence_of(*sitting, known.id), style);
  }
  if (given.flag("source")) text += "\n" + with_fence(known.candidate);
  std::size_t next = 0;
  std::string page = page_of(text, arguments, &next);
  Json json = row_json(*sitting, *row);
  json["text"] = page;
  json["next_offset"] = next == 0 ? Json(nullptr) : Json(next);
  return ToolAnswer{std::move(page), std::move(json)};
}

}  // namespace kernelpro
