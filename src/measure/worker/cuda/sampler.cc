// SPDX-License-Identifier: Apache-2.0
// Role cuda-sampler: program-counter samples of a plan's kernels, over the judge's buffers. A
// separate process: timed processes are never sampled, and CUPTI's range profiler, which the role
// cuda-profiler uses, excludes sampling within a process. The kernels are launched one by one,
// once, in an order that the plan allows, so that each is sampled in its real state (graphs under
// sampling are untried); kernels that wait for each other hang here, which the supervisor's time
// limit ends.
#if KERNELPRO_HAVE_CUDA

#include <map>
#include <utility>

#include "base/text.h"
#include "core/evidence/samples.h"
#include "measure/worker/cuda/plan_subjects.h"
#include "measure/worker/cuda/sampler_session.h"
#include "measure/worker/cuda/serve.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

#if KERNELPRO_HAVE_CUPTI

constexpr double kUsualClockHz = 1.7e9;  // where the driver does not say

// What the supervisor should do: free the hardware and ask again, or give up.
RefusalKind refusal_for(const Error& error) {
  if (error.kind == ErrorKind::kBadInput) return RefusalKind::kPlan;
  if (error.cause == Cause::kInUse) return RefusalKind::kBusy;
  const bool by_cupti = error.cause == Cause::kProfiler || error.cause == Cause::kForbidden;
  return by_cupti ? RefusalKind::kUnavailable : RefusalKind::kNone;
}

class Sampler {
 public:
  Sampler(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
          TrustedKernels* kernels)
      : channel_(channel), cu_(cu), context_(context), plans_(cu, context, kernels) {}

  Result<void> start() {
    KP_ASSIGN(begin_, make_event(cu_));
    KP_ASSIGN(end_, make_event(cu_));
    return plans_.start();
  }

  void serve(WorkerCommand& command) {
    using Handler = Result<Json> (Sampler::*)(WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"hello", &Sampler::hello}, {"open", &Sampler::open},     {"memory", &Sampler::memory},
        {"load", &Sampler::load},   {"sample", &Sampler::sample},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    Result<Json> answer = (this->*handler->second)(command);
    plans_.put_away();
    if (!answer) return channel_->answer_error(answer.error(), refusal_for(answer.error()));
    channel_->answer(std::move(*answer));
  }

 private:
  Result<Json> hello(WorkerCommand&) { return Json::object(); }
  Result<Json> open(WorkerCommand& command) { return plans_.open(command); }
  Result<Json> memory(WorkerCommand& command) { return plans_.memory(command); }
  Result<Json> load(WorkerCommand& command) { return plans_.load(command); }

  // The time of a call on the GPU.
  Result<double> seconds(PlanSubject* subject, const std::vector<int>& nodes) {
    KP_CUDA_TRY(cu_.EventRecord(begin_.get(), plans_.stream()));
    for (const int node : nodes) KP_TRY(plans_.run(subject, node));
    KP_CUDA_TRY(cu_.EventRecord(end_.get(), plans_.stream()));
    KP_TRY(plans_.wait());
    float ms = 0;
    KP_CUDA_TRY(cu_.EventElapsedTime(&ms, begin_.get(), end_.get()));
    return 1e-3 * static_cast<double>(ms);
  }

  // Calls without sampling come first: one fills the buffers and does one-time work, and another
  // gives the time for which the period is chosen.
  Result<Json> sample(WorkerCommand& command) {
    KP_ASSIGN(PlanSubject * subject, plans_.of(command));
    const std::vector<int> nodes = plan_order(subject->plan);
    KP_TRY(plans_.renew(*subject));
    KP_TRY(plans_.run(subject, nodes));
    KP_TRY(plans_.renew(*subject));
    KP_ASSIGN(const double time, seconds(subject, nodes));
    KP_TRY(plans_.renew(*subject));
    KP_TRY(plans_.flush());
    const double khz = context_.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    const int period =
        sampling_period(time * (khz > 0 ? 1e3 * khz : kUsualClockHz),
                        context_.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    KP_ASSIGN(SampleAnswers answers,
              sample_run(period, [&] { return plans_.run(subject, nodes); }));
    return Json{{"answers", *parse_json(sample_answers_to_json(answers))}};
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  const CudaContext& context_;
  PlanSubjects plans_;
  CudaEvent begin_, end_;
};

#endif

}  // namespace

int cuda_sampler(int, char**) {
#if KERNELPRO_HAVE_CUPTI
  return serve_commands<Sampler>(RefusalKind::kUnavailable, []() -> Result<void> {
    KP_TRY(cupti_sampling());  // before there is a context
    return {};
  });
#else
  return refuse_commands(no_cupti(), RefusalKind::kUnavailable);
#endif
}

}  // namespace kernelpro

#endif
