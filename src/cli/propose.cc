// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "write/model/apis.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kProposeOptions[] = {
    {"RUN", "", "", "Run folder.", true},
    {"-n", "N", "4", "How many requests to write, or kernels with --model."},
    {"--model", "SPEC", "", "Have a model write the kernels now, instead of requests.", false, "",
     nullptr, model_forms},
    {"--planner", "SPEC", "", "Use another model for ideas."},
    {"--coder", "SPEC", "", "Use another model for sources."},
    {"--fixer", "SPEC", "", "Use another model for repairs."},
    {"--one-call", "", "", "Ask for idea and source in one call, without a planner."},
    {"--fixes", "N", "2", "Repair attempts for a source that failed."},
    {"--tool-rounds", "N", "8", "Rounds of code look-ups that a model may use per answer."},
    {"--max-tokens", "N", "0", "Stop when models have used N tokens; 0 means no limit."},
    {"--max-usd", "X", "0", "Stop when models have cost X US dollars; 0 means no limit."},
    {"--max-calls", "N", "0", "Stop after N requests to models; 0 means no limit."},
    {"--feedback", "KIND", "",
     "What these requests show, in place of the run's setting: the time alone, every raw metric, "
     "or "
     "the diagnosis.",
     false, "none|raw|diagnosed"},
    {"--prompts", "DIR", "", "Folder of prompts for these requests, as for optimize."},
    {"--json", "", "", "Print the folders, or with a model the number of kernels, as JSON."},
};

// Kernels by models, which stay in the run until they are measured.
int run_models(const Options& options, const std::string& run, int count) {
  RoleSettings roles;
  read_roles(options, &roles);
  roles.ideas = std::min(roles.ideas, count);
  const bool json = options.flag("--json");
  stop_on_signals();
  const int written = require(
      propose_by_models(run, roles, count, make_display(display_kind(json, stdout), stdout)));
  if (json) {
    std::printf("%s\n", dump_json(Json{{"written", written}}).c_str());
    return 0;
  }
  std::printf(
      "%d kernel%s written; to evaluate, on the machine that measures this run: kernelpro measure "
      "%s\n",
      written, written == 1 ? " was" : "s were", run.c_str());
  return 0;
}

int run_propose(const Options& options) {
  const auto count = options.integer("-n");
  if (count < 1 || count > 1000) {
    throw Fatal(
        {ErrorKind::kBadInput, "the number of requests (-n) is out of range", "give 1 to 1000"});
  }
  const std::string run = options.text("RUN");
  RequestChanges wanted;
  if (options.has("--feedback")) wanted.feedback = feedback_from_name(options.text("--feedback"));
  if (options.has("--prompts")) wanted.prompts = absolute(options.text("--prompts"));
  const bool models = options.has("--model") || options.has("--planner") ||
                      options.has("--coder") || options.has("--fixer");
  if (models) {
    if (wanted.feedback || wanted.prompts) {
      throw Fatal({ErrorKind::kBadInput,
                   "--feedback and --prompts are for requests, not for --model",
                   "leave them out, or leave out --model"});
    }
    return run_models(options, run, static_cast<int>(count));
  }
  const auto folders = require(propose(run, static_cast<int>(count), wanted));
  if (options.flag("--json")) {
    std::printf("%s\n", dump_json(Json{{"requests", folders}}).c_str());
    return 0;
  }
  for (const std::string& folder : folders) std::printf("%s\n", folder.c_str());
  std::printf(
      "Read each prompt.md and put complete kernels into its reply/, then run: kernelpro measure "
      "%s\n",
      run.c_str());
  return 0;
}

}  // namespace

extern const Subcommand kPropose{
    "propose",
    "Write requests for kernels into a run's exchange folder, or have a model "
    "write the kernels; needs no GPU.",
    kProposeOptions, run_propose};

}  // namespace kernelpro
