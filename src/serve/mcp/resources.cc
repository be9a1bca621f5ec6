// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/resources.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "report/export/export_text.h"
#include "report/report.h"
#include "report/view.h"

namespace kernelpro {

namespace {

constexpr std::string_view kScheme = "kernelpro://run/";
constexpr std::size_t kPage = 50;  // runs

struct Part {
  const char* name;
  const char* type;
  const char* title;
  Result<std::string> (*read)(const std::string& path);
};

Result<std::string> best_kernel(const std::string& path) {
  KP_ASSIGN(const RunView view, load_run_view(path));
  const Story story = tell(view);
  if (story.best == nullptr) {
    return fail(ErrorKind::kBadInput, "nothing of this run is correct yet",
                "read its report.txt, which says why");
  }
  const Candidate& best = story.best->known.candidate;
  return with_fixed_knobs(best.source, best.knobs);
}

constexpr Part kParts[] = {
    {"report.html", "text/html", "the report, for a browser", html_report},
    {"report.txt", "text/plain", "the report as text", text_report},
    {"report.json", "application/json", "the report as JSON", json_report},
    {"kernel", "text/plain", "the best kernel, with its knobs fixed", best_kernel},
};

}  // namespace

std::string run_resource(const FoundRun& run, const std::string& part) {
  return std::string(kScheme) + run.id + "/" + part;
}

Json resources_json(const std::string& folder, const std::string& cursor) {
  const std::vector<FoundRun> runs = find_runs(folder).runs;
  const auto first = static_cast<std::size_t>(std::max(0LL, std::atoll(cursor.c_str())));
  Json all = Json::array();
  for (std::size_t i = first; i < runs.size() && i < first + kPage; ++i) {
    for (const Part& part : kParts) {
      all.push_back({{"uri", run_resource(runs[i], part.name)},
                     {"name", runs[i].name + "/" + part.name},
                     {"description", "Run " + runs[i].name + ": " + part.title},
                     {"mimeType", part.type}});
    }
  }
  Json page = {{"resources", std::move(all)}};
  if (first + kPage < runs.size()) page["nextCursor"] = std::to_string(first + kPage);
  return page;
}

Json resource_templates_json() {
  Json all = Json::array();
  for (const Part& part : kParts) {
    all.push_back({{"uriTemplate", std::string(kScheme) + "{id}/" + part.name},
                   {"name", part.name},
                   {"description", std::string("Of a run, by its id: ") + part.title},
                   {"mimeType", part.type}});
  }
  return {{"resourceTemplates", std::move(all)}};
}

Result<Json> read_resource(const std::string& folder, const std::string& uri) {
  const std::vector<std::string> words = uri.starts_with(kScheme)
                                             ? split(uri.substr(kScheme.size()), '/')
                                             : std::vector<std::string>();
  const Part* found = nullptr;
  for (const Part& part : kParts) {
    if (words.size() == 2 && words[1] == part.name) found = &part;
  }
  if (found != nullptr) {
    for (const FoundRun& run : find_runs(folder).runs) {
      if (run.id != words[0]) continue;
      KP_ASSIGN(std::string text, found->read(run.path));
      return Json{{"contents", {{{"uri", uri}, {"mimeType", found->type}, {"text", text}}}}};
    }
  }
  return fail(ErrorKind::kBadInput, "there is no resource " + clip(printable(uri), 200),
              "resources/list names them");
}

}  // namespace kernelpro
