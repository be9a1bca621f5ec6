// SPDX-License-Identifier: Apache-2.0
#include "run/loop.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "base/mailbox.h"
#include "base/stop.h"
#include "base/text.h"
#include "core/evaluation/load.h"
#include "run/asking.h"
#include "run/bench.h"
#include "run/pace.h"
#include "run/pipeline.h"
#include "run/planted.h"
#include "run/proposers.h"
#include "run/run_end.h"
#include "run/standing.h"
#include "task/load/start.h"

namespace kernelpro {

namespace {

// The candidates of one request. Those that a run begins with, or that an earlier sitting left,
// also form a round.
struct Round {
  std::int64_t parent = 0;  // of the request; 0: there was no request
  bool started = false;     // the search waits for its result
  bool written = false;     // all of its candidates are in the pipeline
  int taken = 0;            // candidates put into the pipeline so far
  int left = 0;             // of those, still without a result
};

class Loop {
 public:
  explicit Loop(const LoopParts& parts)
      : parts_(parts),
        task_(*parts.task),
        settings_(*parts.settings),
        row_(proposer_of(settings_)),
        bench_(bench_parts()),
        ledger_(bench_.ledger()),
        asking_(parts, &bench_, &planted_),
        stopper_(make_stopper(settings_)),
        planted_(parts.search) {}

  Result<RunResult> run();
  Result<std::vector<std::string>> write_requests(const std::string& folder, int count);
  Result<int> write_kernels(int count) {
    KP_TRY(restore());
    std::vector<Candidate> pending;
    for (const StoredCandidate& each : waiting_) pending.push_back(each.known.candidate);
    return asking_.write_kernels(count, std::move(pending));
  }

 private:
  BenchParts bench_parts() const;
  Result<void> restore();
  Result<void> first(const Candidate& start);
  Result<std::string> search_until_stopped();
  PipelineParts pipeline_parts();
  std::size_t most_rounds() const;
  std::optional<Turn> next_turn(int under_way);
  Result<void> open_rounds();
  Result<void> ask(const Turn& turn, bool started);
  Result<void> look_closer(std::int64_t parent);
  void dismiss_writer();
  void hear(WriterEvent event);
  Result<void> take(Proposal proposal);
  Result<void> take(const ModelCall& call) { return parts_.store->add_call(call); }
  Result<void> take(const ExchangeRequest& request) { return parts_.store->add_request(request); }
  Result<void> take(const WriterNote& note) {
    tell(note.event, nullptr, note.text);
    return {};
  }
  Result<void> end_writing(const Result<void>& written);
  Result<void> close(std::int64_t parent);
  void end_with(Result<void> ended);
  void close_round();
  Result<bool> commit(Pipeline::Done done);
  RunResult result(const std::string& stopped_by) const;
  void judge(RunResult* found) const {
    const bool collects = parts_.only_replies && !row_.exhaustive;
    judge_end(settings_,
              {found->stopped_by == kStoppedByRequest, collects, evaluated_now_, confirmed_anew_},
              found);
  }
  NodeResult node_result(std::int64_t id) const {
    return kernelpro::node_result(ledger_, id, settings_.feedback);
  }
  // As if `under_way` more candidates were already evaluated.
  std::optional<std::string> stop_reason(int under_way = 0) const;
  const Machine* machine() const {
    return parts_.station != nullptr ? &parts_.station->machine() : parts_.machine;
  }
  void tell(Event event, const Known* known, const std::string& detail) const;
  void tell_load(const Evaluation& evaluation);
  double elapsed_s() const { return before_s_ + real_clock().now_s() - started_; }
  double own_s() const;

  const LoopParts& parts_;
  const Task& task_;
  const RunSettings& settings_;
  const ProposerRow& row_;
  Bench bench_;
  const Ledger& ledger_;  // owned by the bench
  Asking asking_;
  std::unique_ptr<Stopper> stopper_;
  Planted planted_;                       // the search
  std::vector<StoredCandidate> waiting_;  // stored by an earlier sitting, not yet evaluated
  double started_ = 0;                    // of this sitting
  double before_s_ = 0;                   // run time of earlier sittings
  double startup_s_ = 0;                  // of our own time, before the search
  double own_marked_ = 0;
  int evaluated_now_ = 0;
  bool told_load_ = false;
  const RunResult* confirmed_ = nullptr;  // result of the confirmation; null before it
  bool confirmed_anew_ = false;           // what an earlier sitting left unconfirmed
  std::deque<Round> rounds_;              // unfinished; the last may still be in writing
  std::thread writer_;                    // writes the last round's candidates
  std::optional<Error> error_;            // of taking in what a writer gave
  std::optional<Pipeline> pipeline_;
};

double Loop::own_s() const {
  return real_clock().now_s() - started_ - startup_s_ - bench_.outside_s();
}

std::optional<std::string> Loop::stop_reason(int under_way) const {
  if (stop_requested()) return kStoppedByRequest;
  Standing standing = standing_of(ledger_, *bench_.machine());
  standing.evaluations += under_way;
  standing.elapsed_s = elapsed_s();
  return stopper_->reason(standing);
}

void Loop::tell(Event event, const Known* known, const std::string& detail) const {
  if (!parts_.observer) return;
  Progress p = progress_of(ledger_, *bench_.machine(), known);
  p.event = event;
  p.detail = detail;
  if (event == Event::kConfirmed && confirmed_ != nullptr) {
    p.best_us = confirmed_->best_us;
    p.best_speedup = confirmed_->speedup;
    p.best_speedup_low = confirmed_->speedup_low;
    p.best_speedup_high = confirmed_->speedup_high;
    p.fraction_of_ceiling = confirmed_->fraction_of_ceiling;
  }
  p.elapsed_s = elapsed_s();
  p.left_s = seconds_left(settings_, p.elapsed_s, ledger_.evaluations());
  p.max_evaluations = settings_.max_evaluations;
  parts_.observer(p);
}

// Reports the first candidate timed on a busy machine.
void Loop::tell_load(const Evaluation& evaluation) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr || told_load_) return;
  const Load load = load_of(correct->observed);
  if (!load.busy()) return;
  told_load_ = true;
  tell(Event::kBusy, nullptr, load_text(load) + "; timing takes longer");
}

BenchParts Loop::bench_parts() const {
  BenchParts bench;
  bench.task = &task_;
  bench.settings = &settings_;
  bench.store = parts_.store;
  bench.station = parts_.station;
  bench.maker = parts_.maker;
  bench.record = parts_.record;
  bench.machine = machine();
  bench.asked_elsewhere = parts_.only_replies && !row_.exhaustive;
  bench.stop = stop_requested;
  bench.elapsed_s = [this] { return elapsed_s(); };
  return bench;
}

// Rebuilds ledger and search from the store.
Result<void> Loop::restore() {
  before_s_ = parts_.store->run_seconds();
  KP_ASSIGN(waiting_, bench_.restore());
  KP_ASSIGN(auto closed, closed_lines(*parts_.store, settings_));
  planted_.expect(std::move(closed));
  for (const KnownPtr& known : ledger_.history()) {
    planted_.place(known->candidate.origin.parent, known->id, node_result(known->id),
                   source_of(*known, settings_));
  }
  return {};
}

Result<void> Loop::first(const Candidate& start) {
  std::vector<Candidate> all = {start};
  all.insert(all.end(), parts_.seeds.begin(), parts_.seeds.end());
  KP_ASSIGN(auto ids, parts_.store->add(all));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (ids[i] == 0) continue;  // duplicate of an earlier one
    StoredCandidate root;
    root.known.id = ids[i];
    root.known.candidate = std::move(all[i]);
    waiting_.push_back(std::move(root));
  }
  return {};
}

// Processes a result in its turn: stores and reports it and learns from it. False when there is no
// result because the run was ended meanwhile.
Result<bool> Loop::commit(Pipeline::Done done) {
  const std::int64_t under = done.known.candidate.origin.parent;
  const int revisions = bench_.revisions();
  KP_ASSIGN(auto verdict, bench_.finish(std::move(done.known), std::move(done.measured)));
  if (bench_.revisions() != revisions) {
    planted_.replant([this](std::int64_t id) { return node_result(id); });
  }
  Round& round = rounds_.front();
  --round.left;
  if (!verdict) return false;
  if (!verdict->note.empty()) tell(Event::kNote, nullptr, verdict->note);
  const Known& stored = *verdict->known;
  const std::string detail = outcome_summary(stored.evaluation.outcome);
  tell(Event::kEvaluated, &stored, detail);
  if (verdict->better) tell(Event::kBest, &stored, detail);
  tell_load(stored.evaluation);
  ++evaluated_now_;
  if (parts_.own_ms != nullptr) {
    parts_.own_ms->push_back(1000 * (own_s() - own_marked_));
    own_marked_ = own_s();
  }
  // A reply to an older request belongs under that request's parent.
  const NodeResult node = node_result(stored.id);
  const std::string source = source_of(stored, settings_);
  if (round.started && under == round.parent) {
    planted_.finalize(under, stored.id, node, source);
    round.started = false;
  } else {
    planted_.place(under, stored.id, node, source);
  }
  return true;
}

PipelineParts Loop::pipeline_parts() {
  PipelineParts parts;
  parts.task = &task_;
  parts.settings = &settings_;
  parts.stations = {parts_.station};
  parts.stations.insert(parts.stations.end(), parts_.others.begin(), parts_.others.end());
  parts.ready = parts_.ready;
  parts.bench = &bench_;
  parts.mailbox = parts_.mailbox;
  parts.may_begin = [this](int under_way) {
    // The start is always measured.
    return ledger_.evaluations() + under_way == 0 ? !stop_requested() : !stop_reason(under_way);
  };
  parts.note = [this](const std::string& text) { tell(Event::kNote, nullptr, text); };
  return parts;
}

// Limit of open rounds. One per GPU; a sweep learns nothing from results and needs the next
// settings before the last are measured; slow writers write one round while the previous one is
// measured.
std::size_t Loop::most_rounds() const {
  const std::size_t gpus = 1 + parts_.others.size();
  if (row_.exhaustive) return settings_.target == TargetKind::kCuda ? 2 : 1;
  return row_.slow ? std::min<std::size_t>(gpus, 2) : gpus;
}

// The search's choice; for the last evaluations the best, which they could still improve.
std::optional<Turn> Loop::next_turn(int under_way) {
  const KnownPtr best = ledger_.best();
  const int left = settings_.max_evaluations - ledger_.evaluations() - under_way;
  const double last = std::max(1.0, planted_.search().endgame() * settings_.max_evaluations);
  const bool ends = row_.writes_sources && settings_.max_evaluations > 0 && !parts_.only_replies &&
                    planted_.search().endgame() > 0 && left <= last;
  if (ends && best != nullptr && planted_.may_start_on(best->id)) {
    return planted_.start_on(best->id);
  }
  return planted_.start();
}

// Requests candidates while fewer rounds are open than allowed. Every round is opened after the
// same results, however long they took.
Result<void> Loop::open_rounds() {
  while (rounds_.size() < most_rounds() && (rounds_.empty() || rounds_.back().written)) {
    int under_way = 0;
    for (const Round& round : rounds_) under_way += round.left;
    if (stop_reason(under_way) || parts_.proposer->finished()) return {};
    auto turn = next_turn(under_way);
    const bool started = turn.has_value();
    if (!started && parts_.only_replies) turn = Turn{ledger_.start()->id};
    if (!turn) return {};
    KP_TRY(ask(*turn, started));
  }
  return {};
}

// A writer of sources reads its parent's diagnosis, which should rest on all that can be observed.
Result<void> Loop::look_closer(std::int64_t parent) {
  if (!row_.writes_sources || settings_.feedback == Feedback::kNone) return {};
  Station* station = pipeline_->free_station();
  if (station == nullptr) return {};
  KP_ASSIGN(const bool changed, bench_.profile(parent, station));
  if (changed) planted_.replant([this](std::int64_t id) { return node_result(id); });
  return {};
}

Result<void> Loop::ask(const Turn& turn, bool started) {
  KP_TRY(look_closer(turn.parent));
  KP_ASSIGN(auto asking, asking_.request(turn, pipeline_->pending()));
  rounds_.push_back({turn.parent, started, false, 0, 0});
  auto write = [this, request = std::move(asking)] {
    return parts_.proposer->propose(request, [this](WriterEvent event) {
      parts_.mailbox->call([&] { hear(std::move(event)); });
    });
  };
  if (row_.slow) {
    if (writer_.joinable()) writer_.join();
    writer_ = std::thread([this, write = std::move(write)] {
      const Result<void> written = write();
      parts_.mailbox->post([this, written] { end_with(end_writing(written)); });
    });
    return {};
  }
  end_with(end_writing(write()));
  if (error_) return tl::unexpected<Error>(std::move(*error_));
  return {};
}

// Ends the run if there is an error: writers then stop, and nothing more of theirs is taken.
void Loop::end_with(Result<void> ended) {
  if (ended || error_) return;
  error_ = std::move(ended.error());
  *parts_.over = true;
}

// Stops the writer thread.
void Loop::dismiss_writer() {
  if (!writer_.joinable()) return;
  *parts_.over = true;
  bench_.outside([&] {
    while (!rounds_.empty() && !rounds_.back().written) parts_.mailbox->run_next();
    writer_.join();
    return true;
  });
}

// Something that the writer of the last round gives.
void Loop::hear(WriterEvent event) {
  if (error_) return;
  end_with(std::visit([this](auto& each) { return take(std::move(each)); }, event));
}

Result<void> Loop::take(Proposal proposal) {
  KP_ASSIGN(const auto id, parts_.store->add_proposal(proposal));
  if (id == 0) return {};  // already known
  pipeline_->put({id, std::move(proposal.candidate), {}, {}});
  Round& round = rounds_.back();
  ++round.taken;
  ++round.left;
  return {};
}

// The writer of the last round has ended.
Result<void> Loop::end_writing(const Result<void>& written) {
  const Round round = rounds_.back();
  rounds_.back().written = true;
  KP_TRY(written);
  if (round.left > 0) return {};
  rounds_.pop_back();  // all were measured while the last was written, or there were none
  if (!round.started) return {};
  planted_.cancel(round.parent);
  return round.taken > 0 ? Result<void>() : close(round.parent);
}

// The proposer has nothing more for this parent, now or after a resume. One that was stopped, or
// that has ended altogether, may have more then.
Result<void> Loop::close(std::int64_t parent) {
  if (stop_requested() || *parts_.over || parts_.proposer->finished()) return {};
  KP_TRY(parts_.store->close_line({parent, ledger_.evaluations(), settings_.proposer}));
  planted_.close(parent);
  return {};
}

// Returns why the search ended.
Result<std::string> Loop::search_until_stopped() {
  pipeline_.emplace(pipeline_parts());
  if (!waiting_.empty()) {
    const int waiting = static_cast<int>(waiting_.size());
    rounds_.push_back({0, false, true, waiting, waiting});
    for (StoredCandidate& each : waiting_) pipeline_->put(std::move(each.known));
  }
  for (;;) {
    if (rounds_.empty() || rounds_.front().parent != 0) KP_TRY(open_rounds());
    std::optional<Pipeline::Done> done;
    KP_ASSIGN(auto state, bench_.outside([&] { return pipeline_->next(&done); }));
    if (state == Pipeline::State::kDone) {
      KP_ASSIGN(auto counted, commit(std::move(*done)));
      if (!counted && !stop_requested()) return std::string(kStoppedByRequest);
      close_round();
      continue;
    }
    const bool writing = !rounds_.empty() && !rounds_.back().written;
    // Candidates still in writing could no longer be measured.
    if (state == Pipeline::State::kIdle && writing) {
      if (auto reason = stop_reason()) return *reason;
    }
    if (state == Pipeline::State::kWaiting || writing) {
      bench_.outside([&] { return parts_.mailbox->run_next(), true; });
      if (error_) return tl::unexpected<Error>(std::move(*error_));
      continue;
    }
    if (auto reason = stop_reason()) return *reason;
    if (auto reason = parts_.proposer->finished()) return *reason;
    if (rounds_.empty()) return why_exhausted(standing_of(ledger_, *bench_.machine()), row_);
  }
}

// Closes the first round once it has all its results.
void Loop::close_round() {
  Round& round = rounds_.front();
  if (!round.written || round.left > 0) return;
  if (round.started) planted_.cancel(round.parent);
  rounds_.pop_front();
}

RunResult Loop::result(const std::string& stopped_by) const {
  RunResult result = unconfirmed_result(ledger_);
  result.stopped_by = stopped_by;
  result.own_ms_per_evaluation = evaluated_now_ == 0 ? 0 : 1000 * own_s() / evaluated_now_;
  result.gpu_use = pipeline_->use();
  return result;
}

Result<RunResult> Loop::run() {
  started_ = real_clock().now_s();
  KP_TRY(restore());
  if (ledger_.evaluations() == 0 && waiting_.empty()) {
    KP_ASSIGN(auto start, start_candidate(task_, settings_.target));
    KP_TRY(first(start));
  }
  tell(Event::kPrepared, nullptr,
       parts_.station->machine().name + "; " + parts_.station->compiler());
  // Time spent so far is startup cost, not part of an evaluation.
  startup_s_ += own_s();
  own_marked_ = own_s();
  auto stopped_by = search_until_stopped();
  dismiss_writer();
  if (!stopped_by) return tl::unexpected<Error>(std::move(stopped_by.error()));
  // The first of several stations may have been given up.
  Station* alive = pipeline_->free_station();
  if (*stopped_by != kStoppedByRequest && alive != nullptr) {
    KP_TRY(bench_.profile_leaders(alive));
  }
  RunResult found = result(*stopped_by);
  tell(Event::kStopped, ledger_.best().get(), *stopped_by);
  judge(&found);
  // A start with no other candidate needs no confirmation; a resume asks the writers again.
  const bool start_alone = found.end == RunEnd::kNothing && ledger_.evaluations() == 1;
  const bool asked = parts_.confirm && !start_alone && found.end != RunEnd::kInterrupted;
  if (found.best == 0 || !asked) return found;
  KP_ASSIGN(const auto before, parts_.store->confirmation());
  // Repeating it would be another draw.
  if (before && evaluated_now_ == 0 && take_confirmation(ledger_, *before, &found)) {
    judge(&found);
    return found;
  }
  if (alive != nullptr) bench_.set_station(alive);
  (alive != nullptr ? alive : parts_.station)->drop_builds();
  confirmed_ = &found;
  KP_TRY(bench_.confirm([this](Event event, const Known& known,
                               const std::string& detail) { tell(event, &known, detail); },
                        &found));
  confirmed_anew_ = !before && found.best != 0 && found.stopped_by != kStoppedByRequest;
  judge(&found);
  return found;
}

Result<std::vector<std::string>> Loop::write_requests(const std::string& folder, int count) {
  KP_TRY(restore());
  return asking_.write_requests(folder, count);
}

}  // namespace

Result<std::vector<std::string>> write_requests(const LoopParts& parts, const std::string& folder,
                                                int count) {
  return Loop(parts).write_requests(folder, count);
}

Result<int> write_kernels(const LoopParts& parts, int count) {
  return Loop(parts).write_kernels(count);
}

Result<RunResult> run_loop(const LoopParts& parts) { return Loop(parts).run(); }

}  // namespace kernelpro
