// SPDX-License-Identifier: Apache-2.0
// The part of Store that turns a run into text (run_text.h) and back.
#include "base/files.h"
#include "run/store/run_text.h"
#include "run/store/store.h"
#include "run/store/store_file.h"
#include "run/store/winner.h"

namespace kernelpro {

namespace {

// Stores a run in the order in which it happened, as far as the order matters.
Result<void> fill(const StoredRun& run, Store* store) {
  for (const StoredCandidate& each : run.candidates) {
    Proposal proposal{each.known.candidate, std::nullopt};
    const auto writing = run.writings.find(each.known.id);
    if (writing != run.writings.end()) proposal.writing = writing->second;
    KP_TRY(store->add_proposal(proposal));
  }
  for (const StoredCandidate* each : in_order(run.candidates)) {
    const auto step = run.steps.find(each->known.id);
    KP_TRY(store->finish(each->known.id, each->known.evaluation, each->evidence,
                         each->known.diagnosis, each->at_s,
                         step == run.steps.end() ? nullptr : &step->second));
  }
  for (const ExchangeRequest& request : run.requests) KP_TRY(store->add_request(request));
  for (const ModelCall& call : run.calls) KP_TRY(store->add_call(call));
  for (const ClosedLine& closed : run.closed) KP_TRY(store->close_line(closed));
  if (run.confirmation) KP_TRY(store->confirm(*run.confirmation));
  return {};
}

// Candidates are content-addressed: a second one of the same content has no place in a store.
Result<void> check_all_differ(const StoredRun& run, const std::string& path) {
  std::map<std::string, std::int64_t> seen;
  for (const StoredCandidate& each : run.candidates) {
    const auto [first, is_new] = seen.emplace(each.known.candidate.content_hash(), each.known.id);
    if (is_new) continue;
    return fail(ErrorKind::kStore,
                path + " is not a run as text: candidates " + std::to_string(first->second) +
                    " and " + std::to_string(each.known.id) + " are the same",
                "name a file that kernelpro trajectories wrote");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open_text(const std::string& path) {
  KP_ASSIGN(const auto text, read_file(path));
  KP_ASSIGN(const auto run, run_from_text(text, path));
  KP_TRY(check_all_differ(run, path));
  std::unique_ptr<Store> store(new Store());
  StoreFile& file = *store->impl_;
  file.directory = path;
  file.path = path;
  file.version = kSchemaVersion;
  const std::string doing = "read " + path + " into memory";
  int code = file.db.open(":memory:", Database::Mode::kCreate);
  if (code == SQLITE_OK) code = file.begin_store(run.header);
  if (code != SQLITE_OK) return file.failed(code, doing);
  KP_TRY(fill(run, store.get()));
  KP_TRY(file.commit(doing));
  return store;
}

Result<StoredRun> Store::whole() const {
  StoredRun run;
  KP_ASSIGN(run.header, header());
  run.header.id = run_id();
  KP_ASSIGN(run.candidates, candidates(true));
  for (const StoredCandidate& each : run.candidates) {
    KP_ASSIGN(auto written, writing(each.known.id));
    if (written) run.writings[each.known.id] = std::move(*written);
  }
  KP_ASSIGN(const auto steps, tool_steps());
  for (const ToolStep& step : steps) run.steps[step.candidate] = step;
  KP_ASSIGN(run.requests, requests());
  KP_ASSIGN(run.calls, calls());
  KP_ASSIGN(run.closed, closed_lines());
  KP_ASSIGN(run.confirmation, confirmation());
  return run;
}

}  // namespace kernelpro
