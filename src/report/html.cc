// SPDX-License-Identifier: Apache-2.0
// The saved report: the live page's drawing (src/report/page/) with the run's data inlined.
#include "report/html.h"

#include "base/text.h"
#include "embedded/page_base_js.h"
#include "embedded/page_charts_js.h"
#include "embedded/page_css.h"
#include "embedded/page_detail_js.h"
#include "embedded/page_diagnosis_js.h"
#include "embedded/page_diff_js.h"
#include "embedded/page_report_js.h"
#include "embedded/page_run_js.h"
#include "embedded/page_table_js.h"
#include "embedded/page_tree_js.h"
#include "report/diagnosis.h"
#include "report/page.h"
#include "report/view.h"

namespace kernelpro {

namespace {

// Each source once, by its hash; what each tool did only for the start and the winner, because it
// is the same list for nearly all others.
Json whole_run(const RunView& view, const Story& story) {
  Json data = {{"head", page_head(view, story)}, {"rows", page_rows(view, story, 0)}};
  data["sources"] = Json::object();
  data["candidates"] = Json::object();
  for (const StoredCandidate& each : view.candidates) {
    const auto parent = story.by_id.find(each.known.candidate.origin.parent);
    Json one = page_candidate(each, parent == story.by_id.end() ? nullptr : parent->second);
    const std::string hash = source_hash(each.known.candidate.source);
    data["sources"][hash] = std::move(one["source"]);
    one["source"] = hash;
    if (&each != story.best && &each != story.start) one.erase("tools");
    data["candidates"][std::to_string(each.known.id)] = std::move(one);
  }
  return data;
}

// `plain`: for a browser without scripts.
std::string standing_page(const std::string& title, const std::string& plain, const Json& data,
                          std::string_view script) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\">"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'\">"
         "<title>" +
         escape(title) + " &middot; KernelPro</title><style>" + std::string(page_style()) +
         "</style></head>\n<body><div id=\"page\"></div><noscript><pre>" + escape(plain) +
         "</pre></noscript>\n<script type=\"application/json\" id=\"data\">" + json_for_html(data) +
         "</script>\n<script>" + page_drawing() + std::string(script) + "</script></body></html>\n";
}

}  // namespace

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string page_drawing() {
  std::string text;
  for (const std::string_view part :
       {embedded::page_base_js, embedded::page_diff_js, embedded::page_charts_js,
        embedded::page_tree_js, embedded::page_table_js, embedded::page_detail_js,
        embedded::page_run_js}) {
    text += part;
  }
  return text;
}

std::string_view page_style() { return embedded::page_css; }

std::string render_html(const RunView& view) {
  const Story story = tell(view);
  return standing_page(view.header.task.name, render_text(view), whole_run(view, story),
                       embedded::page_report_js);
}

std::string diagnosis_html(const DiagnosedSubject& subject, const Diagnosis& diagnosis,
                           const Evidence& evidence) {
  const Json data = {{"subject", subject.name},
                     {"basis", subject.basis},
                     {"notes", subject.notes},
                     {"diagnosis", page_diagnosis(diagnosis, evidence)}};
  const std::string plain = subject.name + ": " + subject.basis + "\n" +
                            join_text(subject.notes, "\n") + "\n\n" +
                            diagnosis_for_terminal(diagnosis, evidence, {});
  return standing_page(subject.name, plain, data, embedded::page_diagnosis_js);
}

}  // namespace kernelpro
