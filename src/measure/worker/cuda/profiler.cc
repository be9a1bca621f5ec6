// SPDX-License-Identifier: Apache-2.0
// Role cuda-profiler: hardware counters of a plan's kernels, over the judge's buffers. A separate
// process: timed processes are never profiled. It launches the kernels one by one, so kernels that
// wait for each other hang here; the supervisor's time limit ends that.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "core/counters.h"
#include "core/protocol.h"
#include "measure/worker/cuda/cases.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/profiler_launches.h"
#include "measure/worker/cuda/profiler_session.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kFlushAtLeast = 128ull << 20;  // and twice L2
constexpr std::size_t kMostLaunches = 16;              // to profile per call
constexpr std::uint64_t kPoison = 0x6b70;

constexpr const char* kUnavailable = "unavailable";  // the rule: retrying is useless

#if KERNELPRO_HAVE_CUPTI

class Profiler {
 public:
  Profiler(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
           TrustedKernels* kernels, CounterSession* session)
      : channel_(channel),
        cu_(cu),
        context_(context),
        kernels_(kernels),
        session_(session),
        cases_(cu, context.device()) {}

  Result<void> start() {
    const int l2 = context_.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    flush_bytes_ = std::max<std::uint64_t>(kFlushAtLeast, 2ull * static_cast<std::uint64_t>(l2));
    static_cast<void>(cu_.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
    KP_ASSIGN(stream_, make_stream(cu_));
    KP_ASSIGN(flush_, allocate(cu_, flush_bytes_ + 256));
    KP_CUDA_TRY(cu_.MemsetD8Async(flush_.get(), 1, flush_bytes_ + 256, stream_.get()));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    return {};
  }

  void serve(WorkerCommand& command) {
    using Handler = Result<Json> (Profiler::*)(WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"hello", &Profiler::hello},     {"open", &Profiler::open}, {"memory", &Profiler::memory},
        {"prepare", &Profiler::prepare}, {"load", &Profiler::load}, {"profile", &Profiler::profile},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    Result<Json> answer = (this->*handler->second)(command);
    if (!answer) {
      return channel_->answer_error(answer.error(),
                                    answer.error().kind == ErrorKind::kBadInput ? "plan" : "");
    }
    channel_->answer(std::move(*answer));
  }

 private:
  struct Subject {
    const OpenCase* c = nullptr;
    LaunchPlan plan;
    PlanLauncher launcher;
  };

  Result<Json> hello(WorkerCommand&) { return Json{{"chip", session_->chip()}}; }

  Result<Json> open(WorkerCommand& command) {
    subjects_.clear();
    return cases_.open(command);
  }

  Result<Json> memory(WorkerCommand& command) { return cases_.memory(command); }

  Result<Json> load(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    if (!cases_.bound(*c)) KP_TRY(cases_.bind(*c, 0));
    Subject& subject = subjects_[command.text("subject")];
    subject = Subject();
    KP_ASSIGN(const std::string cubin, read_file(command.text("cubin")));
    const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
    if (!plan) return fail(ErrorKind::kBadInput, "the launch plan cannot be read", "");
    KP_ASSIGN(auto launcher, PlanLauncher::build(cu_, cubin, *plan, c->layout));
    subject = {c, *plan, std::move(launcher)};
    return Json::object();
  }

  // The schedule for metrics by the registry's names.
  Result<const CounterSession::Schedule*> schedule_of(const WorkerCommand& command) {
    std::vector<std::string> names;
    for (const Json& metric : JsonReader(command.json).array("metrics")) {
      if (metric.is_string()) {
        names.push_back(counter_on(metric.get<std::string>(), session_->chip()));
      }
    }
    return session_->schedule(names);
  }

  // The first collection of a process costs much more than later ones: do one that does not matter.
  Result<Json> prepare(WorkerCommand& command) {
    const double start = real_clock().now_s();
    KP_ASSIGN(const auto schedule, schedule_of(command));
    const double scheduled = real_clock().now_s();
    KP_TRY(session_->warm_up(*schedule, [&] { return flush(); }));
    return Json{{"passes", schedule->config.passes},
                {"phases_ms",
                 {{"schedule", (scheduled - start) * 1e3},
                  {"first collection", (real_clock().now_s() - scheduled) * 1e3}}}};
  }

  Result<void> flush() {
    static_cast<void>(cu_.CtxResetPersistingL2Cache());
    const std::uint64_t words = flush_bytes_ / 16;
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), "flush_cache", kernels_->blocks_for(words), 256u,
                                 0u, flush_.get(), words, flush_.get() + flush_bytes_));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    return {};
  }

  // A correct call writes only outputs and workspace, and does not read their old contents: only
  // the workspace's poison must be restored before the next.
  Result<void> poison_workspace(const OpenCase& c) {
    if (!c.layout.has_workspace) return {};
    const AddressLayout::Slot& slot = c.layout.slots.back();
    const std::uint64_t words = slot.mapping_bytes / 4;
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), "poison", kernels_->blocks_for(words), 256u, 0u,
                                 slot.mapping, kPoison, words));
    return {};
  }

  Result<void> run_nodes(Subject& subject, const std::vector<int>& nodes) {
    for (const int node : nodes) KP_TRY(run_node(subject, node));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    return {};
  }
  Result<void> run_node(Subject& subject, int node) {
    const CUresult result = subject.launcher.launch(node, stream_.get());
    if (result == CUDA_SUCCESS) return {};
    return fail(ErrorKind::kEnvironment,
                "node " + std::to_string(node) +
                    " cannot be launched by itself: " + cuda_error_text(result),
                "");
  }

  using Step = CounterSession::Step;

  // `begin` and `end` enclose kernel number `only`, or all nodes (-1).
  Result<void> run_counted(Subject& subject, const std::vector<int>& nodes, int only,
                           const Step& begin, const Step& end) {
    if (only < 0) {
      KP_TRY(begin());
      KP_TRY(run_nodes(subject, nodes));
      return end();
    }
    int kernel = 0;
    for (const int node : nodes) {
      const bool counts =
          subject.plan.nodes[static_cast<std::size_t>(node)].kind == PlanNode::Kind::kKernel &&
          kernel++ == only;
      if (!counts) {
        KP_TRY(run_node(subject, node));
        continue;
      }
      KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
      KP_TRY(begin());
      KP_TRY(run_node(subject, node));
      KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
      KP_TRY(end());
    }
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    return {};
  }

  Result<Json> profile(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    const auto found = subjects_.find(command.text("subject"));
    if (found == subjects_.end() || found->second.c != c) {
      return fail(ErrorKind::kInternal, "no such subject", "");
    }
    Subject& subject = found->second;
    KP_ASSIGN(const auto schedule, schedule_of(command));
    KP_TRY(cases_.bind(*c, command.integer("set")));

    // One call first: it fills the buffers and does one-time work. Then every pass runs all nodes,
    // or the chosen ones of many launches, over the results of that call.
    const std::vector<int> chosen = chosen_launches(subject.plan, kMostLaunches);
    const bool whole = static_cast<int>(chosen.size()) == subject.plan.kernel_count();
    std::vector<int> nodes = plan_order(subject.plan);
    const double start = real_clock().now_s();
    KP_TRY(poison_workspace(*c));
    KP_TRY(run_nodes(subject, nodes));
    const double warm_ms = (real_clock().now_s() - start) * 1e3;
    if (!whole) {
      std::erase_if(nodes, [&](int i) {
        return subject.plan.nodes[static_cast<std::size_t>(i)].kind == PlanNode::Kind::kKernel &&
               std::find(chosen.begin(), chosen.end(), i) == chosen.end();
      });
    }
    const auto before = [&]() -> Result<void> {
      if (whole) KP_TRY(poison_workspace(*c));
      return flush();
    };
    auto collected = session_->collect(*schedule, chosen.size(), before,
                                       [&](int only, const Step& begin, const Step& end) {
                                         return run_counted(subject, nodes, only, begin, end);
                                       });
    if (!collected) return tl::unexpected<Error>(collected.error());
    collected->phases_ms["first call"] = warm_ms;
    return answer(subject, chosen, *schedule, *collected);
  }

  Json answer(const Subject& subject, const std::vector<int>& chosen,
              const CounterSession::Schedule& schedule,
              const CounterSession::Collected& collected) const {
    CounterAnswers answers;
    answers.source = "cupti";
    answers.chip = session_->chip();
    answers.passes = collected.passes;
    answers.phases_ms = collected.phases_ms;
    answers.left_out = subject.plan.kernel_count() - static_cast<int>(chosen.size());
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
      launch.function = subject.plan.nodes[static_cast<std::size_t>(chosen[i])].function;
      for (std::size_t k = 0; k < schedule.config.metrics.size(); ++k) {
        const double value = collected.values[i][k];
        if (std::isfinite(value)) launch.values[counter_from(schedule.config.metrics[k])] = value;
      }
    }
    return Json{{"answers", *parse_json(counter_answers_to_json(answers))}};
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  CounterSession* session_;
  CudaStream stream_;
  DeviceMemory flush_;
  std::uint64_t flush_bytes_ = 0;
  OpenCases cases_;
  std::map<std::string, Subject> subjects_;
};

Result<void> serve(WorkerChannel* channel) {
  KP_ASSIGN(const CudaContext context, CudaContext::open());
  const CudaDriver& cu = **cuda_driver();
  KP_ASSIGN(TrustedKernels kernels, TrustedKernels::load(cu, context));
  KP_ASSIGN(CounterSession session, CounterSession::open());
  Profiler profiler(channel, cu, context, &kernels, &session);
  KP_TRY(profiler.start());
  while (std::optional<WorkerCommand> command = channel->next()) profiler.serve(*command);
  return {};
}

#else

Result<void> serve(WorkerChannel*) {
  return fail(ErrorKind::kEnvironment, "this build has no CUPTI",
              "install the CUDA toolkit with CUPTI's headers and build again");
}

#endif

}  // namespace

int cuda_profiler(int, char**) {
  WorkerChannel channel;
  const Result<void> served = serve(&channel);
  if (served) return 0;
  while (channel.next()) channel.answer_error(served.error(), kUnavailable);
  return 0;
}

}  // namespace kernelpro

#endif
