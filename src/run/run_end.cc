// SPDX-License-Identifier: Apache-2.0
#include "run/run_end.h"

#include "base/text.h"
#include "core/finding/account.h"
#include "core/machine/machine.h"
#include "run/proposers.h"

namespace kernelpro {

namespace {

// The start is one evaluation; every other candidate counts as tried.
constexpr int kStart = 1;

std::string next_when_nothing_tried(const RunSettings& settings) {
  return replace_all(std::string(proposer_of(settings).when_nothing), "{run}", settings.directory);
}

}  // namespace

std::string why_exhausted(const Standing& standing, const ProposerRow& proposer) {
  const double reached = standing.fraction_of_ceiling;
  if (reached >= kAtCeiling && reached <= kBeyondCeiling && !standing.ceiling_disturbed) {
    return "the best kernel is at " + ceiling_share(reached) +
           " of the ceiling, and nothing is left to try";
  }
  const std::string all =
      "the " + std::string(proposer.name) + " has tried everything that it would change";
  if (!proposer.needs_knobs) return all;
  return all + "; to go on, give the knobs more values or name a model (--model)";
}

void judge_end(const RunSettings& settings, const RunFacts& facts, RunResult* result) {
  result->end = RunEnd::kDone;
  result->next.clear();
  if (facts.interrupted) {
    result->end = RunEnd::kInterrupted;
    result->next = "kernelpro resume " + settings.directory;
    return;
  }
  if (facts.only_replies) {
    if (facts.evaluated_now > 0 || facts.confirmed) return;
    result->end = RunEnd::kNothing;
    result->next =
        "no new reply could be measured: put one into the reply folder of a request in " +
        settings.directory + "/exchange (kernelpro propose " + settings.directory +
        " writes requests), then: kernelpro measure " + settings.directory;
    return;
  }
  const bool tried = result->evaluations > kStart;
  const bool all_asked_for =
      settings.max_evaluations > 0 && result->evaluations >= settings.max_evaluations;
  const bool at_ceiling = settings.near_ceiling > 0 && result->best != 0 &&
                          result->fraction_of_ceiling >= settings.near_ceiling;
  if (!tried && !all_asked_for && !at_ceiling) {
    result->end = RunEnd::kNothing;
    result->next = next_when_nothing_tried(settings);
  } else if (result->best == 0) {
    result->end = RunEnd::kNothing;
    result->next = "no kernel gave the right result: `kernelpro show " + settings.directory +
                   "` says what was wrong; correct the starting kernel and begin a new "
                   "run, or give more evaluations: kernelpro resume " +
                   settings.directory + " --evaluations N";
  }
}

}  // namespace kernelpro
