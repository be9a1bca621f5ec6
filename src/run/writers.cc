// SPDX-License-Identifier: Apache-2.0
#include "run/writers.h"

#include "base/files.h"
#include "knowledge/knowledge_base.h"

namespace kernelpro {

namespace {

// The candidates of another run, the start left out by its content hash when it is the same.
Result<std::vector<Candidate>> recorded(const std::string& directory, TargetKind target) {
  auto store = Store::open(directory, Store::Mode::kRead);
  if (!store) return tl::unexpected<Error>(std::move(store.error()));
  auto header = (*store)->header();
  if (!header) return tl::unexpected<Error>(std::move(header.error()));
  if (header->target != target) {
    return fail(
        ErrorKind::kBadInput,
        directory + " is a run on the " + std::string(target_name(header->target)) + " target",
        "replay it on the target that it was recorded on");
  }
  auto stored = (*store)->candidates(false);
  if (!stored) return tl::unexpected<Error>(std::move(stored.error()));
  std::vector<Candidate> candidates;
  for (StoredCandidate& each : *stored) candidates.push_back(std::move(each.known.candidate));
  return candidates;
}

std::function<void(const std::string&)> teller(const WriterLinks& links, const char* event) {
  return [links, event](const std::string& text) {
    Progress progress;
    progress.event = event;
    progress.detail = text;
    links.mailbox->call([&] {
      if (links.observer) links.observer(progress);
    });
  };
}

std::function<bool()> cancelled(const WriterLinks& links) {
  return [over = links.over] { return stop_requested() || *over; };
}

Result<ModelSettings> model_settings(const RunSettings& settings) {
  auto prompts = Prompts::load(settings.prompts);
  if (!prompts) return tl::unexpected<Error>(std::move(prompts.error()));
  ModelSettings model;
  model.roles = settings.roles;
  model.prompts = std::move(*prompts);
  model.knowledge = knowledge_folder();
  return model;
}

Result<std::unique_ptr<Proposer>> make_model_of_run(const RunSettings& settings,
                                                    const WriterLinks& links) {
  auto model = model_settings(settings);
  if (!model) return tl::unexpected<Error>(std::move(model.error()));
  auto past = links.store->calls();
  if (!past) return tl::unexpected<Error>(std::move(past.error()));
  model->past = std::move(*past);
  model->record = [links](const ModelCall& call) {
    Result<void> added;
    links.mailbox->call([&] { added = links.store->add_call(call); });
    return added;
  };
  model->cancelled = cancelled(links);
  model->note = teller(links, "model");
  return make_model(std::move(*model));
}

Result<std::unique_ptr<Proposer>> make_exchange_of_run(const RunSettings& settings,
                                                       const WriterLinks& links) {
  auto prompts = Prompts::load(settings.prompts);
  if (!prompts) return tl::unexpected<Error>(std::move(prompts.error()));
  ExchangeSettings exchange;
  exchange.folder = exchange_folder(settings.directory);
  exchange.wait_s = settings.exchange_wait_s;
  exchange.cancelled = cancelled(links);
  exchange.note = teller(links, "waiting");
  exchange.refused = teller(links, "refused");
  exchange.prompts = std::move(*prompts);
  return make_exchange(exchange);
}

}  // namespace

std::string exchange_folder(const std::string& directory) { return join(directory, "exchange"); }

Result<void> check_writer(const RunSettings& settings) {
  if (settings.proposer == "model") {
    auto model = model_settings(settings);
    if (!model) return tl::unexpected<Error>(std::move(model.error()));
    KP_TRY(make_model(std::move(*model)));
  } else {
    KP_TRY(Prompts::load(settings.prompts));
  }
  return {};
}

Result<std::unique_ptr<Proposer>> make_collector(const RunSettings& settings,
                                                 const WriterLinks& links) {
  ExchangeSettings exchange;
  exchange.folder = exchange_folder(settings.directory);
  exchange.wait_s = 0;
  exchange.write = false;
  exchange.refused = teller(links, "refused");
  return make_exchange(exchange);
}

bool is_slow(const RunSettings& settings) {
  return settings.proposer == "model" || settings.proposer == "exchange";
}

Result<std::unique_ptr<Proposer>> make_writer(const RunSettings& settings,
                                              const WriterLinks& links) {
  if (settings.proposer == "tuner") return make_tuner();
  if (settings.proposer == "sweep") return make_sweep();
  if (settings.proposer == "exchange") return make_exchange_of_run(settings, links);
  if (settings.proposer == "model") return make_model_of_run(settings, links);
  if (settings.proposer == "replay") {
    auto candidates = recorded(settings.replay_from, settings.target);
    if (!candidates) return tl::unexpected<Error>(std::move(candidates.error()));
    return make_replay(std::move(*candidates));
  }
  // Its candidates came from outside (run/sitting.h): what is left is to confirm the best.
  if (settings.proposer == "mcp") return make_replay({});
  return fail(ErrorKind::kBadInput, "there is no proposer named " + settings.proposer,
              "choose one of tuner, sweep, exchange, model, replay");
}

}  // namespace kernelpro
