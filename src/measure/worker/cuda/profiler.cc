// SPDX-License-Identifier: Apache-2.0
// Role cuda-profiler: hardware counters of a plan's kernels, over the judge's buffers. A separate
// process: timed processes are never profiled. It launches the kernels one by one, so kernels that
// wait for each other hang here; the supervisor's time limit ends that.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "core/evidence/counters.h"
#include "measure/worker/cuda/plan_subjects.h"
#include "measure/worker/cuda/profiler_session.h"
#include "measure/worker/cuda/serve.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostLaunches = 12;  // to count per call; of more, the others are timed

constexpr int kAlways = 4;     // kernels of a call that are all counted, whatever it takes
constexpr double kBudget = 3;  // seconds that the passes over a call may take together

#if KERNELPRO_HAVE_CUPTI

// How many launches of a call with these times can be counted one after the other: each takes all
// passes, and each pass the whole call.
std::size_t affordable(const std::vector<double>& us, std::size_t passes) {
  const double call_s = 1e-6 * std::accumulate(us.begin(), us.end(), 0.0);
  const double all_s = call_s * static_cast<double>(std::max<std::size_t>(1, passes));
  if (!(all_s > 0)) return kMostLaunches;
  return static_cast<std::size_t>(
      std::clamp(kBudget / all_s, double{kAlways}, double{kMostLaunches}));
}

// Why there is no session, as the supervisor needs it: ask again later, or never.
RefusalKind without_session(const Error& error) {
  return error.cause == Cause::kInUse       ? RefusalKind::kBusy
         : error.cause == Cause::kForbidden ? RefusalKind::kForbidden
                                            : RefusalKind::kUnavailable;
}

class Profiler {
 public:
  Profiler(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
           TrustedKernels* kernels)
      : channel_(channel), plans_(cu, context, kernels) {}

  Result<void> start() { return plans_.start(); }

  void serve(WorkerCommand& command) {
    using Handler = Result<Json> (Profiler::*)(WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"hello", &Profiler::hello},     {"open", &Profiler::open}, {"memory", &Profiler::memory},
        {"prepare", &Profiler::prepare}, {"load", &Profiler::load}, {"profile", &Profiler::profile},
        {"release", &Profiler::release},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    unopened_ = false;
    Result<Json> answer = (this->*handler->second)(command);
    plans_.put_away();
    if (!answer) {
      const bool plan = answer.error().kind == ErrorKind::kBadInput;
      return channel_->answer_error(answer.error(), plan        ? RefusalKind::kPlan
                                                    : unopened_ ? without_session(answer.error())
                                                                : RefusalKind::kNone);
    }
    channel_->answer(std::move(*answer));
  }

 private:
  // Opens one unless it is open.
  Result<CounterSession*> session() {
    if (!session_) {
      unopened_ = true;
      KP_ASSIGN(CounterSession opened, CounterSession::open());
      unopened_ = false;
      session_.emplace(std::move(opened));
    }
    return &*session_;
  }

  Result<Json> hello(WorkerCommand&) {
    KP_ASSIGN(const CounterSession* session, this->session());
    return Json{{"chip", session->chip()}};
  }
  Result<Json> open(WorkerCommand& command) { return plans_.open(command); }
  Result<Json> memory(WorkerCommand& command) { return plans_.memory(command); }
  Result<Json> load(WorkerCommand& command) { return plans_.load(command); }
  Result<Json> release(WorkerCommand&) {
    session_.reset();
    return Json::object();
  }

  // The schedule for metrics by the registry's names.
  Result<const CounterSession::Schedule*> schedule_of(const WorkerCommand& command) {
    KP_ASSIGN(CounterSession * session, this->session());
    std::vector<std::string> names;
    for (const Json& metric : JsonReader(command.json).array("metrics")) {
      if (metric.is_string()) {
        names.push_back(counter_on(metric.get<std::string>(), session->chip()));
      }
    }
    return session->schedule(names);
  }

  // The first collection of a process costs much more than later ones: do one that does not matter.
  Result<Json> prepare(WorkerCommand& command) {
    const double start = real_clock().now_s();
    KP_ASSIGN(const auto schedule, schedule_of(command));
    const double scheduled = real_clock().now_s();
    KP_TRY(session_->warm_up(*schedule, [&] { return plans_.flush(); }));
    return Json{{"passes", schedule->config.passes},
                {"phases_ms",
                 {{"schedule", (scheduled - start) * 1e3},
                  {"first collection", (real_clock().now_s() - scheduled) * 1e3}}}};
  }

  using Step = CounterSession::Step;

  // `begin` and `end` enclose the node `only`, or all nodes (-1).
  Result<void> run_counted(PlanSubject* subject, const std::vector<int>& nodes, int only,
                           const Step& begin, const Step& end) {
    if (only < 0) {
      KP_TRY(begin());
      KP_TRY(plans_.run(subject, nodes));
      return end();
    }
    for (const int node : nodes) {
      if (node != only) {
        KP_TRY(plans_.run(subject, node));
        continue;
      }
      KP_TRY(plans_.wait());
      KP_TRY(begin());
      KP_TRY(plans_.run(subject, node));
      KP_TRY(plans_.wait());
      KP_TRY(end());
    }
    return plans_.wait();
  }

  Result<Json> profile(WorkerCommand& command) {
    KP_ASSIGN(PlanSubject * subject, plans_.of(command));
    KP_ASSIGN(const auto schedule, schedule_of(command));

    // One call first: it fills the buffers and does one-time work. Of a call with several launches,
    // another one tells which take the time. Then every pass runs all nodes, or the chosen ones of
    // many launches, over the results of that call.
    const LaunchPlan& plan = subject->plan;
    std::vector<int> nodes = plan_order(plan);
    const double start = real_clock().now_s();
    KP_TRY(plans_.renew(*subject));
    KP_TRY(plans_.run(subject, nodes));
    std::vector<double> us;
    if (plan.kernel_count() > kAlways) {
      KP_TRY(plans_.renew(*subject));
      KP_ASSIGN(us, plans_.node_times(subject));
    }
    const double warm_ms = (real_clock().now_s() - start) * 1e3;
    const std::vector<int> chosen =
        chosen_launches(plan, affordable(us, schedule->config.passes), us);
    const bool many = plan.kernel_count() > static_cast<int>(chosen.size());
    if (!many) us.clear();  // counters tell all times
    // Memory of the scratch serves one tensor after another: only a whole call leaves each kernel
    // what it needs.
    const bool whole = !many || plan.scratch_bytes > 0;
    if (!whole) {
      std::erase_if(nodes, [&](int i) {
        return subject->is_kernel(i) && std::find(chosen.begin(), chosen.end(), i) == chosen.end();
      });
    }
    const auto before = [&]() -> Result<void> {
      if (whole) KP_TRY(plans_.renew(*subject));
      return plans_.flush();
    };
    auto collected = session_->collect(
        *schedule, chosen.size(), before, [&](int only, const Step& begin, const Step& end) {
          const int node = only < 0 ? -1 : chosen[static_cast<std::size_t>(only)];
          return run_counted(subject, nodes, node, begin, end);
        });
    if (!collected) return tl::unexpected<Error>(collected.error());
    collected->phases_ms["first call"] = warm_ms;
    return answer(plan, chosen, us, *schedule, *collected);
  }

  // `us`: of each node, if there are launches that were not chosen; may be empty.
  Json answer(const LaunchPlan& plan, const std::vector<int>& chosen, const std::vector<double>& us,
              const CounterSession::Schedule& schedule,
              const CounterSession::Collected& collected) const {
    CounterAnswers answers;
    answers.source = "cupti";
    answers.chip = session_->chip();
    answers.passes = collected.passes;
    answers.phases_ms = collected.phases_ms;
    answers.left_out = plan.kernel_count() - static_cast<int>(chosen.size());
    std::vector<std::string> absent;
    for (const std::string& name : schedule.unknown) absent.push_back(counter_from(name));
    if (!absent.empty()) {
      answers.missing.push_back({Family::kCounters, session_->chip() + " has no such counter",
                                 "nothing to do: other counters describe this GPU",
                                 std::move(absent)});
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      LaunchCounters& launch = answers.launches.emplace_back();
      launch.node = chosen[i];
      launch.function = plan.nodes[static_cast<std::size_t>(chosen[i])].function;
      for (std::size_t k = 0; k < schedule.config.metrics.size(); ++k) {
        const double value = collected.values[i][k];
        if (std::isfinite(value)) launch.values[counter_from(schedule.config.metrics[k])] = value;
      }
    }
    add_timed_launches(plan, us, &answers.launches);
    return Json{{"answers", *parse_json(counter_answers_to_json(answers))}};
  }

  WorkerChannel* channel_;
  PlanSubjects plans_;
  std::optional<CounterSession> session_;  // holds the GPU's counters
  bool unopened_ = false;                  // this command failed to open one
};

#endif

}  // namespace

int cuda_profiler(int, char**) {
#if KERNELPRO_HAVE_CUPTI
  return serve_commands<Profiler>(RefusalKind::kUnavailable);
#else
  return refuse_commands(no_cupti(), RefusalKind::kUnavailable);
#endif
}

}  // namespace kernelpro

#endif
