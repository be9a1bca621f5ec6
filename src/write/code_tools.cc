// SPDX-License-Identifier: Apache-2.0
#include "write/code_tools.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kHits = 20;
constexpr int kLines = 200;
constexpr std::size_t kEntries = 150;
constexpr std::size_t kSearchBytes = 8 << 10;
constexpr std::size_t kAboutBytes = 100;
constexpr std::size_t kReadBytes = 16 << 10;
constexpr std::size_t kListBytes = 8 << 10;
constexpr std::size_t kLongestQuery = 500;

CodeTools::Answered refused(const std::string& why) { return {why, true, false}; }
CodeTools::Answered refused(const Error& error) { return refused(printable(error.text())); }

// One line each: the model reads those that it wants.
CodeTools::Answered search(KnowledgeBase* base, const JsonReader& given, Language language) {
  const std::string query = given.text("query").substr(0, kLongestQuery);
  if (trim(query).empty()) return refused("search_code needs `query`, the words to search for");
  SearchSettings settings;
  settings.limit = kHits;
  settings.excerpts = false;
  settings.language = language == Language::kPython ? "python" : "cuda";
  const auto hits = base->search_code(query, given.text("library"), settings);
  if (!hits) return refused(hits.error());
  std::string text;
  for (const Hit& hit : *hits) {
    text += hit.library + ": " + hit.path + ":" + std::to_string(hit.first) + "-" +
            std::to_string(hit.last) + "  " + hit.kind + " " + full_name(hit);
    const std::string& about = hit.doc.empty() ? hit.signature : hit.doc;
    if (!about.empty()) text += "  " + clip(about, kAboutBytes);
    text += "\n";
  }
  if (text.empty()) return {"Nothing was found; try other words.", false, false};
  return {clip(printable(text), kSearchBytes) + "read_code shows a hit's lines.\n", false, false};
}

CodeTools::Answered read(KnowledgeBase* base, const JsonReader& given, Language) {
  const int first =
      static_cast<int>(std::clamp<std::int64_t>(given.integer("first", 1), 1, 1 << 30));
  const int wanted =
      static_cast<int>(std::clamp<std::int64_t>(given.integer("last", 0), 0, 1 << 30));
  const int most = first + kLines - 1;
  const int last = wanted == 0 ? most : std::min(wanted, most);
  const auto code = base->read_code(given.text("library"), given.text("path"), first, last);
  if (!code) return refused(code.error());
  std::string text = printable(code->path) + ", lines " + std::to_string(code->first) + " to " +
                     std::to_string(code->last) + " of " + std::to_string(code->lines) + ":\n";
  text += clip(code->text, kReadBytes);
  return {text, false, false};
}

CodeTools::Answered list(KnowledgeBase* base, const JsonReader& given, Language) {
  const auto entries = base->list_code(given.text("library"), given.text("prefix"));
  if (!entries) return refused(entries.error());
  std::string text;
  for (std::size_t i = 0; i < std::min(entries->size(), kEntries); ++i) {
    text += (*entries)[i].path + "\n";
  }
  if (entries->size() > kEntries) {
    text += "(" + std::to_string(entries->size() - kEntries) + " more; name a folder below)\n";
  }
  return {clip(printable(text), kListBytes), false, false};
}

constexpr const char* kSearch = "search_code";
constexpr const char* kRead = "read_code";
constexpr const char* kList = "list_code";

struct Answering {
  const char* name;
  CodeTools::Answered (*answer)(KnowledgeBase* base, const JsonReader& given, Language language);
};
constexpr Answering kTools[] = {{kSearch, search}, {kRead, read}, {kList, list}};

// Schema of an object whose members are all strings or integers.
std::string schema(const Json& properties, const Json& required) {
  return dump_json({{"type", "object"}, {"properties", properties}, {"required", required}});
}

}  // namespace

CodeTools::CodeTools(const std::string& folder) : base_(folder) {
  for (const Library& library : base_.list()) {
    if (library.fault.empty() && library.files > 0) libraries_.push_back(library.name);
  }
  if (libraries_.empty()) return;
  const Json library = {{"type", "string"}, {"enum", libraries_}};
  const auto text = [](const char* what) {
    return Json{{"type", "string"}, {"description", what}};
  };
  const auto line = [](const char* what) {
    return Json{{"type", "integer"}, {"description", what}};
  };
  specs_ = {
      {kSearch,
       "Finds definitions and pages in the indexed source trees: up to 20, best first, a line "
       "each. "
       "read_code shows more of one.",
       schema({{"query",
                text("identifiers or plain words; language:cpp, language:cuda or language:python "
                     "prefers another language than the task's")},
               {"library", library}},
              {"query"})},
      {kRead, "Shows up to 200 lines of an indexed file.",
       schema({{"library", library},
               {"path", text("as search_code shows it")},
               {"first", line("first line, from 1")},
               {"last", line("last line")}},
              {"library", "path"})},
      {kList, "Lists the folders and files right below a folder.",
       schema({{"library", library}, {"prefix", text("the folder; the root when left out")}},
              {"library"})}};
}

CodeTools::Answered CodeTools::call(const std::string& name, const std::string& arguments,
                                    Language language) {
  const std::lock_guard lock(mutex_);
  const std::optional<Json> json = parse_json(arguments);
  if (!json || !json->is_object()) return refused("the arguments are not a JSON object");
  const JsonReader given(*json);
  for (const Answering& tool : kTools) {
    if (name == tool.name) return tool.answer(&base_, given, language);
  }
  Answered none = refused("there is no tool \"" + printable(name.substr(0, 80)) +
                          "\"; there are search_code, read_code and list_code");
  none.unknown = true;
  return none;
}

}  // namespace kernelpro
