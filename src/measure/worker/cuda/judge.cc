// SPDX-License-Identifier: Apache-2.0
// Role cuda-judge: owns every shared buffer, draws the inputs, runs the reference, compares.
// Expected results never leave this process, except for the trusted PyTorch reference that writes
// them, small cases' cross-check and the windows that explain a failure.
//
// The verbs (CASE, SET and layouts as in core/plan/protocol.h):
//   hello -> {"uuid","free_bytes","total_bytes","granularity"}
//   open {case, tensors, workspace, sets, sharing} -> {"layout","reference_layout"}
//   close {case}
//   share {case, set, slots:[I,...], expected} -> {"own":[BOOL,...]} + descriptors of those in own
//       memory
//   draw {case, set, key, specs}
//   reference {case, set, cubin, plan, again} -> {"agrees"}
//   seal {case, set, typical} -> {"outputs":[summary,...]}
//   reshape {case, set, seed, specs}, narrow {case, set}
//   deviations {case, set, shapes:[[EXTENT,...],...]} -> {"outputs":[{"norm","worst","common",
//       "relative","relative_worst","changed","lost","means"},...]}
//   admit {case, set} -> {"outputs":[{"least","worst","jumps"},...]}
//   least {case, set, least:[SCALE,...]}
//   tolerances {case, tolerances:[T,...]}
//   broken {case} -> {"sets":[SET,...]}
//   poison {case, keys:[[SET,KEY],...], slack}
//   verify {case, sets:[SET,...], intrusions, then_poison:[[SET,KEY],...]} ->
//       {"sets":[finding,...]}
//   window, fetch, disturb, restore: see JudgeCase
// For modules in host form, each of which has a STAGE (JudgeCase) to itself:
//   stage {case, stage, slots:[I,...]} + nothing -> descriptors of these slots; makes the stage
//   gate {stage} + the descriptor of a gate (base/process/gate.h): a new process has the stage
//   turn {case, set, stage, turn, timed, timeout} -> {"answered","us","revealing_us",
//       "intrusions"}: one call of its module, timed by this process
//   launch -> {"us"}: of a small kernel; long while others work on the GPU
#if KERNELPRO_HAVE_CUDA

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "core/plan/protocol.h"
#include "core/task/key.h"
#include "measure/worker/cuda/judge_case.h"
#include "measure/worker/cuda/judge_turn.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/serve.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

// NaN and infinities as strings: JSON has none.
Json number_json(double v) {
  if (std::isfinite(v)) return Json(v);
  return Json(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

Json deviation_json(const Deviation& found) {
  Json means = Json::array();
  for (const double mean : found.means) means.push_back(number_json(mean));
  return {{"norm", number_json(found.norm)},
          {"worst", number_json(found.worst)},
          {"common", number_json(found.common)},
          {"relative", number_json(found.relative)},
          {"relative_worst", number_json(found.relative_worst)},
          {"changed", number_json(found.changed)},
          {"lost", number_json(found.lost)},
          {"means", means}};
}

class Judge {
 public:
  Judge(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
        TrustedKernels* kernels)
      : channel_(channel),
        cu_(cu),
        context_(context),
        kernels_(kernels),
        turns_(cu, context, kernels) {}

  Result<void> start() { return {}; }

  void serve(const WorkerCommand& command) {
    using Handler = Result<Json> (Judge::*)(const WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"hello", &Judge::hello},     {"open", &Judge::open},
        {"close", &Judge::close},     {"share", &Judge::share},
        {"draw", &Judge::draw},       {"reference", &Judge::reference},
        {"seal", &Judge::seal},       {"broken", &Judge::broken},
        {"poison", &Judge::poison},   {"verify", &Judge::verify},
        {"window", &Judge::window},   {"fetch", &Judge::fetch},
        {"disturb", &Judge::disturb}, {"restore", &Judge::restore},
        {"vary", &Judge::vary},       {"tolerances", &Judge::tolerances},
        {"lean", &Judge::lean},       {"admit", &Judge::admit},
        {"least", &Judge::least},     {"reshape", &Judge::reshape},
        {"narrow", &Judge::narrow},   {"deviations", &Judge::deviations},
        {"stage", &Judge::stage},     {"gate", &Judge::gate},
        {"turn", &Judge::turn},       {"launch", &Judge::launch},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    const auto known = cases_.find(command.text("case"));
    case_ = known == cases_.end() ? nullptr : known->second.get();
    static const std::set<std::string> alone = {"open", "hello", "gate", "launch"};
    const bool needs_case = alone.count(command.verb()) == 0;
    if (needs_case && (case_ == nullptr || !good_set(command.integer("set")))) {
      return channel_->answer_error("no such case or set");
    }
    Result<Json> answer = (this->*handler->second)(command);
    if (!answer) {
      const ErrorKind kind = answer.error().kind;
      return channel_->answer_error(answer.error(),
                                    kind == ErrorKind::kTask       ? RefusalKind::kReference
                                    : kind == ErrorKind::kBadInput ? RefusalKind::kMemory
                                                                   : RefusalKind::kNone);
    }
    std::vector<int> fds;
    for (const Fd& fd : outgoing_) fds.push_back(fd.get());
    channel_->answer(std::move(*answer), fds);
    outgoing_.clear();
  }

 private:
  bool good_set(std::int64_t set) const { return set >= 0 && set < case_->sets(); }
  static int set_of(const WorkerCommand& command) {
    return static_cast<int>(command.integer("set"));
  }

  template <class T>
  static Result<Json> done(Result<T> result) {
    if (!result) return tl::unexpected<Error>(result.error());
    return Json::object();
  }

  Result<std::vector<int>> sets_of(const WorkerCommand& command) const {
    std::vector<int> sets;
    for (const Json& item : JsonReader(command.json).array("sets")) {
      if (!item.is_number_integer() || !good_set(item.get<std::int64_t>())) {
        return fail(ErrorKind::kInternal, "no such set", "");
      }
      sets.push_back(item.get<int>());
    }
    return sets;
  }

  Result<std::vector<std::pair<int, std::uint64_t>>> keys_of(const WorkerCommand& command,
                                                             const char* member) const {
    std::vector<std::pair<int, std::uint64_t>> keys;
    for (const Json& item : JsonReader(command.json).array(member)) {
      const bool pair = item.is_array() && item.size() == 2 && item[0].is_number_integer() &&
                        item[1].is_number_unsigned();
      if (!pair || !good_set(item[0].get<std::int64_t>())) {
        return fail(ErrorKind::kInternal, "no such set", "");
      }
      keys.emplace_back(item[0].get<int>(), item[1].get<std::uint64_t>());
    }
    return keys;
  }

  Result<kp::Key> key_in(const WorkerCommand& command) const {
    const auto key = key_from_text(JsonReader(command.json).text("key"));
    if (!key) return fail(ErrorKind::kInternal, "the key cannot be read", "");
    return *key;
  }

  Result<Json> hello(const WorkerCommand&) {
    std::size_t free_bytes = 0, total = 0;
    KP_CUDA_TRY(cu_.MemGetInfo(&free_bytes, &total));
    KP_ASSIGN(const std::uint64_t granularity, allocation_granularity(cu_, context_.device()));
    CUuuid uuid{};
    KP_CUDA_TRY(cu_.DeviceGetUuid(&uuid, context_.device()));
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
      text += (i == 4 || i == 6 || i == 8 || i == 10) ? std::string("-") + two : two;
    }
    return Json{{"uuid", text},
                {"free_bytes", free_bytes},
                {"total_bytes", total},
                {"granularity", granularity}};
  }

  Result<Json> open(const WorkerCommand& command) {
    const auto tensors =
        judge_tensors_from_json(dump_json(JsonReader(command.json).array("tensors")));
    if (!tensors) return fail(ErrorKind::kInternal, "the tensors cannot be read", "");
    cases_.erase(command.text("case"));
    KP_ASSIGN(JudgeCase opened,
              JudgeCase::open(cu_, context_, *kernels_, *tensors, command.natural("workspace"),
                              static_cast<int>(command.integer("sets")),
                              static_cast<int>(command.integer("sharing"))));
    case_ = (cases_[command.text("case")] = std::make_unique<JudgeCase>(std::move(opened))).get();
    return Json{{"layout", *parse_json(layout_to_json(case_->layout()))},
                {"reference_layout", *parse_json(layout_to_json(case_->reference_layout()))}};
  }

  Result<Json> close(const WorkerCommand& command) {
    cases_.erase(command.text("case"));
    return Json::object();
  }

  Result<Json> share(const WorkerCommand& command) {
    const bool expected = JsonReader(command.json).flag("expected");
    std::vector<int> slots;
    Json own = Json::array();
    for (const Json& item : JsonReader(command.json).array("slots")) {
      const std::int64_t slot = item.is_number_integer() ? item.get<std::int64_t>() : -1;
      const std::size_t count = expected ? case_->tensors().size() : case_->layout().slots.size();
      if (slot < 0 || slot >= static_cast<std::int64_t>(count)) {
        return fail(ErrorKind::kInternal, "no such slot", "");
      }
      const bool mine =
          expected || case_->own_memory(set_of(command), static_cast<std::size_t>(slot));
      own.push_back(mine);
      if (mine) slots.push_back(static_cast<int>(slot));
    }
    KP_ASSIGN(outgoing_, case_->share(set_of(command), slots, expected));
    return Json{{"own", own}};
  }

  Result<Json> draw(const WorkerCommand& command) {
    const auto specs =
        draw_specs_from_json(dump_json(JsonReader(command.json).array("specs")), case_->tensors());
    if (!specs) return fail(ErrorKind::kInternal, "the draws cannot be read", "");
    KP_ASSIGN(const kp::Key key, key_in(command));
    return done(case_->draw(set_of(command), key, *specs));
  }

  Result<Json> poison(const WorkerCommand& command) {
    KP_ASSIGN(const auto keys, keys_of(command, "keys"));
    return done(case_->poison(keys, JsonReader(command.json).flag("slack")));
  }

  Result<Json> reference(const WorkerCommand& command) {
    const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
    if (!plan) return fail(ErrorKind::kInternal, "the reference's plan cannot be read", "");
    KP_ASSIGN(std::string cubin, read_file(command.text("cubin")));
    KP_ASSIGN(const bool agrees, case_->run_reference(set_of(command), cubin, *plan,
                                                      JsonReader(command.json).flag("again")));
    return Json{{"agrees", agrees}};
  }

  Result<Json> seal(const WorkerCommand& command) {
    KP_ASSIGN(const std::vector<ExpectedSummary> summaries,
              case_->seal(set_of(command), JsonReader(command.json).flag("typical")));
    Json all = Json::array();
    for (const ExpectedSummary& s : summaries) {
      all.push_back({{"rms", s.rms},
                     {"low", s.low},
                     {"high", s.high},
                     {"not_finite", s.not_finite},
                     {"seal", s.seal}});
    }
    return Json{{"outputs", all}};
  }

  Result<Json> broken(const WorkerCommand&) {
    KP_ASSIGN(const std::vector<int> sets, case_->broken_seals());
    return Json{{"sets", sets}};
  }

  static Json intrusions_json(const std::vector<Intrusion>& all) {
    Json intrusions = Json::array();
    for (const Intrusion& i : all) {
      intrusions.push_back({{"slot", i.slot},
                            {"what", i.what},
                            {"count", i.count},
                            {"where", i.where},
                            {"where_known", i.where_known}});
    }
    return intrusions;
  }
  static Json finding_json(const SetFindings& finding) {
    Json outputs = Json::array();
    for (const OutputComparison& c : finding.outputs) {
      outputs.push_back({{"bad", c.bad},
                         {"not_a_number", c.not_a_number},
                         {"unwritten", c.unwritten},
                         {"first", c.first},
                         {"last", c.last},
                         {"worst", number_json(c.worst)}});
    }
    return {{"outputs", outputs}, {"intrusions", intrusions_json(finding.intrusions)}};
  }

  Result<Json> verify(const WorkerCommand& command) {
    KP_ASSIGN(const std::vector<int> sets, sets_of(command));
    KP_ASSIGN(const auto keys, keys_of(command, "then_poison"));
    KP_ASSIGN(const std::vector<SetFindings> found,
              case_->verify(sets, JsonReader(command.json).flag("intrusions")));
    Json all = Json::array();
    bool clean = true;
    for (const SetFindings& finding : found) {
      for (const OutputComparison& c : finding.outputs) clean = clean && c.bad == 0;
      clean = clean && finding.intrusions.empty();
      all.push_back(finding_json(finding));
    }
    // Wrong outputs stay in place, to be explained.
    if (clean && !keys.empty()) KP_TRY(case_->poison(keys, false));
    return Json{{"sets", all}};
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
      Json array = Json::array();
      for (const double v : values) array.push_back(number_json(v));
      return array;
    };
    return Json{{"bad", bad}, {"got", numbers(got)}, {"expected", numbers(expected)}};
  }

  // The bytes go through a file: frames are for messages.
  Result<Json> fetch(const WorkerCommand& command) {
    const bool expected = JsonReader(command.json).flag("expected");
    if (!good_tensor(command.integer("tensor"), expected)) {
      return fail(ErrorKind::kInternal, "no such tensor", "");
    }
    KP_ASSIGN(std::string bytes,
              case_->fetch(set_of(command), static_cast<int>(command.integer("tensor")), expected));
    KP_TRY(write_file(command.text("path"), bytes));
    return Json{{"bytes", bytes.size()}};
  }

  Result<Json> disturb(const WorkerCommand& command) {
    if (!good_tensor(command.integer("tensor"), false)) {
      return fail(ErrorKind::kInternal, "no such tensor", "");
    }
    return done(case_->disturb(set_of(command), static_cast<int>(command.integer("tensor")),
                               command.natural("first"), command.natural("other"),
                               command.natural("count"),
                               static_cast<float>(JsonReader(command.json).real("large"))));
  }
  Result<Json> vary(const WorkerCommand& command) {
    KP_ASSIGN(const kp::Key key, key_in(command));
    return done(case_->vary(set_of(command), key));
  }
  Result<Json> lean(const WorkerCommand& command) {
    KP_ASSIGN(const kp::Key key, key_in(command));
    return done(case_->lean(set_of(command), key));
  }
  Result<Json> reshape(const WorkerCommand& command) {
    const auto specs = shape_specs_from_json(dump_json(JsonReader(command.json).array("specs")));
    if (!specs || specs->size() != case_->tensors().size()) {
      return fail(ErrorKind::kInternal, "the shapes cannot be read", "");
    }
    KP_ASSIGN(const bool changed, case_->reshape(set_of(command), command.natural("seed"), *specs));
    return Json{{"changed", changed}};
  }
  Result<Json> narrow(const WorkerCommand& command) { return done(case_->narrow(set_of(command))); }
  Result<Json> deviations(const WorkerCommand& command) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const Json& extents : JsonReader(command.json).array("shapes")) {
      shapes.emplace_back();
      for (const Json& extent : extents) {
        shapes.back().push_back(extent.is_number_unsigned() ? extent.get<std::int64_t>() : 0);
      }
    }
    KP_ASSIGN(const std::vector<Deviation> found, case_->deviations(set_of(command), shapes));
    Json all = Json::array();
    for (const Deviation& d : found) all.push_back(deviation_json(d));
    return Json{{"outputs", all}};
  }
  Result<Json> tolerances(const WorkerCommand& command) {
    std::vector<double> values;
    for (const Json& value : JsonReader(command.json).array("tolerances")) {
      values.push_back(value.is_number() ? value.get<double>() : 0);
    }
    case_->set_tolerances(values);
    return Json::object();
  }
  Result<Json> admit(const WorkerCommand& command) {
    KP_ASSIGN(const std::vector<Admitted> admitted, case_->admit(set_of(command)));
    Json all = Json::array();
    for (const Admitted& a : admitted) {
      all.push_back({{"least", a.least}, {"worst", a.worst}, {"jumps", a.jumps}});
    }
    return Json{{"outputs", all}};
  }
  Result<Json> least(const WorkerCommand& command) {
    std::vector<double> values;
    for (const Json& value : JsonReader(command.json).array("least")) {
      values.push_back(value.is_number() ? value.get<double>() : 0);
    }
    case_->set_least(set_of(command), values);
    return Json::object();
  }
  Result<Json> restore(const WorkerCommand&) { return done(case_->restore()); }

  Result<Json> stage(const WorkerCommand& command) {
    const int stage = static_cast<int>(command.integer("stage"));
    KP_TRY(case_->open_stage(stage));
    std::vector<int> slots;
    for (const Json& item : JsonReader(command.json).array("slots")) {
      slots.push_back(item.is_number_integer() ? item.get<int>() : -1);
    }
    KP_ASSIGN(outgoing_, case_->share_stage(stage, slots));
    return Json::object();
  }
  // Nothing that an earlier process left there may reach the next.
  Result<Json> gate(const WorkerCommand& command) {
    const int stage = static_cast<int>(command.integer("stage"));
    if (command.fds.size() != 1) return fail(ErrorKind::kInternal, "no gate was given", "");
    for (const auto& [name, each] : cases_) {
      if (each->has_stage(stage)) KP_TRY(each->clear_stage(stage, -1));
    }
    return done(turns_.open_gate(stage, command.fds[0].get()));
  }
  Result<Json> turn(const WorkerCommand& command) {
    const JsonReader r(command.json);
    KP_ASSIGN(const JudgeTurns::Turn turn,
              turns_.take(case_, static_cast<int>(command.integer("stage")), set_of(command),
                          command.natural("turn"), r.flag("timed"), r.real("timeout")));
    return Json{{"answered", turn.answered},
                {"us", turn.us},
                {"revealing_us", turn.revealing_us},
                {"intrusions", intrusions_json(turn.intrusions)}};
  }
  Result<Json> launch(const WorkerCommand&) {
    KP_ASSIGN(const double us, turns_.launch_us());
    return Json{{"us", us}};
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  JudgeTurns turns_;
  std::map<std::string, std::unique_ptr<JudgeCase>> cases_;
  JudgeCase* case_ = nullptr;  // the one that the command names
  std::vector<Fd> outgoing_;
};

}  // namespace

int cuda_judge(int, char**) { return serve_commands<Judge>(); }

}  // namespace kernelpro

#endif
