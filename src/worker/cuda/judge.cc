// SPDX-License-Identifier: Apache-2.0
// Role cuda-judge: owns every shared buffer, draws the inputs, runs the reference, compares.
// Expected results never leave this process, but for small cases' cross-check and the windows that
// explain a failure.
#if KERNELPRO_HAVE_CUDA

#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "core/protocol.h"
#include "worker/cuda/judge_case.h"
#include "worker/cuda/message.h"
#include "worker/roles.h"

namespace kernelpro {

namespace {

class Judge {
 public:
  Judge(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
        TrustedKernels* kernels)
      : channel_(channel), cu_(cu), context_(context), kernels_(kernels) {}

  void serve(const WorkerCommand& command) {
    using Handler = Result<Json> (Judge::*)(const WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"open", &Judge::open},           {"close", &Judge::close},   {"draw", &Judge::draw},
        {"reference", &Judge::reference}, {"poison", &Judge::poison}, {"compare", &Judge::compare},
        {"window", &Judge::window},       {"fetch", &Judge::fetch},   {"share", &Judge::share},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    const auto known = cases_.find(command.text("case"));
    case_ = known == cases_.end() ? nullptr : known->second.get();
    if (command.verb() != "open" && (case_ == nullptr || !good_set(command))) {
      return channel_->answer_error("no such case or set");
    }
    Result<Json> answer = (this->*handler->second)(command);
    if (!answer)
      return channel_->answer_error(answer.error().message,
                                    answer.error().kind == ErrorKind::kTask ? "reference" : "");
    std::vector<int> fds;
    for (const Fd& fd : outgoing_) fds.push_back(fd.get());
    channel_->answer(std::move(*answer), fds);
    outgoing_.clear();
  }

 private:
  bool good_set(const WorkerCommand& command) const {
    const std::int64_t set = command.integer("set");
    return set >= 0 && set < case_->sets();
  }
  static int set_of(const WorkerCommand& command) {
    return static_cast<int>(command.integer("set"));
  }

  template <class T>
  static Result<Json> done(Result<T> result) {
    if (!result) return tl::unexpected<Error>(result.error());
    return Json::object();
  }

  Result<Json> open(const WorkerCommand& command) {
    const auto tensors =
        judge_tensors_from_json(dump_json(JsonReader(command.json).array("tensors")));
    if (!tensors) return fail(ErrorKind::kInternal, "the tensors cannot be read", "");
    cases_.erase(command.text("case"));
    Result<JudgeCase> opened =
        JudgeCase::open(cu_, context_, *kernels_, *tensors, command.natural("workspace"),
                        static_cast<int>(command.integer("sets")));
    if (!opened) return tl::unexpected<Error>(opened.error());
    case_ = (cases_[command.text("case")] = std::make_unique<JudgeCase>(std::move(*opened))).get();
    return Json{{"layout", *parse_json(layout_to_json(case_->layout()))},
                {"reference_layout", *parse_json(layout_to_json(case_->reference_layout()))}};
  }

  Result<Json> close(const WorkerCommand& command) {
    cases_.erase(command.text("case"));
    return Json::object();
  }

  Result<Json> share(const WorkerCommand& command) {
    Result<std::vector<Fd>> fds = case_->share(set_of(command));
    if (!fds) return tl::unexpected<Error>(fds.error());
    outgoing_ = std::move(*fds);
    return Json::object();
  }

  Result<Json> draw(const WorkerCommand& command) {
    return done(case_->draw(set_of(command), command.natural("seed")));
  }

  Result<Json> poison(const WorkerCommand& command) {
    return done(case_->poison(set_of(command), command.natural("key")));
  }

  Result<Json> reference(const WorkerCommand& command) {
    const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
    if (!plan) return fail(ErrorKind::kInternal, "the reference's plan cannot be read", "");
    Result<std::string> cubin = read_file(command.text("cubin"));
    if (!cubin) return tl::unexpected<Error>(cubin.error());
    const bool again = JsonReader(command.json).flag("again");
    Result<std::uint64_t> differing = case_->run_reference(set_of(command), *cubin, *plan, again);
    if (!differing) return tl::unexpected<Error>(differing.error());
    Result<std::vector<ExpectedSummary>> summaries = case_->summarize(set_of(command));
    if (!summaries) return tl::unexpected<Error>(summaries.error());
    Json all = Json::array();
    for (const ExpectedSummary& s : *summaries) {
      all.push_back(
          {{"rms", s.rms}, {"low", s.low}, {"high", s.high}, {"not_finite", s.not_finite}});
    }
    return Json{{"differing", *differing}, {"outputs", all}};
  }

  Result<Json> compare(const WorkerCommand& command) {
    Result<std::vector<OutputComparison>> outputs = case_->compare(set_of(command));
    if (!outputs) return tl::unexpected<Error>(outputs.error());
    Json all = Json::array();
    for (const OutputComparison& c : *outputs) {
      double worst;
      std::memcpy(&worst, &c.worst_bits, sizeof worst);
      all.push_back({{"bad", c.bad},
                     {"not_a_number", c.not_a_number},
                     {"unwritten", c.unwritten},
                     {"first", c.first},
                     {"last", c.last},
                     {"worst", std::isfinite(worst) ? Json(worst) : Json(nullptr)}});
    }
    Json json = {{"outputs", all}};
    if (JsonReader(command.json).flag("intrusions")) {
      Result<std::vector<Intrusion>> found = case_->intrusions(set_of(command));
      if (!found) return tl::unexpected<Error>(found.error());
      Json intrusions = Json::array();
      for (const Intrusion& i : *found) {
        intrusions.push_back(
            {{"slot", i.slot}, {"what", i.what}, {"count", i.count}, {"where", i.where}});
      }
      json["intrusions"] = intrusions;
    }
    return json;
  }

  bool good_tensor(std::int64_t tensor, bool output) const {
    return tensor >= 0 && tensor < static_cast<std::int64_t>(case_->tensors().size()) &&
           (!output || case_->tensors()[static_cast<std::size_t>(tensor)].output);
  }

  Result<Json> window(const WorkerCommand& command) {
    if (!good_tensor(command.integer("tensor"), true)) {
      return fail(ErrorKind::kInternal, "no such output", "");
    }
    std::vector<unsigned char> bad;
    std::vector<double> got, expected;
    KP_TRY(case_->window(set_of(command), static_cast<int>(command.integer("tensor")),
                         command.natural("first"), command.natural("count"), &bad, &got,
                         &expected));
    const auto numbers = [](const std::vector<double>& values) {
      Json array = Json::array();  // not-a-number and infinities as texts: JSON has none
      for (const double v : values) {
        array.push_back(std::isfinite(v) ? Json(v)
                                         : Json(std::isnan(v) ? "nan"
                                                : v > 0       ? "inf"
                                                              : "-inf"));
      }
      return array;
    };
    return Json{{"bad", bad}, {"got", numbers(got)}, {"expected", numbers(expected)}};
  }

  // The bytes go to a file: frames are for messages.
  Result<Json> fetch(const WorkerCommand& command) {
    const bool expected = JsonReader(command.json).flag("expected");
    if (!good_tensor(command.integer("tensor"), expected)) {
      return fail(ErrorKind::kInternal, "no such tensor", "");
    }
    Result<std::string> bytes =
        case_->fetch(set_of(command), static_cast<int>(command.integer("tensor")), expected);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    KP_TRY(write_file(command.text("path"), *bytes));
    return Json{{"bytes", bytes->size()}};
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  std::map<std::string, std::unique_ptr<JudgeCase>> cases_;
  JudgeCase* case_ = nullptr;  // the one that the command names
  std::vector<Fd> outgoing_;
};

}  // namespace

int cuda_judge(int, char**) {
  WorkerChannel channel;
  const Result<CudaContext> context = CudaContext::open();
  Result<TrustedKernels> kernels =
      context ? TrustedKernels::load(**cuda_driver(), *context)
              : Result<TrustedKernels>(tl::unexpected<Error>(context.error()));
  if (!kernels) {
    while (channel.next()) channel.answer_error(kernels.error());
    return 0;
  }
  Judge judge(&channel, **cuda_driver(), *context, &*kernels);
  while (const std::optional<WorkerCommand> command = channel.next()) judge.serve(*command);
  return 0;
}

}  // namespace kernelpro

#endif
