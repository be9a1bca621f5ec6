// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kMostGpusLost = 2;

bool is_built(const Building& built) {
  return built.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

Pipeline::Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
  for (Station* station : parts_.stations) {
    auto place = std::make_unique<Place>();
    place->station = station;
    place->ready = places_.empty();
    places_.push_back(std::move(place));
  }
  for (std::size_t i = 1; i < places_.size(); ++i) {
    make_ready(places_[i].get(), parts_.ready[i - 1]);
  }
}

Pipeline::~Pipeline() {
  for (Station* station : parts_.stations) station->drop_builds();  // they post to the mailbox
  for (const auto& place : places_) {
    if (place->thread.joinable()) place->thread.join();
  }
}

void Pipeline::make_ready(Place* place, const Readiness& readiness) {
  place->thread = std::thread([this, place, readiness] {
    const Result<void> ready = readiness.get();
    parts_.mailbox->post([this, place, ready] {
      tally();
      place->ready = true;
      if (!ready) give_up(place, nullptr, ready.error());
    });
  });
}

void Pipeline::put(Known known) {
  tally(!waited_);
  auto job = std::make_unique<Job>();
  // With one station, nothing waits for messages.
  std::function<void()> done;
  if (parts_.stations.size() > 1) done = [mailbox = parts_.mailbox] { mailbox->post([] {}); };
  job->built = places_.front()->station->begin(known.candidate, std::move(done));
  job->known = std::move(known);
  jobs_.push_back(std::move(job));
}

std::vector<Candidate> Pipeline::pending() const {
  std::vector<Candidate> all;
  for (const auto& job : jobs_) all.push_back(job->known.candidate);
  return all;
}

Pipeline::Place* Pipeline::free_place() {
  for (const auto& place : places_) {
    if (place->ready && !place->busy) return place.get();
  }
  return nullptr;
}

Station* Pipeline::free_station() {
  Place* place = free_place();
  return place == nullptr ? nullptr : place->station;
}

// Gives up a GPU that failed; another one, if there is one, takes over its job.
void Pipeline::give_up(Place* place, Job* job, Error error) {
  if (place->thread.joinable()) place->thread.join();
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
    const std::size_t left = places_.size() - 1;
    parts_.note(place->station->name() + " is given up, " + std::to_string(left) +
                (left == 1 ? " is" : " are") + " left: " + error.message);
  }
  const auto is_it = [place](const auto& each) { return each.get() == place; };
  places_.erase(std::find_if(places_.begin(), places_.end(), is_it));
}

void Pipeline::measure_at(Place* place, Job* job, Order order) {
  tally();
  place->busy = true;
  const auto work = [place, order = std::move(order)] {
    return place->station->measure(order, {});
  };
  const auto take = [this, place, job](Result<Measured> measured) {
    tally();
    place->busy = false;
    if (measured) {
      job->measured = std::move(*measured);
    } else {
      give_up(place, job, std::move(measured.error()));
    }
  };
  if (one() && !place->thread.joinable()) return take(work());
  if (place->thread.joinable()) place->thread.join();
  place->thread = std::thread([this, work, take] {
    auto measured = std::make_shared<Result<Measured>>(work());
    parts_.mailbox->post([take, measured] { take(std::move(*measured)); });
  });
}

// Begins the first unstarted job; false when it has to wait.
Result<bool> Pipeline::begin_one(Place* place) {
  const auto next =
      std::find_if(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job->begun; });
  if (next == jobs_.end()) return false;
  Job* job = next->get();
  // A job that lost its GPU has already begun: others wait behind it.
  if (job->gpus_lost == 0 && !parts_.may_begin(under_way_)) return false;
  if (one()) {
    job->built.wait();
  } else if (!is_built(job->built)) {
    return false;
  }
  const Result<Built>& built = job->built.get();
  if (!built) return tl::unexpected<Error>(built.error());
  KP_ASSIGN(Bench::Begun begun, parts_.bench->begin(job->known, *built));
  if (std::holds_alternative<Bench::Busy>(begun)) return false;
  tally();  // the wait up to now was for its build
  job->begun = true;
  ++under_way_;
  if (auto* measured = std::get_if<Measured>(&begun)) {
    job->measured = std::move(*measured);
  } else {
    measure_at(place, job, std::move(std::get<Order>(begun)));
  }
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
  for (const auto& place : places_) {
    double& share = place->busy     ? use_.measuring_s
                    : !place->ready ? use_.preparing_s
                    : deciding      ? use_.deciding_s
                    : queued        ? use_.building_s
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
    Place* place = free_place();
    if (place != nullptr && !jobs_.empty()) {
      KP_ASSIGN(auto begun, begin_one(place));
      if (begun) continue;
    }
    const bool readying =
        std::any_of(places_.begin(), places_.end(), [](const auto& each) { return !each->ready; });
    const bool begins = building() || (readying && !jobs_.empty());
    const bool comes = under_way_ > 0 || (begins && parts_.may_begin(under_way_));
    return comes ? State::kWaiting : State::kIdle;
  }
}

}  // namespace kernelpro
