// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/case.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/task/mismatch.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kExplainBytes = 64 << 20;  // limit for fetching an output to explain it

Json keys_json(const SetKeys& keys) {
  Json all = Json::array();
  for (const auto& [set, key] : keys) all.push_back(Json::array({set, key}));
  return all;
}

}  // namespace

std::pair<DrawKind, int> named_kind(const SetContent& content, const Task& task) {
  const std::uint64_t word = kp::subkey(content.key, kp::kShapeStream);
  return {content.kind, named_input(content.kind, task, word)};
}

Json about(const CudaCase& state, const char* what, int set) {
  return {{"do", what}, {"case", state.c->name}, {"set", set}};
}

namespace {

// Descriptors of a set's slots, one frame at a time.
Result<void> share_set(CudaLink& judge, CudaCase& state, int set) {
  auto& memory = state.memory.emplace_back();
  const std::size_t count = state.layout.slots.size();
  for (std::size_t first = 0; first < count; first += kFdsPerFrame) {
    std::vector<int> slots;
    for (std::size_t i = first; i < std::min(count, first + kFdsPerFrame); ++i) {
      slots.push_back(static_cast<int>(i));
    }
    Json message = about(state, "share", set);
    message["slots"] = slots;
    message["expected"] = false;
    KP_ASSIGN(Reply shared, trusted(judge.ask(message, kJudgeTimeout), "the judge"));
    const Json own = JsonReader(shared.json).array("own");
    std::size_t next = 0;
    for (std::size_t k = 0; k < slots.size() && k < own.size(); ++k) {
      if (!own[k].is_boolean() || !own[k].get<bool>() || next >= shared.fds.size()) continue;
      memory.emplace_back(slots[k], std::move(shared.fds[next++]));
    }
  }
  return {};
}

}  // namespace

Result<CudaCase> open_case(CudaLink& judge, const Task& task, const Case& c, Policy policy,
                           const MemoryPlan& plan) {
  CudaCase state;
  state.c = &c;
  state.plan = plan;
  state.tensors = shaped_tensors(task, c);
  state.judged = judge_tensors(task, c, policy, plan.wide);
  state.multiplies = multiplies(task, c);
  const int sharing = plan.share_parameters ? plan.rotation : 0;
  KP_ASSIGN(Reply opened,
            trusted(judge.ask({{"do", "open"},
                               {"case", c.name},
                               {"tensors", *parse_json(judge_tensors_to_json(state.judged))},
                               {"workspace", static_cast<std::uint64_t>(workspace_bytes(task, c))},
                               {"sets", plan.sets()},
                               {"sharing", sharing}},
                              kJudgeTimeout),
                    "the judge"));
  const auto layout = layout_from_json(dump_json(opened.json["layout"]));
  const auto reference = layout_from_json(dump_json(opened.json["reference_layout"]));
  KP_ASSERT(layout && reference);
  state.layout = *layout;
  state.reference_layout = *reference;
  for (int set = 0; set < plan.sets(); ++set) KP_TRY(share_set(judge, state, set));
  state.contents.resize(static_cast<std::size_t>(plan.sets()));
  state.looks.resize(static_cast<std::size_t>(plan.sets()));
  state.lesser.resize(static_cast<std::size_t>(plan.sets()));
  return state;
}

Result<void> poison(CudaLink& judge, const CudaCase& state, const SetKeys& keys, bool slack) {
  Json message = about(state, "poison", 0);
  message["keys"] = keys_json(keys);
  message["slack"] = slack;
  KP_TRY(trusted(judge.ask(message, kJudgeTimeout), "the judge"));
  return {};
}

namespace {

std::string slot_name(const CudaCase& state, int slot) {
  const auto i = static_cast<std::size_t>(slot);
  return i < state.tensors.size() ? state.tensors[i].tensor->name : "workspace";
}

}  // namespace

std::optional<Outcome> intrusion_outcome(const CudaCase& state, const Json& intrusions) {
  for (const Json& item : intrusions) {
    const JsonReader r(item);
    const int slot = static_cast<int>(r.integer("slot"));
    const std::string name = slot_name(state, slot);
    const std::string what = r.text("what");
    if (what == "input") {
      const auto i = static_cast<std::size_t>(slot);
      return Rejected{
          "input-mutation",
          "the input " + name + " was changed" +
              (r.flag("where_known")
                   ? ": " + std::to_string(r.natural("count")) + " elements, first at " +
                         coordinates(state.tensors[i].shape, r.integer("where"))
                   : std::string())};
    }
    return Rejected{"out-of-bounds", "memory " + std::to_string(r.natural("where")) + " bytes " +
                                         (what == "before" ? "before the start" : "past the end") +
                                         " of " + name + " was written"};
  }
  return std::nullopt;
}

namespace {

double read_number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.is_string() ? json.get<std::string>() : "nan";
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

// For outputs too large to fetch: the first wrong element and its expected value.
Result<std::string> explain_window(CudaLink& judge, const CudaCase& state, int set, int tensor,
                                   std::uint64_t first) {
  Json message = about(state, "window", set);
  message["tensor"] = tensor;
  message["first"] = first;
  message["count"] = 4096u;
  KP_ASSIGN(const Reply reply, trusted(judge.ask(message, kJudgeTimeout), "the judge"));
  const JsonReader r(reply.json);
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
  // A few elements may equal their poison by chance.
  if (unwritten > 0 && unwritten + unwritten / 1000 >= bad) {
    return count + ": they were never written, first at " +
           coordinates(shaped.shape, found.integer("first"));
  }
  if (shaped.elements * 8 <= kExplainBytes) {
    const Result<std::string> got = fetch_tensor(judge, state, set, tensor, false);
    const Result<std::string> want = fetch_tensor(judge, state, set, tensor, true);
    if (got && want) {
      const Expected expected =
          make_expected(shaped, want->data(), state.judged[static_cast<std::size_t>(tensor)].rule);
      const Comparison comparison = compare_output(shaped, got->data(), expected);
      if (!comparison.ok()) {
        return describe_mismatch(shaped, got->data(), expected, comparison,
                                 make_poison(shaped.tensor->dtype, 0));
      }
    }
  }
  KP_ASSIGN(const std::string values,
            explain_window(judge, state, set, tensor, found.natural("first")));
  const std::uint64_t nan = found.natural("not_a_number");
  return count + (nan > 0 ? " (" + std::to_string(nan) + " are NaN)" : "") + ", first at " +
         coordinates(shaped.shape, found.integer("first")) + ": " + values + "; last at " +
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
  KP_TRY(trusted(judge.ask(message, kJudgeTimeout), "the judge"));
  return read_file(join(folder.path(), "tensor"), 8LL << 30);
}

namespace {

// The fault in one set's findings, or nullopt.
Result<std::optional<Outcome>> outcome_of(CudaLink& judge, const CudaCase& state, int set,
                                          const Json& findings, double* max_error) {
  const JsonReader r(findings);
  if (auto outcome = intrusion_outcome(state, r.array("intrusions"))) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  std::size_t output = 0;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (!state.judged[i].output) continue;
    const Json& item = r.array("outputs").at(output++);
    const JsonReader found(item);
    const double worst = item["worst"].is_number() ? found.real("worst") : INFINITY;
    const double allowed = allowed_error(state.judged[i].rule);
    if (found.natural("bad") == 0) {
      if (allowed > 0) *max_error = std::max(*max_error, worst / allowed);
      continue;
    }
    KP_ASSIGN(const std::string why, explain(judge, state, set, static_cast<int>(i), found));
    return std::optional<Outcome>(
        WrongResult{state.c->name, state.tensors[i].tensor->name, why, worst, allowed});
  }
  return std::optional<Outcome>();
}

}  // namespace

Result<std::optional<SetVerdict>> verify(CudaLink& judge, const CudaCase& state,
                                         const std::vector<int>& sets, bool intrusions,
                                         const SetKeys& then_poison, double* max_error) {
  Json message = about(state, "verify", 0);
  message["sets"] = sets;
  message["intrusions"] = intrusions;
  message["then_poison"] = keys_json(then_poison);
  KP_ASSIGN(const Reply reply, trusted(judge.ask(message, kJudgeTimeout), "the judge"));
  const Json& findings = JsonReader(reply.json).array("sets");
  KP_ASSERT(findings.size() == sets.size());
  for (std::size_t k = 0; k < sets.size(); ++k) {
    KP_ASSIGN(auto outcome, outcome_of(judge, state, sets[k], findings[k], max_error));
    if (outcome) return std::optional<SetVerdict>(SetVerdict{sets[k], std::move(*outcome)});
  }
  return std::optional<SetVerdict>();
}

Result<std::vector<Deviation>> deviations(CudaLink& judge, const CudaCase& state, int set) {
  Json message = about(state, "deviations", set);
  message["shapes"] = Json::array();
  for (const Shaped& t : state.tensors) {
    if (t.tensor->role == Role::kOutput && state.multiplies) message["shapes"].push_back(t.shape);
  }
  KP_ASSIGN(const Reply reply, trusted(judge.ask(message, kJudgeTimeout), "the judge"));
  std::vector<Deviation> all;
  for (const Json& item : JsonReader(reply.json).array("outputs")) {
    Deviation& found = all.emplace_back();
    found.norm = read_number(item["norm"]);
    found.worst = read_number(item["worst"]);
    found.common = read_number(item["common"]);
    found.relative = read_number(item["relative"]);
    found.relative_worst = read_number(item["relative_worst"]);
    found.changed = read_number(item["changed"]);
    found.lost = read_number(item["lost"]);
    for (const Json& mean : item["means"]) found.means.push_back(read_number(mean));
  }
  return all;
}

Result<bool> forget_broken_sets(CudaLink& judge, CudaCase& state) {
  KP_ASSIGN(const Reply reply,
            trusted(judge.ask(about(state, "broken", 0), kJudgeTimeout), "the judge"));
  bool any = false;
  for (const Json& set : JsonReader(reply.json).array("sets")) {
    const auto i = set.is_number_unsigned() ? set.get<std::size_t>() : state.contents.size();
    if (i >= state.contents.size() || !state.contents[i]) continue;
    state.contents[i].reset();
    any = true;
  }
  return any;
}

}  // namespace kernelpro
