// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/host_side.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "core/task/key.h"

namespace kernelpro {

namespace {

constexpr int kPings = 12;
constexpr double kPingTimeout = 60;
constexpr double kJudgeMore = 30;  // seconds: what the judge may take beside the call
// Whatever the overhead: so much of a turn is the call's.
constexpr double kLeastShare = 0.02;
// Of a small kernel, over its usual time: another process has the GPU.
constexpr double kBusyFactor = 4, kBusySlackUs = 100;
constexpr double kQuietSeconds = 1;  // to wait for the end of that work

// A message starts the process again; at the end of the scope it is stopped.
class Awake {
 public:
  explicit Awake(CudaLink* link) : link_(link) {}
  ~Awake() { link_->stop(); }
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;

 private:
  CudaLink* link_;
};

struct Turn {
  Reply judged;
  Answer worker;
};

// One turn: the worker's command, with its number, and the judge's beside it.
Result<Turn> take_turn(CudaLink& judge, CudaWorker& worker, const CudaCase& state, Json command,
                       int set, bool timed, double timeout_s) {
  HostSide& host = *worker.host;
  const std::uint64_t number = ++host.turns;
  command["turn"] = number;
  worker.link.post(command);
  Json asked = about(state, "turn", set);
  asked["stage"] = host.stage;
  asked["turn"] = number;
  asked["timed"] = timed;
  asked["timeout"] = timeout_s + kJudgeMore;
  judge.post(asked);
  Answer answer = worker.link.settle(timeout_s);
  host.gate.give(Sign::kOver, number);
  KP_ASSIGN(Reply judged, trusted(judge.settle(kJudgeTimeout), "the judge"));
  return Turn{std::move(judged), std::move(answer)};
}

// The time of a call in a turn of `us`.
double call_us(const HostSide& host, const CudaCase& state, double us, double revealing_us) {
  const auto known = host.overheads.find(&state);
  if (known == host.overheads.end()) return us;
  // Revealing that took less than usual takes less off.
  const HostSide::Overhead& overhead = known->second;
  const double off = std::min(overhead.revealing_us, revealing_us) + overhead.rest_us;
  return std::max(us - off, kLeastShare * us);
}

}  // namespace

Result<void> open_stage(CudaLink& judge, CudaCase& state, int stage) {
  const auto at = static_cast<std::size_t>(stage);
  if (state.stages.size() <= at) state.stages.resize(at + 1);
  auto& memory = state.stages[at];
  if (!memory.empty()) return {};
  const std::size_t count = state.tensors.size();
  for (std::size_t first = 0; first < count; first += kFdsPerFrame) {
    std::vector<int> slots;
    for (std::size_t i = first; i < std::min(count, first + kFdsPerFrame); ++i) {
      slots.push_back(static_cast<int>(i));
    }
    Json message = about(state, "stage", 0);
    message["stage"] = stage;
    message["slots"] = slots;
    Result<Reply> shared = trusted(judge.ask(message, kJudgeTimeout), "the judge");
    if (!shared) {
      memory.clear();
      return tl::unexpected<Error>(shared.error());
    }
    KP_ASSERT(shared->fds.size() == slots.size());
    for (std::size_t k = 0; k < slots.size(); ++k) {
      memory.emplace_back(slots[k], std::move(shared->fds[k]));
    }
  }
  return {};
}

Result<void> post_stage(CudaWorker& worker, const Task& task, const std::vector<CudaCase>& cases,
                        int stage) {
  worker.host = std::make_shared<HostSide>();
  worker.host->stage = stage;
  KP_ASSIGN(worker.host->gate, Gate::make());
  worker.link.post({{"do", "gate"}}, {worker.host->gate.fd()});
  Json all = Json::array();
  const std::uint64_t place = fresh_secret();
  worker.link.set_place(place);
  for (const CudaCase& state : cases) all.push_back(case_json(task, state, place));
  worker.link.post({{"do", "open"}, {"cases", all}});
  for (const CudaCase& state : cases) {
    if (state.stages.size() <= static_cast<std::size_t>(stage)) continue;
    const auto& memory = state.stages[static_cast<std::size_t>(stage)];
    for (std::size_t first = 0; first < memory.size(); first += kFdsPerFrame) {
      std::vector<int> slots, fds;
      for (std::size_t i = first; i < std::min(memory.size(), first + kFdsPerFrame); ++i) {
        slots.push_back(memory[i].first);
        fds.push_back(memory[i].second.get());
      }
      worker.link.post({{"do", "memory"}, {"case", state.c->name}, {"slots", slots}}, fds);
    }
  }
  return {};
}

Result<void> open_gate(CudaLink& judge, const CudaWorker& worker) {
  const HostSide& host = *worker.host;
  KP_TRY(
      trusted(judge.ask({{"do", "gate"}, {"stage", host.stage}}, kJudgeTimeout, {host.gate.fd()}),
              "the judge"));
  return {};
}

Result<std::optional<Outcome>> measure_overhead(CudaLink& judge, CudaWorker& worker,
                                                const CudaCase& state) {
  KP_ASSIGN(const Reply launch, trusted(judge.ask({{"do", "launch"}}, kJudgeTimeout), "the judge"));
  const double launch_us = JsonReader(launch.json).real("us");
  const Awake awake(&worker.link);
  HostSide::Overhead least;
  bool any = false;
  for (int k = 0; k < kPings; ++k) {
    KP_ASSIGN(const Turn turn,
              take_turn(judge, worker, state, {{"do", "ping"}, {"case", state.c->name}}, 0, true,
                        kPingTimeout));
    const auto* reply = std::get_if<Reply>(&turn.worker);
    if (reply == nullptr) {
      return std::optional<Outcome>(
          worker_outcome(turn.worker, "timing case " + state.c->name, state.c->name));
    }
    const JsonReader r(turn.judged.json);
    if (!r.flag("answered")) continue;
    const double revealing_us = r.real("revealing_us");
    // What the process did: a small piece of work on the GPU, and then as much again, of which it
    // knows the time.
    const double own_us = 2 * JsonReader(reply->json).real("us") + launch_us;
    const double rest_us = std::max(0.0, r.real("us") - revealing_us - own_us);
    least.revealing_us = any ? std::min(least.revealing_us, revealing_us) : revealing_us;
    least.rest_us = any ? std::min(least.rest_us, rest_us) : rest_us;
    any = true;
  }
  worker.host->overheads[&state] = least;
  worker.host->launch_us = launch_us;
  return std::optional<Outcome>();
}

Result<std::variant<std::vector<double>, Outcome>> take_turns(CudaLink& judge, CudaWorker& worker,
                                                              const CudaCase& state,
                                                              const std::string& subject,
                                                              const std::vector<int>& sets,
                                                              const TurnPlan& plan) {
  using Times = std::variant<std::vector<double>, Outcome>;
  const std::string doing = plan.doing + " case " + state.c->name;
  const Awake awake(&worker.link);
  std::vector<double> times;
  for (const int set : sets) {
    KP_ASSIGN(const Turn turn,
              take_turn(judge, worker, state,
                        {{"do", "call"}, {"case", state.c->name}, {"subject", subject}}, set,
                        plan.timed, plan.timeout_s));
    if (!std::holds_alternative<Reply>(turn.worker)) {
      return Times(worker_outcome(turn.worker, doing, state.c->name));
    }
    const JsonReader r(turn.judged.json);
    if (!r.flag("answered")) {
      return Times(
          Rejected{"timing", "its process answered without the sign that stops the clock"});
    }
    if (auto outcome = intrusion_outcome(state, r.array("intrusions"))) {
      return Times(std::move(*outcome));
    }
    times.push_back(call_us(*worker.host, state, r.real("us"), r.real("revealing_us")));
  }
  return Times(std::move(times));
}

std::string turn_method(const CudaWorker& worker, const CudaCase& state) {
  const auto known = worker.host->overheads.find(&state);
  if (known == worker.host->overheads.end()) return "from outside, L2 cold";
  const HostSide::Overhead& overhead = known->second;
  return "from outside, L2 cold, less " + human_us(overhead.revealing_us + overhead.rest_us) +
         " of overhead";
}

Result<bool> await_quiet(CudaLink& judge, double usual_us) {
  const double end = real_clock().now_s() + kQuietSeconds;
  for (;;) {
    KP_ASSIGN(const Reply reply,
              trusted(judge.ask({{"do", "launch"}}, kJudgeTimeout), "the judge"));
    const double us = JsonReader(reply.json).real("us");
    if (usual_us == 0 || us <= kBusyFactor * usual_us + kBusySlackUs) return true;
    if (real_clock().now_s() > end) return false;
  }
}

}  // namespace kernelpro
