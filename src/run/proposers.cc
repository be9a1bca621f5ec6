// SPDX-License-Identifier: Apache-2.0
#include "run/proposers.h"

#include <algorithm>
#include <iterator>

#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "run/store/store.h"
#include "write/knowledge/knowledge_base.h"

namespace kernelpro {

// Each is in a file of src/write/.
using ProposerFactory = std::unique_ptr<Proposer>();
ProposerFactory make_tuner, make_sweep;

namespace {

// All candidates of another run, by id; the replay skips those that this run has.
Result<std::vector<Candidate>> recorded(const std::string& directory, TargetKind target) {
  KP_ASSIGN(auto store, Store::open(directory, Store::Mode::kRead));
  KP_ASSIGN(auto header, store->header());
  if (header.target != target) {
    return fail(
        ErrorKind::kBadInput,
        directory + " is a run on the " + std::string(target_name(header.target)) + " target",
        "replay it on the target that it was recorded on");
  }
  KP_ASSIGN(auto stored, store->candidates(false));
  std::vector<Candidate> candidates;
  for (StoredCandidate& each : stored) candidates.push_back(std::move(each.known.candidate));
  return candidates;
}

std::function<bool()> cancelled(const WriterStart& start) {
  return [over = start.over] { return stop_requested() || *over; };
}

Result<ModelSettings> model_settings(const RunSettings& settings) {
  KP_ASSIGN(auto prompts, Prompts::load(settings.prompts));
  ModelSettings model;
  model.roles = settings.roles;
  model.prompts = std::move(prompts);
  model.knowledge = knowledge_folder();
  return model;
}

Result<std::unique_ptr<Proposer>> make_model_of_run(const RunSettings& settings,
                                                    const WriterStart& start) {
  KP_ASSIGN(auto model, model_settings(settings));
  model.past = start.calls;
  model.cancelled = cancelled(start);
  return make_model(std::move(model));
}

Result<std::unique_ptr<Proposer>> make_exchange_of_run(const RunSettings& settings,
                                                       const WriterStart& start) {
  KP_ASSIGN(auto prompts, Prompts::load(settings.prompts));
  ExchangeSettings exchange;
  exchange.folder = exchange_folder(settings.directory);
  exchange.wait_s = settings.exchange_wait_s;
  exchange.tune = settings.roles.tune;
  exchange.cancelled = cancelled(start);
  exchange.past = start.requests;
  exchange.prompts = std::move(prompts);
  return make_exchange(std::move(exchange));
}

Result<void> check_prompts(const RunSettings& settings) {
  KP_TRY(Prompts::load(settings.prompts));
  return {};
}

Result<void> check_model(const RunSettings& settings) {
  KP_ASSIGN(auto model, model_settings(settings));
  KP_TRY(make_model(std::move(model)));
  // Before anything is measured.
  return reach_models(settings.roles);
}

using Made = Result<std::unique_ptr<Proposer>>;

template <ProposerFactory* make>
Made plain(const RunSettings&, const WriterStart&) {
  return make();
}

Made make_replay_of_run(const RunSettings& settings, const WriterStart&) {
  KP_ASSIGN(auto candidates, recorded(settings.replay_from, settings.target));
  return make_replay(std::move(candidates));
}

constexpr std::string_view kDeclareKnobs =
    "declare knobs with several values in the kernel (// @knob TILE 16 32; none was found in its "
    "text: docs/task-format.md says which are), give more time (--seconds), or name a writer: "
    "--model, --proposer exchange";

const ProposerRow kRows[] = {
    {.name = kTunerName,
     .summary = "moves the knobs that a source declares, or that its text offers",
     .needs_knobs = true,
     // It learns from each result; on the CPU, compilers and kernels share the cores.
     .batch_cpu = 1,
     .batch_cuda = 2,
     .when_nothing = kDeclareKnobs,
     .wrote = "The structure came from an earlier candidate's source; the embedded tuner chose the "
              "numbers.",
     .chose = "the embedded tuner",
     .check = check_prompts,
     .make = plain<make_tuner>},
    {.name = kSweepName,
     .summary = "measures every setting of the start's knobs",
     .needs_knobs = true,
     .exhaustive = true,
     .batch_cpu = 48,  // built in parallel
     .batch_cuda = 48,
     .when_nothing = kDeclareKnobs,
     .wrote = "",
     .chose = "a sweep over all settings",
     .check = check_prompts,
     .make = plain<make_sweep>},
    {.name = kExchangeName,
     .summary = "writes requests into a folder and picks up replies",
     .slow = true,
     .writes_sources = true,
     .when_nothing = "put a kernel into the reply folder of a request in {run}/exchange, then: "
                     "kernelpro resume {run}",
     .wrote = "The source was written by a writer outside, through the exchange.",
     .check = check_prompts,
     .make = make_exchange_of_run},
    {.name = kModelName,
     .summary = "language models that plan, write and repair",
     .slow = true,
     .writes_sources = true,
     .asks_models = true,
     .when_nothing = "see what the model answered (kernelpro show {run} --json, calls), check its "
                     "name, key and server (docs/models.md), then: kernelpro resume {run}",
     .wrote = "The source was written by a language model.",
     .check = check_model,
     .make = make_model_of_run},
    {.name = kReplayName,
     .summary = "tries a recorded run's candidates again",
     .replays = true,
     .when_nothing = "replay a run that evaluated more than its start",
     .wrote = "The candidate was replayed from a recorded run.",
     .check = check_prompts,
     .make = make_replay_of_run},
    // Its candidates came from outside (run/sitting.h): only the confirmation of the best is left.
    {.name = kMcpName,
     .summary = "a coding agent",
     .selectable = false,
     .when_nothing = "submit a kernel, then: kernelpro resume {run}",
     .wrote = "",
     .check = check_prompts,
     .make = [](const RunSettings&, const WriterStart&) -> Made { return make_replay({}); }},
};

Made make_unknown(const RunSettings& settings, const WriterStart&) {
  return tl::unexpected<Error>(find_proposer(settings.proposer).error());
}

const ProposerRow kUnknown{.name = "",
                           .summary = "",
                           .selectable = false,
                           .when_nothing = "kernelpro resume {run}",
                           .wrote = "",
                           .check = check_prompts,
                           .make = make_unknown};

}  // namespace

std::string proposer_names() {
  std::vector<ProposerRow> selectable;
  std::copy_if(std::begin(kRows), std::end(kRows), std::back_inserter(selectable),
               [](const ProposerRow& row) { return row.selectable; });
  return names_of(selectable);
}

Result<const ProposerRow*> find_proposer(std::string_view name) {
  for (const ProposerRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return fail(ErrorKind::kBadInput, "there is no proposer named " + std::string(name),
              "choose one of " + replace_all(proposer_names(), "|", ", "));
}

const ProposerRow& proposer_of(const RunSettings& settings) {
  const auto found = find_proposer(settings.proposer);
  return found ? **found : kUnknown;
}

const ProposerRow& proposer_that(bool ProposerRow::*does) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const ProposerRow& row) { return row.*does; });
}

Result<std::unique_ptr<Proposer>> make_collector(const RunSettings& settings,
                                                 const WriterStart& start) {
  ExchangeSettings exchange;
  exchange.folder = exchange_folder(settings.directory);
  exchange.wait_s = 0;
  exchange.tune = settings.roles.tune;
  exchange.write = false;
  exchange.past = start.requests;
  return make_exchange(std::move(exchange));
}

}  // namespace kernelpro
