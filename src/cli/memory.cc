// SPDX-License-Identifier: Apache-2.0
// kernelpro memory list|show|add: lessons from earlier runs.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/task/operator_family.h"
#include "run/facts.h"
#include "run/store/fact_file.h"
#include "write/prompt/recall.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kMemoryOptions[] = {
    {"ACTION", "", "list",
     "list counts facts by operator family; show [WORDS...] prints the facts that match every "
     "word: a family, or part of a task's or machine's name; add RUN... adds facts from existing "
     "runs.",
     false, "list|show|add"},
    {"WORDS", "WORD...", "", "Arguments of the action."},
    {"--file", "FILE", "", "Memory to use instead of this user's."},
    {"-n", "N", "50", "With show: only the latest N."},
    {"--json", "", "", "Print as JSON."},
};

struct FamilyCount {
  std::set<std::string> tasks, machines;
  int facts = 0, correct = 0, faster = 0, cures = 0;
  std::string latest;
};

int list_families(const std::vector<Fact>& facts, const std::string& path, bool as_json) {
  std::map<std::string, FamilyCount> families;
  for (const Fact& fact : facts) {
    FamilyCount& count = families[join_text(fact.family, " ")];
    count.tasks.insert(fact.task);
    count.machines.insert(fact.machine);
    ++count.facts;
    count.correct += fact.outcome == OutcomeKind::kCorrect ? 1 : 0;
    count.faster += was_faster(fact) ? 1 : 0;
    count.cures += fact.cure.empty() ? 0 : 1;
    count.latest = std::max(count.latest, fact.when);
  }
  if (as_json) {
    Json all = Json::array();
    for (const auto& [family, count] : families) {
      all.push_back({{"family", words(family)},
                     {"tasks", count.tasks},
                     {"machines", count.machines},
                     {"facts", count.facts},
                     {"correct", count.correct},
                     {"faster", count.faster},
                     {"cures", count.cures},
                     {"latest", count.latest}});
    }
    std::printf("%s\n", dump_json({{"file", path}, {"families", all}}, 2).c_str());
    return 0;
  }
  for (const auto& [family, count] : families) {
    std::printf("%-32s %5d facts, %d correct, %d faster, %d cures; latest %s; %s\n",
                printable(family).c_str(), count.facts, count.correct, count.faster, count.cures,
                printable(count.latest).c_str(),
                printable(join_text({count.tasks.begin(), count.tasks.end()}, ", ")).c_str());
  }
  if (families.empty()) {
    std::printf(
        "nothing is remembered yet: runs add facts, and so does kernelpro memory add RUN\n");
  }
  std::printf("memory: %s\n", path.c_str());
  return 0;
}

bool is_meant(const Fact& fact, const std::vector<std::string>& asked) {
  return std::all_of(asked.begin(), asked.end(), [&](const std::string& word) {
    return has_kind(fact.family, word) || fact.task == word || contains(fact.machine, word);
  });
}

int show_facts(std::vector<Fact> facts, const std::vector<std::string>& asked,
               const Options& options) {
  std::erase_if(facts, [&](const Fact& fact) { return !is_meant(fact, asked); });
  const auto most = static_cast<std::size_t>(options.integer("-n"));
  const std::size_t from = facts.size() > most ? facts.size() - most : 0;
  Json all = Json::array();
  for (std::size_t i = from; i < facts.size(); ++i) {
    if (options.flag("--json")) {
      all.push_back(parse_json(fact_to_json(facts[i])).value_or(Json()));
    } else {
      std::printf("%s  %s\n", printable(facts[i].when).c_str(), fact_text(facts[i]).c_str());
    }
  }
  if (options.flag("--json")) {
    std::printf("%s\n", dump_json(all, 2).c_str());
  } else if (facts.empty()) {
    std::printf("nothing like that is remembered; kernelpro memory list shows what is\n");
  } else if (from > 0) {
    std::printf("(%zu earlier ones; -n shows more)\n", from);
  }
  return 0;
}

int add_runs(FactFile* file, const std::vector<std::string>& runs) {
  if (runs.empty()) {
    throw Fatal(
        {ErrorKind::kBadInput, "memory add needs a run", "usage: kernelpro memory add RUN..."});
  }
  for (const std::string& run : runs) {
    const auto store = require(Store::open(run, Store::Mode::kRead));
    const RunHeader header = require(store->header());
    const std::vector<Fact> facts = require(facts_of_run(*store));
    const int added = require(file->add(store->run_id(), facts, header.created));
    std::printf(
        "%s: %d facts, %d of them new%s\n", run.c_str(), static_cast<int>(facts.size()), added,
        facts.empty() ? " (replays, sweeps and runs with nothing but a start leave none)" : "");
  }
  return 0;
}

// Rejects files that are not a memory, so that a wrong path destroys nothing.
void check_is_memory(const std::string& path) {
  constexpr std::string_view kMark = "SQLite format 3";
  std::string head(kMark.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!is_dir(path) && (file.gcount() == 0 || head == kMark)) return;
  throw Fatal({ErrorKind::kBadInput, path + " is not a memory of KernelPro",
               "name a facts.db, or a file that does not exist yet"});
}

int run_memory(const Options& options) {
  const std::string path = options.has("--file") ? options.text("--file") : user_facts_path();
  if (options.has("--file")) check_is_memory(path);
  FactFile file(path);
  if (options.has("--file") && options.text("ACTION") != "add") file.only_read();
  std::vector<std::string> given;
  if (options.has("WORDS")) given = split(options.text("WORDS"), '\n');
  const std::string action = options.text("ACTION");
  int status = 0;
  if (action == "add") {
    status = add_runs(&file, given);
  } else {
    std::vector<Fact> facts = require(file.read_all());
    status = action == "show" ? show_facts(std::move(facts), given, options)
                              : list_families(facts, path, options.flag("--json"));
  }
  const std::string note = file.take_note();
  if (!note.empty()) std::fprintf(stderr, "kernelpro: %s\n", note.c_str());
  return status;
}

}  // namespace

extern const Subcommand kMemory{"memory", "Show what earlier runs learned, and add to it.",
                                kMemoryOptions, run_memory};

}  // namespace kernelpro
