// SPDX-License-Identifier: Apache-2.0
// kernelpro knowledge add|list|remove|search|read: the command line of src/write/knowledge.
#include <charconv>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "write/knowledge/knowledge_base.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kKnowledgeOptions[] = {
    {"ACTION", "", "",
     "add NAME DIR indexes a source tree; list shows the libraries, and list NAME [PREFIX] a "
     "library's files; remove NAME deletes one; search WORDS... finds code; read NAME PATH prints "
     "lines of a file.",
     true, "add|list|remove|search|read"},
    {"WORDS", "WORD...", "", "Arguments of the action."},
    {"--update", "", "", "With add: index again what has changed."},
    {"--library", "NAME", "", "With search: search only this library."},
    {"-n", "N", "10", "With search: number of hits."},
    {"--every", "", "", "With search: allow several hits per file."},
    {"--language", "NAME", "",
     "With search: prefer cpp, cuda or python; so does language:NAME among the words.", false,
     "cpp|cuda|python"},
    {"--lines", "A-B", "", "With read: only these lines; A- reads to the end."},
    {"--json", "", "", "Print as JSON."},
};

[[noreturn]] void usage(const std::string& what, const std::string& next) {
  throw Fatal({ErrorKind::kBadInput, what, next});
}

void need(const std::vector<std::string>& given, std::size_t least, std::size_t most,
          const char* form) {
  if (given.size() >= least && given.size() <= most) return;
  usage(std::string("knowledge ") +
            (given.size() < least ? "needs more arguments" : "has too many arguments"),
        std::string("usage: kernelpro knowledge ") + form);
}

void print_json(const Json& json) { std::printf("%s\n", dump_json(json, 2).c_str()); }

int add(KnowledgeBase* base, const std::vector<std::string>& given, const Options& options) {
  need(given, 2, 2, "add NAME DIR [--update]");
  const IndexReport report = require(base->add(given[0], given[1], options.flag("--update")));
  if (options.flag("--json")) {
    print_json({{"library", given[0]},
                {"files", report.files},
                {"read", report.read},
                {"unchanged", report.unchanged},
                {"removed", report.removed},
                {"skipped", report.skipped},
                {"chunks", report.chunks},
                {"bytes", report.bytes},
                {"seconds", report.seconds}});
    return 0;
  }
  std::printf("%s: %d files (%d read, %d unchanged, %d removed, %d skipped), %lld pieces, %s\n",
              given[0].c_str(), report.files, report.read, report.unchanged, report.removed,
              report.skipped, static_cast<long long>(report.chunks),
              human_seconds(report.seconds).c_str());
  if (report.files == 0) std::printf("no file there is of a type that is indexed\n");
  return 0;
}

int list_libraries(KnowledgeBase* base, const Options& options) {
  Json all = Json::array();
  const std::vector<Library> libraries = base->list();
  for (const Library& library : libraries) {
    all.push_back({{"name", library.name},
                   {"root", library.root},
                   {"updated", library.updated},
                   {"files", library.files},
                   {"chunks", library.chunks},
                   {"fault", library.fault}});
    if (options.flag("--json")) continue;
    if (!library.fault.empty()) {
      std::printf("%-20s %s\n", library.name.c_str(), library.fault.c_str());
    } else {
      std::printf("%-20s %6lld files %8lld pieces  %s  %s\n", library.name.c_str(),
                  static_cast<long long>(library.files), static_cast<long long>(library.chunks),
                  library.updated.c_str(), printable(library.root).c_str());
    }
  }
  if (options.flag("--json")) {
    print_json(all);
  } else if (libraries.empty()) {
    std::printf("no libraries yet; add one with: kernelpro knowledge add NAME DIR\n");
  }
  return 0;
}

int list(KnowledgeBase* base, const std::vector<std::string>& given, const Options& options) {
  need(given, 0, 2, "list [NAME [PREFIX]]");
  if (given.empty()) return list_libraries(base, options);
  Json all = Json::array();
  for (const CodeEntry& entry :
       require(base->list_code(given[0], given.size() > 1 ? given[1] : ""))) {
    all.push_back({{"path", entry.path},
                   {"language", entry.language},
                   {"bytes", entry.bytes},
                   {"files", entry.files}});
    if (!options.flag("--json")) std::printf("%s\n", printable(entry.path).c_str());
  }
  if (options.flag("--json")) print_json(all);
  return 0;
}

int remove(KnowledgeBase* base, const std::vector<std::string>& given) {
  need(given, 1, 1, "remove NAME");
  require(base->remove(given[0]));
  std::printf("removed %s\n", given[0].c_str());
  return 0;
}

Json as_json(const Hit& hit) {
  return {{"library", hit.library},
          {"path", hit.path},
          {"first", hit.first},
          {"last", hit.last},
          {"kind", hit.kind},
          {"symbol", hit.symbol},
          {"scope", hit.scope},
          {"doc", hit.doc},
          {"signature", hit.signature},
          {"score", hit.score},
          {"excerpt_first", hit.excerpt_first},
          {"excerpt", hit.excerpt},
          {"copies", hit.copies}};
}

void print_hit(const Hit& hit) {
  std::printf("%s/%s:%d-%d", hit.library.c_str(), printable(hit.path).c_str(), hit.first, hit.last);
  if (!hit.symbol.empty()) {
    std::printf("  %s %s", hit.kind.c_str(), printable(full_name(hit)).c_str());
  }
  std::printf("  (%.1f)\n", hit.score);
  if (!hit.doc.empty()) std::printf("    %s\n", printable(hit.doc.substr(0, 160)).c_str());
  int line = hit.excerpt_first;
  for (const std::string& text : lines(hit.excerpt)) {
    std::printf("  %6d  %s\n", line++, text.c_str());
  }
  if (!hit.copies.empty()) {
    std::printf("    similar: %s\n", printable(join_text(hit.copies, ", ")).c_str());
  }
  std::printf("\n");
}

int search(KnowledgeBase* base, const std::vector<std::string>& given, const Options& options) {
  need(given, 1, 200, "search WORDS... [--library NAME] [-n N]");
  SearchSettings settings;
  settings.limit = static_cast<int>(std::min(options.integer("-n"), 100LL));
  settings.one_per_file = !options.flag("--every");
  if (options.has("--language")) settings.language = options.text("--language");
  const std::vector<Hit> hits =
      require(base->search_code(join_text(given, " "), options.text("--library"), settings));
  Json all = Json::array();
  for (const Hit& hit : hits) {
    if (options.flag("--json")) all.push_back(as_json(hit));
    if (!options.flag("--json")) print_hit(hit);
  }
  if (options.flag("--json")) {
    print_json(all);
  } else if (hits.empty()) {
    std::printf("nothing found; try other words\n");
  }
  return 0;
}

// "10-40", "10-" or "10".
void read_lines(const std::string& text, int* first, int* last) {
  const char* end = text.data() + text.size();
  const auto begin = std::from_chars(text.data(), end, *first);
  bool good = begin.ec == std::errc() && *first > 0;
  if (good && begin.ptr == end) {
    *last = *first;
  } else if (good && *begin.ptr == '-' && begin.ptr + 1 == end) {
    *last = 0;
  } else {
    const auto rest = good ? std::from_chars(begin.ptr + 1, end, *last) : begin;
    good = good && *begin.ptr == '-' && rest.ec == std::errc() && rest.ptr == end && *last > 0;
  }
  if (!good)
    usage("--lines cannot be \"" + printable(text) + "\"", "write, for example, --lines 10-40");
}

int read(KnowledgeBase* base, const std::vector<std::string>& given, const Options& options) {
  need(given, 2, 2, "read NAME PATH [--lines A-B]");
  int first = 1;
  int last = 0;
  if (options.has("--lines")) read_lines(options.text("--lines"), &first, &last);
  const CodeText code = require(base->read_code(given[0], given[1], first, last));
  if (options.flag("--json")) {
    print_json({{"path", code.path},
                {"first", code.first},
                {"last", code.last},
                {"lines", code.lines},
                {"clipped", code.clipped},
                {"changed", code.changed},
                {"text", code.text}});
    return 0;
  }
  std::fputs(code.text.c_str(), stdout);
  if (code.clipped) {
    std::fprintf(stderr, "kernelpro: lines %d to %d of %d; continue with --lines %d-\n", code.first,
                 code.last, code.lines, code.last + 1);
  }
  if (code.changed) {
    std::fprintf(stderr,
                 "kernelpro: the file has changed since it was indexed; update the index with "
                 "kernelpro knowledge add --update\n");
  }
  return 0;
}

int run_knowledge(const Options& options) {
  KnowledgeBase base(knowledge_folder());
  const std::string action = options.text("ACTION");
  std::vector<std::string> given;
  if (options.has("WORDS")) given = split(options.text("WORDS"), '\n');
  if (action == "add") return add(&base, given, options);
  if (action == "list") return list(&base, given, options);
  if (action == "remove") return remove(&base, given);
  if (action == "search") return search(&base, given, options);
  return read(&base, given, options);
}

}  // namespace

extern const Subcommand kKnowledge{"knowledge", "Index source trees and search them for code.",
                                   kKnowledgeOptions, run_knowledge};

}  // namespace kernelpro
