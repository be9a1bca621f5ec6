// SPDX-License-Identifier: Apache-2.0
#include "evaluate/cuda_case.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/mismatch.h"

namespace kernelpro {

namespace {

constexpr double kJudgeTimeout = 120;
constexpr std::int64_t kExplainBytes = 64 << 20;  // outputs up to here are fetched to be explained

Json about(const CudaCase& state, const char* what, int set) {
  return {{"do", what}, {"case", state.c->name}, {"set", set}};
}

Outcome outcome_of_lost(const Lost& lost, const std::string& phase) {
  if (lost.timed_out) return TimedOut{lost.seconds, phase};
  if (!lost.refused.empty()) {
    return Rejected{lost.refused,
                    "launch tried what host code of a candidate may not do: " + lost.refused};
  }
  return Crashed{lost.how + " while " + phase, lost.output};
}

}  // namespace

Result<std::variant<LaunchPlan, Outcome>> capture_plan(const Binary& binary,
                                                       const std::string& entry,
                                                       const AddressLayout& layout,
                                                       double timeout_s) {
  using Captured = std::variant<LaunchPlan, Outcome>;
  Result<CudaLink> link = CudaLink::start("cuda-capture");
  if (!link) return tl::unexpected<Error>(link.error());
  Answer answer = link->ask({{"do", "capture"},
                             {"shared_object", binary.shared_object},
                             {"layout", *parse_json(layout_to_json(layout))}},
                            timeout_s + 5);
  if (const auto* lost = std::get_if<Lost>(&answer)) {
    return Captured{outcome_of_lost(*lost, "capturing " + entry)};
  }
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    if (refusal->rule.empty()) {
      return fail(ErrorKind::kEnvironment, refusal->text, "check `kernelpro doctor`");
    }
    for (const char* rule : {"no-kernel", "exception", "cuda-error"}) {
      if (refusal->rule == rule) return Captured{Crashed{refusal->text, ""}};
    }
    return Captured{Rejected{refusal->rule, refusal->text}};
  }
  const Reply& reply = std::get<Reply>(answer);
  std::optional<LaunchPlan> plan = plan_from_json(dump_json(JsonReader(reply.json).object("plan")));
  if (!plan) return Captured{Rejected{"plan", "the captured plan cannot be read"}};
  const std::string problem = plan->problem();
  if (!problem.empty()) return Captured{Rejected{"plan", "the launch plan has " + problem}};
  return Captured{std::move(*plan)};
}

Result<CudaCase> open_case(CudaLink& judge, const Task& task, const Case& c) {
  CudaCase state;
  state.c = &c;
  state.tensors = shaped_tensors(task, c);
  state.judged = judge_tensors(task, c);
  Result<Reply> opened =
      trusted(judge.ask({{"do", "open"},
                         {"case", c.name},
                         {"tensors", *parse_json(judge_tensors_to_json(state.judged))},
                         {"workspace", static_cast<std::uint64_t>(workspace_bytes(task, c))},
                         {"sets", kCudaSets}},
                        kJudgeTimeout),
              "the judge");
  if (!opened) return tl::unexpected<Error>(opened.error());
  const auto layout = layout_from_json(dump_json(opened->json["layout"]));
  const auto reference = layout_from_json(dump_json(opened->json["reference_layout"]));
  KP_ASSERT(layout && reference);
  state.layout = *layout;
  state.reference_layout = *reference;
  for (int set = 0; set < kCudaSets; ++set) {
    Result<Reply> shared =
        trusted(judge.ask(about(state, "share", set), kJudgeTimeout), "the judge");
    if (!shared) return tl::unexpected<Error>(shared.error());
    state.memory.push_back(std::move(shared->fds));
  }
  return state;
}

namespace {

// Does an output say anything? Constant in every set, or the same for different inputs: no.
std::string degenerate(const CudaCase& state, const std::vector<Json>& summaries) {
  std::size_t output = 0;
  for (const Shaped& shaped : state.tensors) {
    if (shaped.tensor->role != Role::kOutput) continue;
    bool constant = shaped.elements > 1, same = true;
    for (const Json& summary : summaries) {
      const JsonReader r(summary[output]);
      constant = constant && r.real("low") == r.real("high");
      const JsonReader first(summaries[0][output]);
      same = same && r.real("rms") == first.real("rms") && r.real("low") == first.real("low") &&
             r.real("high") == first.real("high");
    }
    if (constant) return "the output " + shaped.tensor->name + " is constant";
    const bool counts = is_floating(shaped.tensor->dtype);  // integers may agree by chance
    if (same && counts && summaries.size() > 1) {
      return "the output " + shaped.tensor->name + " does not depend on the inputs";
    }
    ++output;
  }
  return "";
}

}  // namespace

Result<void> run_references(CudaLink& judge, CudaCase& state, const Binary& reference,
                            std::uint64_t seed, double timeout_s) {
  auto captured = capture_plan(reference, "reference", state.reference_layout, timeout_s);
  if (!captured) return tl::unexpected<Error>(captured.error());
  if (const auto* outcome = std::get_if<Outcome>(&*captured)) {
    return fail(ErrorKind::kTask, "the reference " + outcome_summary(*outcome),
                "correct the task's reference.cu");
  }
  const Json plan = *parse_json(plan_to_json(std::get<LaunchPlan>(*captured)));
  std::vector<Json> summaries;
  state.seed = seed;
  for (int set = 0; set < kCudaSets; ++set) {
    KP_TRY(draw_set(judge, state, set));
    Json run = about(state, "reference", set);
    run["cubin"] = reference.cubin;
    run["plan"] = plan;
    run["again"] = set == 0;
    Answer answer = judge.ask(run, 2 * timeout_s + 30);
    if (const auto* lost = std::get_if<Lost>(&answer)) {
      return fail(ErrorKind::kTask, "the reference of case " + state.c->name + ": " + lost->how,
                  "run reference.cu by itself and mend it");
    }
    Result<Reply> reply = trusted(std::move(answer), "the judge");
    if (!reply) return tl::unexpected<Error>(reply.error());
    if (const auto differing = JsonReader(reply->json).natural("differing"); differing != 0) {
      return fail(ErrorKind::kTask,
                  "the reference disagrees with itself: two runs on the same inputs differ in " +
                      std::to_string(differing) + " words (case " + state.c->name + ")",
                  "look for elements that reference.cu does not write, or for a race");
    }
    summaries.push_back(reply->json["outputs"]);
  }
  if (const std::string problem = degenerate(state, summaries); !problem.empty()) {
    return fail(ErrorKind::kTask,
                "the task is degenerate: " + problem + " (case " + state.c->name + ")",
                "correct the reference, or draw inputs that matter to the result");
  }
  return {};
}

Result<void> draw_set(CudaLink& judge, const CudaCase& state, int set) {
  Json message = about(state, "draw", set);
  message["seed"] = kp::mix64(state.seed + static_cast<std::uint64_t>(set));
  const Result<Reply> done = trusted(judge.ask(message, kJudgeTimeout), "the judge");
  if (!done) return tl::unexpected<Error>(done.error());
  return {};
}

Result<void> poison(CudaLink& judge, const CudaCase& state, int set, std::uint64_t key) {
  Json message = about(state, "poison", set);
  message["key"] = key;
  const Result<Reply> done = trusted(judge.ask(message, kJudgeTimeout), "the judge");
  if (!done) return tl::unexpected<Error>(done.error());
  return {};
}

namespace {

std::string slot_name(const CudaCase& state, int slot) {
  const auto i = static_cast<std::size_t>(slot);
  return i < state.tensors.size() ? state.tensors[i].tensor->name : "workspace";
}

std::optional<Outcome> intrusion_outcome(const CudaCase& state, const Json& intrusions) {
  for (const Json& item : intrusions) {
    const JsonReader r(item);
    const int slot = static_cast<int>(r.integer("slot"));
    const std::string name = slot_name(state, slot);
    const std::string what = r.text("what");
    if (what == "input") {
      const auto i = static_cast<std::size_t>(slot);
      return Rejected{"input-mutation",
                      "the input " + name + " was changed: " + std::to_string(r.natural("count")) +
                          " elements, first at " +
                          coordinates(state.tensors[i].shape, r.integer("where"))};
    }
    return Rejected{"out-of-bounds", "memory " + std::to_string(r.natural("where")) + " bytes " +
                                         (what == "before" ? "before the start" : "past the end") +
                                         " of " + name + " was written"};
  }
  return std::nullopt;
}

double read_number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.is_string() ? json.get<std::string>() : "nan";
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

// For outputs too large to fetch: the first wrong element with its neighbourhood's count.
Result<std::string> explain_window(CudaLink& judge, const CudaCase& state, int set, int tensor,
                                   std::uint64_t first) {
  Json message = about(state, "window", set);
  message["tensor"] = tensor;
  message["first"] = first;
  message["count"] = 4096u;
  const Result<Reply> reply = trusted(judge.ask(message, kJudgeTimeout), "the judge");
  if (!reply) return tl::unexpected<Error>(reply.error());
  const JsonReader r(reply->json);
  if (r.array("got").empty() || r.array("expected").empty()) return std::string();
  return "got " + number(read_number(r.array("got")[0]), 7) + ", expected " +
         number(read_number(r.array("expected")[0]), 7);
}

Result<std::string> explain(CudaLink& judge, const CudaCase& state, int set, int tensor,
                            const JsonReader& found) {
  const Shaped& shaped = state.tensors[static_cast<std::size_t>(tensor)];
  const std::uint64_t bad = found.natural("bad"), unwritten = found.natural("unwritten");
  const std::string count =
      std::to_string(bad) + " of " + std::to_string(shaped.elements) + " elements are wrong";
  // One element more or less may hold its poison's bits by chance.
  if (unwritten > 0 && unwritten + unwritten / 1000 >= bad) {
    return count + ": they were never written, first at " +
           coordinates(shaped.shape, found.integer("first"));
  }
  if (shaped.elements * 8 <= kExplainBytes) {
    const Result<std::string> got = fetch_tensor(judge, state, set, tensor, false);
    const Result<std::string> want = fetch_tensor(judge, state, set, tensor, true);
    if (got && want) {
      const Expected expected = make_expected(shaped, want->data());
      const Comparison comparison = compare_output(shaped, got->data(), expected);
      if (!comparison.ok()) {
        return describe_mismatch(shaped, got->data(), expected, comparison,
                                 make_poison(shaped.tensor->dtype, 0));
      }
    }
  }
  const Result<std::string> values =
      explain_window(judge, state, set, tensor, found.natural("first"));
  if (!values) return tl::unexpected<Error>(values.error());
  const std::uint64_t nan = found.natural("not_a_number");
  return count + (nan > 0 ? " (" + std::to_string(nan) + " are NaN)" : "") + ", first at " +
         coordinates(shaped.shape, found.integer("first")) + ": " + *values + "; last at " +
         coordinates(shaped.shape, found.integer("last"));
}

}  // namespace

Result<std::string> fetch_tensor(CudaLink& judge, const CudaCase& state, int set, int tensor,
                                 bool expected) {
  const TempDir folder;
  Json message = about(state, "fetch", set);
  message["tensor"] = tensor;
  message["expected"] = expected;
  message["path"] = join(folder.path(), "tensor");
  const Result<Reply> reply = trusted(judge.ask(message, kJudgeTimeout), "the judge");
  if (!reply) return tl::unexpected<Error>(reply.error());
  return read_file(join(folder.path(), "tensor"), 8LL << 30);
}

Result<std::optional<Outcome>> judge_set(CudaLink& judge, const CudaCase& state, int set,
                                         bool intrusions, double* max_error) {
  Json message = about(state, "compare", set);
  message["intrusions"] = intrusions;
  const Result<Reply> reply = trusted(judge.ask(message, kJudgeTimeout), "the judge");
  if (!reply) return tl::unexpected<Error>(reply.error());
  const JsonReader r(reply->json);
  if (auto outcome = intrusion_outcome(state, r.array("intrusions"))) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  std::size_t output = 0;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (!state.judged[i].output) continue;
    const Json& item = r.array("outputs").at(output++);
    const JsonReader found(item);
    const double worst = item["worst"].is_number() ? found.real("worst") : INFINITY;
    const double tolerance = state.judged[i].tolerance;
    if (found.natural("bad") == 0) {
      if (tolerance > 0) *max_error = std::max(*max_error, worst / tolerance);
      continue;
    }
    const Result<std::string> why = explain(judge, state, set, static_cast<int>(i), found);
    if (!why) return tl::unexpected<Error>(why.error());
    return std::optional<Outcome>(
        WrongResult{state.c->name, state.tensors[i].tensor->name, *why, worst, tolerance});
  }
  return std::optional<Outcome>();
}

}  // namespace kernelpro
