// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/machine/ceiling_json.h"
#include "report/view.h"
#include "run/store/store.h"
#include "serve/runs/runs.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kListOptions[] = {
    {"DIR", "", "runs", "Folder that contains run folders, or runs as text (*.jsonl).", false},
    {"--json", "", "", "Print one JSON object per line."},
};

void print_text(const std::string& directory, const RunView& view, const Story& story) {
  std::printf("%-44s %s  %s, %16s", directory.c_str(), view.header.created.c_str(),
              std::string(target_name(view.header.target)).c_str(),
              how_many(story.evaluated, "evaluation").c_str());
  if (story.best != nullptr) {
    std::printf(", %s %s", speedup_text(story.speedup).c_str(), human_us(story.final_us).c_str());
    if (story.fraction > 0) std::printf(", %s of ceiling", ceiling_share(story.fraction).c_str());
  }
  std::printf("%s\n", view.confirmation       ? ""
                      : run_holder(directory) ? "  (running)"
                      : !view.open_requests.empty()
                          ? "  (waits for a reply: kernelpro show says where)"
                          : "  (stopped; kernelpro resume continues it)");
}

void print_json(const std::string& directory, const RunView& view, const Story& story) {
  Json json = {{"run", directory},
               {"task", view.header.task.name},
               {"target", target_name(view.header.target)},
               {"created", view.header.created},
               {"evaluations", story.evaluated},
               {"speedup", story.speedup},
               {"best_us", story.final_us},
               {"finished", view.confirmation.has_value()},
               {"running", run_holder(directory).has_value()}};
  put_fraction(story.fraction, &json);
  std::printf("%s\n", dump_json(json).c_str());
}

int run_list(const Options& options) {
  const std::string folder = options.text("DIR");
  if (!is_dir(folder)) {
    throw Fatal({ErrorKind::kBadInput, "there is no folder " + folder,
                 "name the folder that contains the runs, or start one with kernelpro optimize"});
  }
  int shown = 0;
  for (const std::string& name : list_dir(folder)) {
    const std::string directory = join(folder, name);
    if (!is_run(directory)) continue;
    ++shown;
    const auto view = load_run_view(directory);
    if (!view) {
      std::fprintf(stderr, "%s: %s\n", directory.c_str(), view.error().message.c_str());
    } else if (options.flag("--json")) {
      print_json(directory, *view, tell(*view));
    } else {
      print_text(directory, *view, tell(*view));
    }
  }
  if (shown == 0 && !options.flag("--json")) {
    const bool suite = exists(join(folder, "suite.json"));
    const std::string next = ", which is a suite: kernelpro bench --out " + folder +
                             " prints its results, kernelpro list " + folder + "/ARM an arm's runs";
    std::printf("no runs in %s%s\n", folder.c_str(), suite ? next.c_str() : "");
  }
  return 0;
}

}  // namespace

extern const Subcommand kList{"list", "List the runs in a folder.", kListOptions, run_list};

}  // namespace kernelpro
