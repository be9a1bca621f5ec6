// SPDX-License-Identifier: Apache-2.0
// Options for writers: models, and the contents of their prompts.
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "run/proposers.h"

namespace kernelpro {

namespace {

constexpr int kMostAtOnce = 16;  // sources that models write in parallel

}  // namespace

void read_model_budgets(const Options& options, RoleSettings* roles) {
  if (options.has("--max-tokens")) roles->max_tokens = options.integer("--max-tokens");
  if (options.has("--max-usd")) roles->max_usd = options.real("--max-usd");
  if (options.has("--max-calls")) roles->max_calls = options.integer("--max-calls");
}

void read_roles(const Options& options, RoleSettings* roles) {
  const auto named = [&](const char* role) {
    return options.has(role) ? options.text(role) : options.text("--model");
  };
  roles->planner = named("--planner");
  roles->coder = named("--coder");
  roles->fixer = named("--fixer");
  if (roles->coder.empty() && (options.has("--planner") || options.has("--fixer"))) {
    throw Fatal({ErrorKind::kBadInput, "no model is named to write the sources",
                 "name one with --coder SPEC, or one for all roles with --model SPEC"});
  }
  roles->one_call = options.flag("--one-call");
  roles->fixes = options.small("--fixes", 0, 10);
  roles->tool_rounds = options.small("--tool-rounds", 0, 100);
  read_model_budgets(options, roles);
}

void read_writers(const Options& options, RunSettings* settings) {
  RoleSettings& roles = settings->roles;
  read_roles(options, &roles);
  if (!roles.coder.empty() && settings->proposer == WriterSettings().proposer) {
    settings->proposer = proposer_that(&ProposerRow::asks_models).name;
  }
  if (!roles.coder.empty() && !proposer_of(*settings).asks_models) {
    throw Fatal({ErrorKind::kBadInput,
                 "a model is named, but the proposer is " + settings->proposer,
                 "leave out --proposer or the model"});
  }
  roles.ideas = options.small("--ideas", 1, kMostAtOnce);
  roles.tune = options.small("--tune", 0, 1000);
  settings->feedback =
      feedback_from_name(options.text("--feedback")).value_or(Feedback::kDiagnosed);
  if (options.has("--language")) {
    settings->dialect = dialect_from_name(options.text("--language"));
    if (!settings->dialect) {
      throw Fatal({ErrorKind::kBadInput,
                   "there is no language " + options.text("--language") + " to write in",
                   "choose one of " + replace_all(dialect_names(), "|", ", ")});
    }
  }
  if (options.has("--prompts")) settings->prompts = absolute(options.text("--prompts"));
  if (options.has("--start-from")) {
    for (const std::string& path : lines(options.text("--start-from"))) {
      settings->start_from.push_back(absolute(path));
    }
  }
}

}  // namespace kernelpro
