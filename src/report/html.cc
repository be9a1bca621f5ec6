// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <cmath>
#include <map>

#include "base/text.h"
#include "embedded/report_css.h"
#include "embedded/report_js.h"
#include "report/not_seen.h"
#include "report/replayed.h"
#include "write/calls.h"

namespace kernelpro {

namespace {

std::string section(const std::string& id, const std::string& title, const std::string& note,
                    const std::string& body) {
  return "<section id=\"" + id + "\"><h2>" + title + "</h2>" +
         (note.empty() ? "" : "<p class=\"note\">" + note + "</p>") + body + "</section>\n";
}

std::string fact(const std::string& name, const std::string& value, const std::string& note = "") {
  return "<div class=\"fact\"><div class=\"fact-name\">" + name +
         "</div><div class=\"fact-value\">" + value + "</div>" +
         (note.empty() ? "" : "<div class=\"quiet\">" + note + "</div>") + "</div>";
}

std::string header(const RunView& view) {
  const Machine& machine = view.header.machine;
  const Task& task = view.header.task;
  return "<header><div class=\"brand\">KernelPro " + escape(view.header.version) + "</div><h1>" +
         escape(task.name) + "</h1>" +
         (task.summary.empty() ? "" : "<p class=\"summary\">" + escape(task.summary) + "</p>") +
         "<p class=\"meta\"><span>" + std::string(target_name(view.header.target)) +
         " target</span><span>" + escape(machine.name) + "</span>" +
         (machine.versions.empty() ? "" : "<span>" + escape(machine.versions) + "</span>") +
         "<span>" + escape(view.header.created) + "</span></p></header>\n";
}

std::string failures(const Story& story) {
  std::string text;
  for (const auto& [name, count] : story.outcomes) {
    if (name == outcome_name(OutcomeKind::kCorrect)) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text.empty() ? "none failed" : text;
}

std::string load_paragraph(const Story& story) {
  const std::string load = load_text(story.load);
  return load.empty() ? "" : "<p class=\"quiet\">" + escape(load) + "</p>";
}

std::string verdict_card(const RunView& view, const Story& story) {
  const bool won = story.best != nullptr && story.best != story.baseline;
  std::string html = "<section class=\"verdict\"><div class=\"headline\">";
  if (won) {
    html += "<div class=\"big\">" + speedup_text(story.speedup) + "</div><div class=\"interval\">" +
            (story.confirmed
                 ? speedup_text(story.low) + " &ndash; " + speedup_text(story.high) + ", 95&nbsp;%"
             : story.low > 0 && story.low < story.high && std::isfinite(story.high)
                 ? speedup_text(story.low) + " &ndash; " + speedup_text(story.high) +
                       ", not yet confirmed"
                 : std::string("not yet confirmed")) +
            "</div>";
  } else {
    html +=
        "<div class=\"big\">" + std::string(story.best == nullptr ? "&ndash;" : "1.00x") + "</div>";
  }
  html += "</div><div class=\"story\"><p class=\"sentence\">" + escape(verdict(view, story)) +
          "</p><p class=\"credit\">" + escape(credit(story)) + "</p>" + load_paragraph(story) +
          ceiling_bar(story) + "</div></section>\n";
  return html;
}

std::string facts(const RunView& view, const Story& story) {
  std::string html = "<section class=\"facts\">";
  html += fact(std::string(baseline_words(story)),
               story.final_baseline_us > 0 ? human_us(story.final_baseline_us) : "&ndash;");
  html += fact("winner", story.final_us > 0 ? human_us(story.final_us) : "&ndash;",
               story.best != nullptr ? "candidate " + std::to_string(story.best->known.id) : "");
  html += fact("evaluations", std::to_string(story.evaluated), failures(story));
  html += fact("run time", human_seconds(view.run_seconds),
               view.confirmation && !view.confirmation->stopped_by.empty()
                   ? "stopped: " + escape(view.confirmation->stopped_by)
                   : "not finished");
  if (!view.calls.empty()) {
    html += fact("models", std::to_string(view.calls.size()) + " questions",
                 escape(calls_text(view.calls)));
  }
  if (view.confirmation && view.confirmation->own_ms_per_evaluation > 0) {
    html += fact("loop overhead", number(view.confirmation->own_ms_per_evaluation, 3) + " ms",
                 "per evaluation, excluding compiling, running and waiting");
  }
  return html + "</section>\n";
}

// The steps from the start to the winner, each with the problem that it was meant to fix.
std::string path_list(const Story& story) {
  if (story.path.size() < 2) return "<p class=\"quiet\">The start is still the best.</p>";
  std::string html = "<ol class=\"path\">";
  double before = 0;  // speedup of the previous step
  for (const StoredCandidate* step : story.path) {
    const Origin& origin = step->known.candidate.origin;
    const double us = score_us(step->known.evaluation);
    html += "<li><b>#" + std::to_string(step->known.id) + "</b> ";
    html += us > 0 ? human_us(us) : escape(outcome_name(step->known.evaluation.outcome));
    const double speedup = story.speedup_of(step->known.id);
    if (before > 0 && speedup > 0) {
      html += " <span class=\"" + std::string(speedup > before ? "gain" : "quiet") + "\">" +
              speedup_text(speedup / before) + "</span>";
    }
    html += "<br>" + (step == story.start ? std::string("the starting kernel")
                                          : escape(clip(idea_text(origin), 400)));
    if (!origin.answers.empty()) {
      html += "<br><span class=\"quiet\">answers " + escape(clip(origin.answers.text(), 300)) +
              "</span>";
    }
    html += "</li>";
    if (speedup > 0) before = speedup;
  }
  return html + "</ol>";
}

std::string timings(const Story& story) {
  const Correct* correct = story.best == nullptr ? nullptr : story.best->known.evaluation.correct();
  if (correct == nullptr) return "";
  std::string html =
      "<div class=\"scroll\"><table "
      "class=\"timings\"><thead><tr><th>case</th><th>median</th><th>95&nbsp;% "
      "interval</th><th>samples</th><th>method</th></tr></thead><tbody>";
  for (const Timing& timing : correct->timings) {
    html += "<tr><td>" + escape(timing.case_name) + "</td><td class=\"num\">" +
            human_us(timing.median_us) + "</td><td class=\"num\">" + human_us(timing.low_us) +
            " &ndash; " + human_us(timing.high_us) + "</td><td class=\"num\">" +
            std::to_string(timing.samples) + "</td><td>" + escape(timing.method) + "</td></tr>";
  }
  return html + "</tbody></table></div><p class=\"quiet\">Largest error: " +
         percent_text(correct->max_error) + " of the tolerance.</p>";
}

std::string missing_list(const Story& story) {
  const StoredCandidate* seen = story.best != nullptr ? story.best : story.start;
  if (seen == nullptr) return "<p class=\"quiet\">Nothing was observed.</p>";
  std::string html;
  for (const auto& [names, reason, next] : not_seen(seen->evidence)) {
    html += "<li><b>" + escape(join_text(names, ", ")) + "</b>: " + escape(reason) +
            (next.empty() ? "" : ". <span class=\"quiet\">" + escape(next) + "</span>") + "</li>";
  }
  for (const ToolRun& run : seen->known.diagnosis.tools) {
    if (run.state != ToolRun::State::kNotEvaluable) continue;
    html +=
        "<li>tool <b>" + escape(run.tool) + "</b> could not run: " + escape(run.reason) + "</li>";
  }
  return html.empty() ? "<p class=\"quiet\">All the evidence that the tools need was available.</p>"
                      : "<ul>" + html + "</ul>";
}

std::string legend(const Story& story) {
  std::string html = "<p class=\"legend\">";
  const auto item = [&](const std::string& css, const std::string& text) {
    html += "<span><span class=\"dot " + css + "\"></span>" + text + "</span>";
  };
  item("start", "start");
  if (story.best != story.start) item("best", "winner");
  for (const auto& [name, count] : story.outcomes)
    item(name, name + " (" + std::to_string(count) + ")");
  return html + "</p>";
}

std::string machine_list(const RunView& view) {
  const Ceilings& c = view.header.machine.ceilings;
  std::string html = "<ul><li>copy bandwidth " + human_bytes(c.copy_bytes_per_s) +
                     "/s, read plus written</li><li>fp32 multiply-adds " +
                     number(c.fma_flops_per_s * 1e-9, 4) + " GFLOP/s</li>";
  if (c.tensor_flops_per_s > 0) {
    html += "<li>half-precision matrix units " + number(c.tensor_flops_per_s * 1e-12, 4) +
            " TFLOP/s</li>";
  }
  const std::string basis = ceilings_basis(c);
  return html + "</ul><p class=\"quiet\">" + escape(c.how) +
         (basis.empty() ? "" : "; " + escape(basis)) + "</p>";
}

std::string body(const RunView& view, const Story& story) {
  std::string html = header(view) + "<main>" + verdict_card(view, story) + facts(view, story);
  html +=
      section("progress", "Progress",
              "Each dot is an evaluated candidate; the line is the fastest so far; marks on the "
              "axis are failed candidates.",
              progress_chart(view, story));
  const std::vector<Replayed> again = replayed(view, story);
  if (!again.empty()) {
    html += section("replay", "Compared with the recording", escape(replayed_summary(again)),
                    replayed_table(view, again));
  }
  if (const std::string held_out = held_out_section(view); !held_out.empty()) {
    html += section("held-out", "Held-out cases",
                    "Sizes that neither the search nor a writer saw, measured once at the end.",
                    held_out);
  }
  html += section("path", "The path to the winner", "", path_list(story));
  if (const std::string moved = path_changes(story); !moved.empty()) {
    html += section("moved", "What each change did",
                    "The accounts of parent and child side by side: what moved, what the finding "
                    "that it answers promised, and what came.",
                    moved);
  }
  html += section("changes", "What changed", escape(credit(story)), changes(story));
  if (story.best != nullptr) {
    html += section("diagnosis", "What limits the winner now", "",
                    findings_list(story.best->known.diagnosis) +
                        tool_runs(story.best->known.diagnosis) + timings(story));
  }
  if (const std::string energy = energy_section(view, story); !energy.empty()) {
    html +=
        section("energy", "Time and energy",
                "Each dot is a candidate; the line and the table show the Pareto front.", energy);
  }
  html += section("advice", "How the advice turned out",
                  "Each step that answers a finding, with its estimated speed-up and the one "
                  "measured against its parent.",
                  tool_step_table(view));
  html += section("search", "Search tree",
                  "The start is on the left; the colored line leads to the winner. Faded "
                  "candidates are dead ends: select one to see why nothing more is tried below it.",
                  legend(story) + search_tree(view, story));
  html += section("all", "All candidates", "", candidate_table(view, story));
  html += section("missing", "What could not be measured", "", missing_list(story));
  html += section("ceilings", "Ceilings", "Measured on this machine, not taken from a datasheet.",
                  machine_list(view));
  return html + "</main><footer>Run folder <code>" + escape(view.directory) +
         "</code>. Continue with <code>kernelpro resume " + escape(view.directory) +
         "</code>.</footer>";
}

}  // namespace

std::string render_html(const RunView& view) {
  const Story story = tell(view);
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\">"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'\">"
         "<title>" +
         escape(view.header.task.name) + " &middot; KernelPro</title><style>" +
         std::string(embedded::report_css) + "</style></head>\n<body>" + body(view, story) +
         "<script>" + std::string(embedded::report_js) + "</script></body></html>\n";
}

}  // namespace kernelpro
