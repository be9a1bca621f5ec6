// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/knowledge_base.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/files.h"
#include "base/hash.h"
#include "base/sqlite.h"
#include "base/state_dir.h"
#include "base/text.h"
#include "core/candidate/language.h"
#include "write/knowledge/index.h"
#include "write/knowledge/scan.h"
#include "write/knowledge/scan_parts.h"
#include "write/knowledge/search.h"
#include "write/knowledge/tree.h"

namespace kernelpro {

namespace {

constexpr std::string_view kEnding = ".db";
constexpr int kMostLines = 400;
constexpr std::size_t kMostBytes = 64 << 10;
constexpr std::size_t kMostEntries = 1000;

bool is_library_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ||
                  c == '-';
         });
}

std::string meta(Database* database, const char* sql) {
  std::string value;
  database->query_text(sql, &value);
  return value;
}

std::string root_of(Database* database) {
  return meta(database, "SELECT value FROM meta WHERE key = 'root'");
}

bool is_current(Database* database) {
  return meta(database, "SELECT value FROM meta WHERE key = 'version'") ==
         std::to_string(kIndexVersion);
}

// Takes `language:cuda` out of a question.
Result<void> take_language(std::string* query, SearchSettings* settings) {
  constexpr std::string_view kMark = "language:";
  std::string rest;
  for (const std::string& word : words(*query)) {
    if (word.compare(0, kMark.size(), kMark) != 0) {
      rest += word + " ";
      continue;
    }
    settings->language = word.substr(kMark.size());
  }
  *query = std::move(rest);
  std::string& language = settings->language;
  if (const auto row = language_from_name(language); row == Language::kCpp) {
    language = std::string(source_kind_name(SourceKind::kCpp));
  }
  if (language.empty()) return {};
  for (const SourceKind kind : {SourceKind::kCpp, SourceKind::kCuda, SourceKind::kPython}) {
    if (language == source_kind_name(kind)) return {};
  }
  return fail(ErrorKind::kBadInput,
              "\"" + printable(language) + "\" is not a language that search can prefer",
              "use language:cpp, language:cuda or language:python");
}

void remove_files(const std::string& path) {
  for (const char* end : {"", "-journal", "-wal", "-shm"}) ::unlink((path + end).c_str());
}

}  // namespace

std::string knowledge_folder() { return join(state_dir(), "knowledge"); }

KnowledgeBase::KnowledgeBase(std::string folder) : folder_(std::move(folder)) {}
KnowledgeBase::~KnowledgeBase() = default;

std::string KnowledgeBase::path_of(const std::string& name) const {
  return join(folder_, name + std::string(kEnding));
}

Result<Database*> KnowledgeBase::open(const std::string& name) {
  const auto found = open_.find(name);
  if (found != open_.end()) return found->second.get();
  if (!is_library_name(name) || !exists(path_of(name))) {
    std::vector<std::string> names;
    for (const Library& library : list()) names.push_back(library.name);
    return fail(ErrorKind::kBadInput, "there is no library \"" + printable(name) + "\"",
                names.empty() ? "index one first: kernelpro knowledge add NAME DIR"
                              : "choose one of " + join_text(names, ", "));
  }
  auto database = std::make_unique<Database>();
  const int code = database->open(path_of(name), Database::Mode::kRead);
  if (code != SQLITE_OK) {
    return tl::unexpected<Error>(database->explain(code, "open the library " + name));
  }
  if (!is_current(database.get())) {
    return fail(ErrorKind::kStore,
                "the index of " + name + " is damaged or of another version of KernelPro",
                "kernelpro knowledge remove " + name + ", then add it again");
  }
  database->execute("PRAGMA cache_size = -32768");
  return (open_[name] = std::move(database)).get();
}

Result<IndexReport> KnowledgeBase::add(const std::string& name, const std::string& directory,
                                       bool update) {
  if (!is_library_name(name)) {
    return fail(ErrorKind::kBadInput, "\"" + printable(name) + "\" is not a valid library name",
                "use up to 64 letters, digits, dots, dashes and underscores");
  }
  KP_ASSIGN(const auto root, real_folder(directory));
  KP_TRY(make_dirs(folder_));
  open_.erase(name);
  const std::string path = path_of(name);
  const bool known = exists(path);
  if (known && !update) {
    return fail(ErrorKind::kBadInput, "there is a library " + name + " already",
                "bring it up to date with --update, or choose another name");
  }
  Database database;
  if (known) {
    const int code = database.open(path, Database::Mode::kWrite);
    if (code == SQLITE_OK && is_current(&database)) {
      if (root_of(&database) != root) {
        return fail(ErrorKind::kBadInput,
                    "library " + name + " was made from " + root_of(&database),
                    "name that folder, or remove the library first");
      }
      return update_index(&database, root);
    }
    database.close();
  }
  // Built under another name and moved into place when complete.
  const std::string aside = path + ".new." + std::to_string(::getpid());
  remove_files(aside);
  int code = database.open(aside, Database::Mode::kCreate);
  if (code == SQLITE_OK) {
    code = database.execute(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "
        "PRAGMA cache_size=-65536");
  }
  if (code != SQLITE_OK) {
    return tl::unexpected<Error>(database.explain(code, "make the library " + name));
  }
  auto made = create_index(&database, root);
  Result<IndexReport> report =
      made ? update_index(&database, root) : tl::unexpected<Error>(made.error());
  database.close();
  if (report && ::rename(aside.c_str(), path.c_str()) != 0) {
    report = fail(ErrorKind::kStore, "cannot put " + path + " in place",
                  "check that you may write to its folder");
  }
  if (!report) remove_files(aside);
  return report;
}

Result<void> KnowledgeBase::remove(const std::string& name) {
  open_.erase(name);
  if (!is_library_name(name) || !exists(path_of(name))) {
    return tl::unexpected<Error>(open(name).error());
  }
  remove_files(path_of(name));
  if (exists(path_of(name))) {
    return fail(ErrorKind::kStore, "cannot remove " + path_of(name),
                "check that you may write to its folder");
  }
  return {};
}

std::vector<Library> KnowledgeBase::list() {
  std::vector<Library> libraries;
  for (const std::string& file : list_dir(folder_)) {
    if (file.size() <= kEnding.size() ||
        file.compare(file.size() - kEnding.size(), kEnding.size(), kEnding) != 0) {
      continue;
    }
    Library library;
    library.name = file.substr(0, file.size() - kEnding.size());
    if (!is_library_name(library.name)) continue;
    const auto opened = open(library.name);
    if (!opened) {
      library.fault = opened.error().message;
    } else {
      library.root = root_of(*opened);
      library.updated = meta(*opened, "SELECT value FROM meta WHERE key = 'updated'");
      (*opened)->query_integer("SELECT count(*) FROM files", &library.files);
      (*opened)->query_integer("SELECT count(*) FROM chunks", &library.chunks);
    }
    libraries.push_back(std::move(library));
  }
  return libraries;
}

Result<std::vector<Hit>> KnowledgeBase::search_code(const std::string& query,
                                                    const std::string& library,
                                                    const SearchSettings& wanted) {
  SearchSettings settings = wanted;
  std::string words = query.substr(0, 2000);
  KP_TRY(take_language(&words, &settings));
  const Question question = read_question(words);
  if (question.concepts.empty()) {
    return fail(ErrorKind::kBadInput, "the question has no word to look for",
                "name a function or type, or say in words what the code does");
  }
  std::vector<std::string> names;
  if (!library.empty()) names.push_back(library);
  std::string unusable;
  if (library.empty()) {
    for (const Library& known : list()) {
      if (known.fault.empty()) {
        names.push_back(known.name);
      } else {
        unusable = known.name;
      }
    }
  }
  if (names.empty() && !unusable.empty()) return tl::unexpected<Error>(open(unusable).error());
  if (names.empty()) {
    return fail(ErrorKind::kBadInput, "there is no library to search",
                "index one first: kernelpro knowledge add NAME DIR");
  }
  std::vector<Hit> hits;
  for (const std::string& name : names) {
    KP_ASSIGN(const auto database, open(name));
    KP_ASSIGN(auto found, search_library(database, question, settings));
    for (Hit& hit : found) {
      hit.library = name;
      hits.push_back(std::move(hit));
    }
  }
  std::stable_sort(hits.begin(), hits.end(),
                   [](const Hit& a, const Hit& b) { return a.score > b.score; });
  const auto limit = static_cast<std::size_t>(std::clamp(settings.limit, 1, 100));
  if (hits.size() > limit) hits.resize(limit);
  if (settings.excerpts) {
    for (Hit& hit : hits) add_excerpt(root_of(open_[hit.library].get()), question, &hit);
  }
  return hits;
}

Result<CodeText> KnowledgeBase::read_code(const std::string& library, const std::string& path,
                                          int first, int last) {
  KP_ASSIGN(const auto database, open(library));
  std::string hash;
  {
    Statement find = database->prepare("SELECT hash FROM files WHERE path = ?");
    if (find.bind(0, path).step() == SQLITE_ROW) hash = find.text(0);
  }
  KP_ASSIGN(const auto text, read_below(root_of(database), path));
  if (hash.empty()) {
    return fail(ErrorKind::kBadInput, printable(path) + " is not in the library " + library,
                "kernelpro knowledge search finds files; knowledge add --update reads new ones");
  }
  const std::vector<std::string_view> all = line_views(text);
  CodeText code;
  code.path = path;
  code.lines = static_cast<int>(all.size());
  code.changed = hash_hex(text) != hash;
  code.first = std::max(first, 1);
  const int wanted = last <= 0 ? code.lines : std::min(last, code.lines);
  if (last > 0 && last < code.first) {
    return fail(ErrorKind::kBadInput, "the last line lies before the first",
                "give lines as in --lines 10-40");
  }
  if (code.first > std::max(code.lines, 1)) {
    return fail(ErrorKind::kBadInput,
                printable(path) + " has " + std::to_string(code.lines) + " lines",
                "request lines within the file");
  }
  code.last = code.first - 1;
  std::size_t bytes = 0;
  while (code.last < wanted && code.last - code.first + 1 < kMostLines) {
    const std::string line = printable(all[code.last].substr(0, kMostBytes));
    if (bytes + line.size() + 1 > kMostBytes && bytes > 0) break;
    code.text += line.substr(0, kMostBytes - 1) + "\n";
    bytes = code.text.size();
    ++code.last;
  }
  code.clipped = code.last < wanted;
  return code;
}

Result<std::vector<CodeEntry>> KnowledgeBase::list_code(const std::string& library,
                                                        const std::string& prefix) {
  KP_ASSIGN(const auto database, open(library));
  std::string folder = prefix;
  while (!folder.empty() && folder.back() == '/') folder.pop_back();
  if (!folder.empty()) folder += '/';
  std::vector<CodeEntry> entries;
  Statement all = database->prepare("SELECT path, language, size FROM files ORDER BY path");
  while (all.step() == SQLITE_ROW && entries.size() < kMostEntries) {
    const std::string path = all.text(0);
    if (path.compare(0, folder.size(), folder) != 0) continue;
    const std::size_t slash = path.find('/', folder.size());
    if (slash == std::string::npos) {
      entries.push_back({path, all.text(1), all.integer(2), 1});
      continue;
    }
    const std::string below = path.substr(0, slash + 1);
    if (entries.empty() || entries.back().path != below) entries.push_back({below, "", 0, 0});
    entries.back().bytes += all.integer(2);
    ++entries.back().files;
  }
  if (entries.empty()) {
    return fail(ErrorKind::kBadInput,
                "library " + library + " has nothing below \"" + printable(prefix) + "\"",
                "leave the prefix away to see its folders");
  }
  return entries;
}

}  // namespace kernelpro
