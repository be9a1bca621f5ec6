// SPDX-License-Identifier: Apache-2.0
#include "run/sitting.h"

#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "run/proposers.h"
#include "run/store/settings.h"
#include "run/store/tool_record.h"
#include "task/load/start.h"
#include "write/prompt/reply.h"

namespace kernelpro {

Sitting::Sitting(Task task, RunSettings settings, StationMaker maker, StationMaker first)
    : task_(std::move(task)),
      settings_(std::move(settings)),
      first_(std::move(first)),
      maker_(std::move(maker)),
      opened_(real_clock().now_s()) {}

Result<std::unique_ptr<Sitting>> Sitting::open(Task task, const RunSettings& settings,
                                               StationMaker maker, const Phase& phase,
                                               StationMaker first) {
  KP_TRY(Store::check_new(settings.directory));
  KP_TRY(start_candidate(task, settings.target));
  ToolRecord record;
  if (!settings.record.empty()) {
    KP_ASSIGN(record, read_record(settings.record, false));
  }
  std::unique_ptr<Sitting> sitting(
      new Sitting(std::move(task), settings, std::move(maker), std::move(first)));
  KP_TRY(sitting->warm_up(phase));
  const RunHeader header{
      sitting->task_, settings.target,   sitting->station_->machine(), settings_to_json(settings),
      utc_now(),      KERNELPRO_VERSION, record_to_json(record),       ""};
  KP_ASSIGN(sitting->store_, Store::open(settings.directory, Store::Mode::kCreate, &header));
  Sitting* self = sitting.get();
  BenchParts parts;
  parts.task = &self->task_;
  parts.settings = &self->settings_;
  parts.store = self->store_.get();
  parts.station = self->station_.get();
  parts.maker = &self->maker_;
  parts.record = std::move(record);
  parts.machine = &self->station_->machine();
  parts.stop = cancel_requested;
  parts.elapsed_s = [self] { return real_clock().now_s() - self->opened_; };
  parts.phase = [self](const std::string& text) {
    if (self->phase_) self->phase_(text);
  };
  sitting->bench_ = std::make_unique<Bench>(std::move(parts));
  return sitting;
}

// A station whose preparation was cut short is discarded.
Result<void> Sitting::warm_up(const Phase& phase) {
  if (station_ != nullptr) return {};
  if (phase) phase("preparing the " + std::string(target_name(settings_.target)) + " target");
  StationSettings one = settings_;
  one.gpus.clear();
  const StationMaker make = first_ ? std::exchange(first_, nullptr) : maker_;
  KP_ASSIGN(auto opened, std::move(make(task_, one).front()));
  KP_TRY(opened->prepare());
  if (cancel_requested()) {
    return fail(ErrorKind::kEnvironment, "the preparation was cancelled", "call again");
  }
  station_ = std::move(opened);
  if (machine_.empty()) machine_ = station_->machine().name;  // from here on read by other threads
  if (bench_) bench_->set_station(station_.get());
  return {};
}

void Sitting::cool() {
  if (bench_) bench_->set_station(nullptr);
  station_.reset();
}

template <class Work>
auto Sitting::with_station(const Phase& phase, Work work) -> decltype(work()) {
  auto ready = warm_up(phase);
  if (!ready && cancel_requested()) return std::nullopt;
  if (!ready) return tl::unexpected<Error>(std::move(ready.error()));
  phase_ = phase;
  auto value = work();
  phase_ = nullptr;
  // Processes of the cuda target that serve several evaluations may have died with this one.
  const bool broken = !value || (cancel_requested() && settings_.target == TargetKind::kCuda);
  if (broken) cool();
  if (cancel_requested()) return std::nullopt;
  return value;
}

Result<std::optional<Sitting::Evaluated>> Sitting::put(Candidate candidate) {
  const std::string hash = candidate.content_hash();
  Known known;
  if (const auto waits = waiting_.find(hash); waits != waiting_.end()) {
    known = waits->second;
  } else {
    KP_ASSIGN(auto ids, store_->add({candidate}));
    if (ids.front() == 0) {
      for (const RowPtr& row : rows()) {
        if (row->known.candidate.content_hash() == hash) return Evaluated{row, true, "", 0};
      }
      KP_ASSERT(false);
    }
    known.id = ids.front();
    known.candidate = std::move(candidate);
    waiting_[hash] = known;
  }
  const double before = bench_->outside_s();
  KP_ASSIGN(auto verdict, bench_->evaluate(std::move(known)));
  if (!verdict) return std::nullopt;
  waiting_.erase(hash);
  const Ledger& ledger = bench_->ledger();
  auto row = std::make_shared<Row>();
  row->known = *verdict->known;
  row->better = verdict->better;
  const double own = ledger.comparable_us(row->known.id);
  const KnownPtr best = ledger.best(), baseline = ledger.baseline();
  if (own > 0) row->speedup = ledger.comparable_us(baseline->id) / own;
  row->start_failed = baseline != nullptr && baseline->id != ledger.start()->id;
  const std::lock_guard<std::mutex> lock(mutex_);
  diagnose_anew();
  rows_.push_back(row);
  best_ = best != nullptr ? best->id : 0;
  const Correct* correct = row->known.evaluation.correct();
  const double gain = correct != nullptr && correct->versus ? correct->versus->low : 1;
  if (row->better && gain > preferred_gain_) preferred_ = 0;
  baseline_ = baseline != nullptr ? baseline->id : 0;
  return Evaluated{row, false, verdict->note, 1000 * (bench_->outside_s() - before)};
}

// Rows hold diagnoses, which change with the machine's ceilings. REQUIRES: mutex_ is held.
void Sitting::diagnose_anew() {
  if (std::exchange(revisions_, bench_->revisions()) == bench_->revisions()) return;
  for (RowPtr& row : rows_) {
    auto anew = std::make_shared<Row>(*row);
    anew->known.diagnosis = bench_->ledger().find(row->known.id)->diagnosis;
    row = std::move(anew);
  }
}

// Evaluates the start, which the others are compared with.
Result<std::optional<Sitting::Evaluated>> Sitting::begin() {
  KP_ASSIGN(auto start, start_candidate(task_, settings_.target));
  if (phase_) phase_("the task's start first");
  return put(std::move(start));
}

Result<std::optional<Sitting::Evaluated>> Sitting::evaluate(const Given& given,
                                                            const Phase& phase) {
  KP_ASSIGN(auto candidate, candidate_of(task_, given.kernel));
  if (given.parent != 0 && row(given.parent) == nullptr) {
    return fail(ErrorKind::kBadInput,
                "this run has no evaluated candidate " + std::to_string(given.parent),
                "leave the parent out for the best so far; `history` lists them all");
  }
  using Answer = Result<std::optional<Evaluated>>;
  auto work = [&]() -> Answer {
    if (rows().empty()) {
      Answer begun = begin();
      if (!begun || !*begun) return begun;
    }
    const RowPtr below = given.parent != 0 ? row(given.parent) : best();
    candidate.origin.proposer = kMcpName;
    candidate.origin.parent = below != nullptr ? below->known.id : rows().front()->known.id;
    candidate.origin.idea = given.idea;
    candidate.origin.answers = given.answers;
    if (given.answers.empty() && below != nullptr) {
      candidate.origin.answers =
          named_answer(candidate.source, below->known.diagnosis).value_or(FindingRef());
    }
    return put(std::move(candidate));
  };
  return with_station(phase, work);
}

Result<std::optional<Evaluation>> Sitting::compare(const Row& a, const Row& b, const Phase& phase) {
  const auto work = [&] { return bench_->duel(a.known.candidate, b.known.candidate); };
  Result<std::optional<Evaluation>> duel = with_station(phase, work);
  const Correct* correct = duel && *duel ? (*duel)->correct() : nullptr;
  if (correct == nullptr || !correct->versus) return duel;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto prefer = [&](const Row& winner, const Row& loser, double gain) {
    if (loser.known.id != (preferred_ != 0 ? preferred_ : best_) || gain <= 1) return;
    preferred_gain_ = (preferred_ != 0 ? preferred_gain_ : 1) * gain;
    preferred_ = winner.known.id;
  };
  prefer(a, b, correct->versus->low);
  prefer(b, a, 1 / correct->versus->high);
  return duel;
}

Result<std::optional<RunResult>> Sitting::finish(const Phase& phase) {
  if (bench_->ledger().best() == nullptr) {
    return fail(ErrorKind::kBadInput, "nothing of this run is correct yet",
                "evaluate a correct kernel first; `diagnose` tells why one is not");
  }
  auto work = [&]() -> Result<std::optional<RunResult>> {
    RunResult result;
    result.stopped_by = "the client finished the run";
    result.evaluations = bench_->ledger().evaluations();
    const auto tell = [this](Event event, const Known& known, const std::string&) {
      if (phase_)
        phase_("candidate " + std::to_string(known.id) + " " + std::string(event_name(event)));
    };
    KP_TRY(bench_->confirm(tell, &result, preferred_));
    return std::optional<RunResult>(std::move(result));
  };
  return with_station(phase, work);
}

std::vector<Sitting::RowPtr> Sitting::rows() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rows_;
}

Sitting::RowPtr Sitting::row(std::int64_t id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const RowPtr& row : rows_) {
    if (row->known.id == id) return row;
  }
  return nullptr;
}

Sitting::RowPtr Sitting::best() const {
  const std::int64_t id = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return preferred_ != 0 ? preferred_ : best_;
  }();
  return row(id);
}

Sitting::RowPtr Sitting::baseline() const {
  const std::int64_t id = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return baseline_;
  }();
  return row(id);
}

}  // namespace kernelpro
