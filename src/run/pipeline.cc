// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kMostGpusLost = 2;

bool is_built(const BuildPool::Future& built) {
  return built.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

Pipeline::Pipeline(PipelineParts parts)
    : parts_(std::move(parts)),
      pool_(*parts_.task, parts_.settings->target, *parts_.targets.front()->compiler, 0,
            build_hooks()) {
  for (Target* target : parts_.targets) {
    auto station = std::make_unique<Station>();
    station->target = target;
    const std::vector<std::string>& gpus = parts_.settings->gpus;
    if (stations_.size() < gpus.size()) station->name = "GPU " + gpus[stations_.size()];
    station->ready = stations_.empty();
    stations_.push_back(std::move(station));
  }
  for (std::size_t i = 1; i < stations_.size(); ++i) {
    make_ready(stations_[i].get(), parts_.ready[i - 1]);
  }
}

BuildHooks Pipeline::build_hooks() {
  BuildHooks hooks;
  hooks.afterwards = disassemble_ahead(*parts_.task, parts_.settings->target);
  // With one target, nothing waits for messages.
  if (parts_.targets.size() > 1) hooks.built = [this] { parts_.mailbox->post([] {}); };
  return hooks;
}

Pipeline::~Pipeline() {
  for (const auto& station : stations_) {
    if (station->thread.joinable()) station->thread.join();
  }
}

void Pipeline::make_ready(Station* station, const Readiness& readiness) {
  station->thread = std::thread([this, station, readiness] {
    const Result<void> ready = readiness.get();
    parts_.mailbox->post([this, station, ready] {
      tally();
      station->ready = true;
      if (!ready) give_up(station, nullptr, ready.error());
    });
  });
}

void Pipeline::put(Known known) {
  tally(!waited_);
  auto job = std::make_unique<Job>();
  job->built = pool_.put(known.candidate);
  job->known = std::move(known);
  jobs_.push_back(std::move(job));
}

std::vector<const Candidate*> Pipeline::pending() const {
  std::vector<const Candidate*> all;
  for (const auto& job : jobs_) all.push_back(&job->known.candidate);
  return all;
}

Pipeline::Station* Pipeline::free_station() {
  for (const auto& station : stations_) {
    if (station->ready && !station->busy) return station.get();
  }
  return nullptr;
}

// Gives up a GPU that failed; another one, if there is one, takes over its job.
void Pipeline::give_up(Station* station, Job* job, Error error) {
  if (station->thread.joinable()) station->thread.join();
  if (job != nullptr) {
    job->begun = false;
    --under_way_;
    parts_.bench->forget(job->known.id);
  }
  // A candidate that takes down one GPU after another ends the run before it takes them all.
  if (one() || (job != nullptr && ++job->gpus_lost >= kMostGpusLost)) {
    error_ = std::move(error);
    return;
  }
  if (parts_.note) {
    const std::size_t left = stations_.size() - 1;
    parts_.note(station->name + " is given up, " + std::to_string(left) +
                (left == 1 ? " is" : " are") + " left: " + error.message);
  }
  const auto is_it = [station](const auto& each) { return each.get() == station; };
  stations_.erase(std::find_if(stations_.begin(), stations_.end(), is_it));
}

void Pipeline::carry_out_on(Station* station, Job* job, MeasureOrder order) {
  tally();
  station->busy = true;
  const auto work = [this, station, order = std::move(order)] {
    return carry_out(*parts_.task, *parts_.settings, station->target, order, {});
  };
  const auto take = [this, station, job](Result<Measured> measured) {
    tally();
    station->busy = false;
    if (measured) {
      job->measured = std::move(*measured);
    } else {
      give_up(station, job, std::move(measured.error()));
    }
  };
  if (one() && !station->thread.joinable()) return take(work());
  if (station->thread.joinable()) station->thread.join();
  station->thread = std::thread([this, work, take] {
    auto measured = std::make_shared<Result<Measured>>(work());
    parts_.mailbox->post([take, measured] { take(std::move(*measured)); });
  });
}

// Begins the first unstarted job; false when it has to wait.
Result<bool> Pipeline::begin_one(Station* station) {
  const auto next =
      std::find_if(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job->begun; });
  if (next == jobs_.end()) return false;
  Job* job = next->get();
  // A job that lost its GPU has already begun: others wait behind it.
  if (job->gpus_lost == 0 && !parts_.may_begin(under_way_)) return false;
  const bool cpu = parts_.settings->target == TargetKind::kCpu;
  if (cpu) {
    pool_.wait_until_idle();  // compilers and kernels would compete for the cores
  } else if (one()) {
    job->built.wait();
  } else if (!is_built(job->built)) {
    return false;
  }
  auto order = parts_.bench->begin(job->known, job->built.get());
  if (!order) return tl::unexpected<Error>(std::move(order.error()));
  if (!*order) return false;
  tally();  // the wait up to now was for its build
  job->begun = true;
  ++under_way_;
  carry_out_on(station, job, std::move(**order));
  return true;
}

bool Pipeline::building() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& job) { return !job->begun && !is_built(job->built); });
}

// Attributes the time since the last call to what the stations did; call it before their state
// changes.
void Pipeline::tally(bool deciding) {
  const double now = real_clock().now_s();
  const double passed = tallied_s_ > 0 ? now - tallied_s_ : 0;
  tallied_s_ = now;
  const bool queued =
      std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job->begun; });
  for (const auto& station : stations_) {
    double& share = station->busy     ? use_.measuring_s
                    : !station->ready ? use_.preparing_s
                    : deciding        ? use_.deciding_s
                    : queued          ? use_.building_s
                                      : use_.writing_s;
    share += passed;
  }
}

Result<Pipeline::State> Pipeline::next(std::optional<Done>* done) {
  tally(!waited_);
  auto state = next_state(done);
  tally();
  waited_ = state && *state != State::kDone;
  return state;
}

Result<Pipeline::State> Pipeline::next_state(std::optional<Done>* done) {
  for (;;) {
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    if (!jobs_.empty() && jobs_.front()->measured) {
      Job& front = *jobs_.front();
      done->emplace(Done{std::move(front.known), std::move(*front.measured)});
      jobs_.pop_front();
      --under_way_;
      return State::kDone;
    }
    Station* station = free_station();
    if (station != nullptr && !jobs_.empty()) {
      auto begun = begin_one(station);
      if (!begun) return tl::unexpected<Error>(std::move(begun.error()));
      if (*begun) continue;
    }
    const bool readying = std::any_of(stations_.begin(), stations_.end(),
                                      [](const auto& each) { return !each->ready; });
    const bool begins = building() || (readying && !jobs_.empty());
    const bool comes = under_way_ > 0 || (begins && parts_.may_begin(under_way_));
    return comes ? State::kWaiting : State::kIdle;
  }
}

}  // namespace kernelpro
