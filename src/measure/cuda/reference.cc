// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/reference.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "measure/cuda/capture.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

std::vector<kp::DrawSpec> native_specs(const Task& task, DrawKind kind) {
  std::vector<Init> inits;
  for (const ProbePlan& plan : plan_probes(task)) {
    if (plan.kind == kind) inits = plan.inits;
  }
  std::vector<kp::DrawSpec> specs;
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    Tensor tensor = task.tensors[i];
    if (i < inits.size()) tensor.init = inits[i];
    specs.push_back(draw_spec(tensor));
  }
  return specs;
}

Error at_case(Error error, const CudaCase& state) {
  error.message += " (case " + state.c->name + ")";
  return error;
}

// One set's buffers for the module's process: inputs, parameters, expected results.
Result<std::vector<SharedBuffer>> buffers_of(CudaLink& judge, const CudaCase& state, int set,
                                             std::vector<Fd>* keep) {
  std::vector<SharedBuffer> buffers;
  const auto add = [&](std::size_t i, int fd, const AddressLayout::Slot& slot, bool expected) {
    SharedBuffer b;
    b.tensor = static_cast<int>(i);
    b.expected = expected;
    b.wide = expected && state.judged[i].wide && is_floating(state.judged[i].dtype);
    b.fd = fd;
    b.bytes = slot.mapping_bytes;
    b.offset = slot.address - slot.mapping;
    buffers.push_back(b);
  };
  std::vector<int> outputs;
  for (std::size_t i = 0; i < state.judged.size(); ++i) {
    if (state.judged[i].output) {
      outputs.push_back(static_cast<int>(i));
      continue;
    }
    int fd = -1;
    for (const int from : {0, set}) {
      for (const auto& [slot, descriptor] : state.memory[static_cast<std::size_t>(from)]) {
        if (slot == static_cast<int>(i)) fd = descriptor.get();
      }
    }
    add(i, fd, state.layout.slots[i], false);
  }
  for (std::size_t first = 0; first < outputs.size(); first += kFdsPerFrame) {
    const std::size_t end = std::min(outputs.size(), first + kFdsPerFrame);
    const std::vector<int> part(outputs.begin() + static_cast<std::ptrdiff_t>(first),
                                outputs.begin() + static_cast<std::ptrdiff_t>(end));
    Json message = about(state, "share", set);
    message["slots"] = part;
    message["expected"] = true;
    KP_ASSIGN(Reply shared, trusted(judge.ask(message, kJudgeTimeout), "the judge"));
    KP_ASSERT(shared.fds.size() == part.size());
    for (std::size_t k = 0; k < part.size(); ++k) {
      const auto i = static_cast<std::size_t>(part[k]);
      add(i, shared.fds[k].get(), state.reference_layout.slots[i], true);
      keep->push_back(std::move(shared.fds[k]));
    }
  }
  return buffers;
}

}  // namespace

Result<void> CudaReference::attach(CudaCase& state) {
  if (settings_.module != nullptr) {
    for (int set = 0; set < state.sets(); ++set) {
      std::vector<Fd> keep;
      KP_ASSIGN(const auto buffers, buffers_of(judge_, state, set, &keep));
      KP_TRY(settings_.module->attach(task_, *state.c, set, buffers));
    }
    return {};
  }
  if (state.reference.form == Binary::Form::kPlanForm) {
    state.reference_plan = state.reference.plan;
    return {};
  }
  KP_ASSIGN(CudaLink link, CudaLink::start(WorkerRole::kCudaCapture, settings_.gpu, Queues::kOne));
  KP_ASSIGN(auto captured, capture_plan(std::move(link), state.reference, "reference",
                                        state.reference_layout, settings_.timeout_s));
  if (const auto* outcome = std::get_if<Outcome>(&captured)) {
    return fail(ErrorKind::kTask, "the reference " + outcome_summary(*outcome),
                "correct the task's reference.cu");
  }
  state.reference_plan = std::get<LaunchPlan>(captured);
  return {};
}

Result<void> CudaReference::draw(CudaCase& state, int set, const SetContent& content,
                                 bool* changed) {
  if (settings_.module != nullptr) {
    const Result<DrawFacts> facts =
        settings_.module->draw(*state.c, set, seed_of(content.key), content.kind);
    if (!facts) return tl::unexpected<Error>(at_case(facts.error(), state));
    *changed = facts->changed;
    // A kernel that cached a prepared weight in one call finds a different one in the next. Set 0
    // keeps the module's own.
    const bool shared = state.plan.share_parameters && set < state.plan.rotation;
    if (content.kind != DrawKind::kGiven) return shape_drawn(state, set, content, changed);
    if (set == 0 || shared) return {};
    Json vary = about(state, "vary", set);
    vary["key"] = key_to_text(content.key);
    KP_TRY(trusted(judge_.ask(vary, kJudgeTimeout), "the judge"));
    return {};
  }
  Json message = about(state, "draw", set);
  message["key"] = key_to_text(content.key);
  message["specs"] = *parse_json(draw_specs_to_json(native_specs(task_, content.kind)));
  KP_TRY(trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  return shape_drawn(state, set, content, changed);
}

Result<void> CudaReference::lean(const CudaCase& state, int set, const kp::Key& key) {
  Json message = about(state, "lean", set);
  message["key"] = key_to_text(key);
  KP_TRY(trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  return {};
}

Result<ComputeFacts> CudaReference::ask_module(const CudaCase& state, int set, Numerics numerics,
                                               bool twice) {
  Result<ComputeFacts> facts = settings_.module->compute(*state.c, set, numerics, twice);
  if (facts) module_ms_ += facts->milliseconds;
  return facts;
}

Result<void> CudaReference::compute_module(CudaCase& state, int set, bool twice) {
  char& lesser = state.lesser[static_cast<std::size_t>(set)];
  lesser = false;
  Result<ComputeFacts> facts = ask_module(state, set, state.numerics, twice);
  if (!facts && state.numerics == Numerics::kFloat64 && facts.error().kind != ErrorKind::kTask) {
    // An operation has no float64: use the declared types. If float64 worked before, other work on
    // the GPU took the memory: only these inputs fall back.
    if (!state.self_checked) state.numerics = Numerics::kStrict;
    lesser = state.self_checked;
    facts = ask_module(state, set, Numerics::kStrict, twice);
  }
  if (!facts) return tl::unexpected<Error>(at_case(facts.error(), state));
  if (!facts->random.empty()) {
    return fail(
        ErrorKind::kTask,
        "the module's result is random, so that nothing can be compared with it: " + facts->random,
        "put it into evaluation mode (self.eval() at the end of __init__), or take the "
        "random part out of forward");
  }
  return {};
}

Result<void> CudaReference::compute_native(CudaCase& state, int set, bool twice) {
  Json run = about(state, "reference", set);
  run["cubin"] = state.reference.cubin;
  run["plan"] = *parse_json(plan_to_json(state.reference_plan));
  run["again"] = twice;
  Answer answer = judge_.ask(run, 2 * settings_.timeout_s + 30);
  if (const auto* lost = std::get_if<Lost>(&answer)) {
    return fail(ErrorKind::kTask, "the reference of case " + state.c->name + ": " + lost->how,
                "run reference.cu by itself and fix it");
  }
  KP_ASSIGN(const Reply reply, trusted(std::move(answer), "the judge"));
  if (JsonReader(reply.json).flag("agrees")) return {};
  return fail(ErrorKind::kTask,
              "the reference disagrees with itself: two runs on the same inputs differ (case " +
                  state.c->name + ")",
              "look for elements that reference.cu does not write, or for a race");
}

Result<void> CudaReference::compute(CudaCase& state, int set) {
  const bool twice = !state.self_checked;
  if (settings_.module != nullptr) {
    KP_TRY(compute_module(state, set, twice));
  } else {
    KP_TRY(compute_native(state, set, twice));
  }
  state.self_checked = true;
  return {};
}

Result<void> CudaReference::look(CudaCase& state, int set, bool typical) {
  Json message = about(state, "seal", set);
  message["typical"] = typical;
  KP_ASSIGN(const Reply sealed, trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  auto& looks = state.looks[static_cast<std::size_t>(set)];
  looks.clear();
  for (const Json& item : JsonReader(sealed.json).array("outputs")) {
    const JsonReader r(item);
    looks.push_back(
        {r.real("rms"), r.real("low"), r.real("high"), r.natural("not_finite"), r.natural("seal")});
  }
  return {};
}

Result<CudaReference::Filled> CudaReference::fill(CudaCase& state, int set,
                                                  const SetContent& content) {
  auto& now = state.contents[static_cast<std::size_t>(set)];
  if (now == content) {
    Filled filled;
    filled.usable = shows_something(state, set, content.kind);
    return filled;
  }
  for (;;) {
    now.reset();
    bool decided = true;
    std::optional<std::vector<OutputLook>> background;
    if (content.kind == DrawKind::kSparing) {
      state.norms.erase(named_kind(content, task_));  // it belongs to these contents
      auto looked = look_at_background(state, set, content);
      // A reference that cannot take the background alone says nothing about it.
      if (!looked && looked.error().kind != ErrorKind::kTask) {
        return tl::unexpected<Error>(looked.error());
      }
      if (looked) background = std::move(*looked);
    }
    KP_ASSIGN(Filled filled, fill_once(state, set, content));
    if (content.kind == DrawKind::kSparing && filled.changed) {
      decided = background && few_decide(floating_looks(state, set), *background);
      filled.usable = filled.usable && decided;
    }
    if (filled.changed && decided) now = content;
    int& level = level_of(state, content);
    if (!filled.changed || filled.usable) return filled;
    if (level + 1 >= probe_levels(content.kind)) {
      filled.changed = decided;
      return filled;
    }
    ++level;
    state.admitted.erase(content.kind);  // of other values
    state.norms.erase(named_kind(content, task_));
  }
}

Result<CudaReference::Filled> CudaReference::fill_once(CudaCase& state, int set,
                                                       const SetContent& content) {
  Filled filled;
  const double start = real_clock().now_s();
  KP_TRY(draw(state, set, content, &filled.changed));
  if (!filled.changed) return filled;
  bool nudged = wants_nudging(state, content.kind);
  bool norm = wants_norm(state, content);
  if (norm && settings_.module == nullptr) {
    if (state.reach == 0) KP_TRY(measure_reach(state, set, content));
    KP_TRY(nudge_native(state, set, content.key, norm_nudge(task_, *state.c)));
    KP_TRY(draw(state, set, content, &filled.changed));
    if (nudged) {  // by another size, into the same outputs: one after the other
      KP_TRY(compute(state, set));
      KP_TRY(look(state, set, false));
      KP_TRY(measure_norm(state, set, content));
      norm = false;
    }
  }
  if (nudged) {
    KP_ASSIGN(nudged, compute_nudged(state, set, content));
    KP_TRY(draw(state, set, content, &filled.changed));
  }
  KP_TRY(compute(state, set));
  // A probe's values may be small by cancellation, which is no kernel's fault.
  KP_TRY(look(state, set, content.kind == DrawKind::kGiven));
  // A probe is computed up to three times.
  if (content.kind == DrawKind::kGiven) {
    const double took = real_clock().now_s() - start;
    state.reference_s = state.reference_s > 0 ? std::min(state.reference_s, took) : took;
    const auto& looks = state.looks[static_cast<std::size_t>(set)];
    state.not_finite.resize(looks.size());
    for (std::size_t i = 0; i < looks.size(); ++i) {
      state.not_finite[i] = std::max(state.not_finite[i], looks[i].not_finite);
    }
  }
  if (norm) KP_TRY(measure_norm(state, set, content));
  KP_TRY(nudged ? admit_nudged(state, set, content) : admit_rounding(state, set, content));
  KP_TRY(make_room(state, set, content.kind));
  filled.usable = shows_something(state, set, content.kind);
  return filled;
}

// Whether what a set holds can be compared.
bool CudaReference::shows_something(const CudaCase& state, int set, DrawKind kind) const {
  // Without float64 there is nothing to measure small errors by.
  const auto nudged = state.nudged.find(kind);
  if (shows_products(kind) && (nudged == state.nudged.end() || nudged->second.empty() ||
                               state.lesser[static_cast<std::size_t>(set)])) {
    return false;
  }
  const auto admitted = state.admitted.find(kind);
  std::size_t output = 0;
  for (const JudgeTensor& t : state.judged) {
    if (!t.output) continue;
    const std::size_t at = output++;
    const ExpectedLook& look = state.looks[static_cast<std::size_t>(set)][at];
    const double largest = std::max(std::fabs(look.low), std::fabs(look.high));
    const std::uint64_t allowed =
        kind != DrawKind::kGiven && at < state.not_finite.size() ? state.not_finite[at] : 0;
    if (look.not_finite > allowed || largest > largest_value(t.dtype)) return false;
    if (kind == DrawKind::kGiven || admitted == state.admitted.end()) continue;
    if (at >= admitted->second.size()) continue;
    const Admitted& needed = admitted->second[at];
    if (t.rule.tolerance > 0 && needed.worst > kProbeRoom * t.rule.tolerance) return false;
    if (is_noise(t, needed)) return false;
    if (settings_.module == nullptr && needed.least > kProbeRoom * look.rms) return false;
  }
  return true;
}

int& CudaReference::level_of(CudaCase& state, const SetContent& content) const {
  return state.levels[named_kind(content, task_)];
}

Result<void> CudaReference::recompute(CudaCase& state, int set) {
  state.contents[static_cast<std::size_t>(set)].reset();
  KP_TRY(compute(state, set));
  KP_TRY(look(state, set, true));
  return admit_rounding(state, set, {kp::Key{}, DrawKind::kGiven});
}

// The effect of rounding is measured on the first set of each kind and applies to the others, if
// these are like it: it is many times the change from plain arithmetic.
Result<void> CudaReference::admit_rounding(CudaCase& state, int set, const SetContent& content) {
  const DrawKind kind = content.kind;
  if (settings_.policy != Policy::kContract || state.numerics != Numerics::kFloat64) return {};
  const auto known = state.admitted.find(kind);
  if (known != state.admitted.end() && !probe_varies(kind)) {
    return tell_least(state, set, known->second);
  }
  if (settings_.module == nullptr) return {};
  std::vector<Admitted>& measured = state.admitted[kind];
  measured.clear();
  const bool lost = shows_lost(kind) && norms_apply(task_);
  return measure_rounding(state, set, lost ? &state.lost[named_kind(content, task_)] : nullptr,
                          &measured);
}

Result<void> CudaReference::tell_least(CudaCase& state, int set,
                                       const std::vector<Admitted>& admitted) {
  Json least = Json::array();
  for (const Admitted& each : admitted) least.push_back(each.least);
  Json message = about(state, "least", set);
  message["least"] = least;
  KP_TRY(trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  return {};
}

// The set's inputs once more, as a set whose expected results are the outputs, in their types.
Result<void> CudaReference::attach_outputs(CudaCase& state, int set) {
  std::vector<Fd> keep;
  KP_ASSIGN(auto buffers, buffers_of(judge_, state, set, &keep));
  for (SharedBuffer& b : buffers) {
    if (!b.expected) continue;
    const AddressLayout::Slot& slot = state.layout.slots[static_cast<std::size_t>(b.tensor)];
    for (const int from : {0, set}) {
      for (const auto& [i, fd] : state.memory[static_cast<std::size_t>(from)]) {
        if (i == b.tensor) b.fd = fd.get();
      }
    }
    b.wide = false;
    b.bytes = slot.mapping_bytes;
    b.offset = slot.address - slot.mapping;
  }
  return settings_.module->attach(task_, *state.c, kRoundedSet, buffers);
}

Result<std::vector<Admitted>> CudaReference::ask_admitted(const CudaCase& state, int set) {
  KP_ASSIGN(const Reply reply,
            trusted(judge_.ask(about(state, "admit", set), kJudgeTimeout), "the judge"));
  std::vector<Admitted> all;
  for (const Json& item : JsonReader(reply.json).array("outputs")) {
    const JsonReader r(item);
    all.push_back({r.real("least"), r.real("worst"), r.natural("jumps")});
  }
  return all;
}

Result<void> CudaReference::measure_rounding(CudaCase& state, int set, std::vector<Deviation>* lost,
                                             std::vector<Admitted>* admitted) {
  KP_TRY(attach_outputs(state, set));
  if (lost != nullptr) lost->clear();
  for (int run = few_elements(state) ? kRoundedRuns : 1; run > 0; --run) {
    // Without enough memory for it, the rules stay unchanged.
    if (!ask_module(state, kRoundedSet, Numerics::kRounded, false)) return {};
    if (lost != nullptr) {
      KP_ASSIGN(const std::vector<Deviation> found, deviations(judge_, state, set));
      lost->resize(found.size());
      for (std::size_t k = 0; k < found.size(); ++k) raise(found[k], 1, &(*lost)[k]);
    }
    KP_ASSIGN(const std::vector<Admitted> now, ask_admitted(state, set));
    admitted->resize(now.size());
    for (std::size_t k = 0; k < now.size(); ++k) {
      Admitted& each = (*admitted)[k];
      each.least = now[k].least;
      each.worst = std::max(each.worst, now[k].worst);
      each.jumps = std::max(each.jumps, now[k].jumps);
    }
  }
  return {};
}

bool few_elements(const CudaCase& state) {
  return std::any_of(state.judged.begin(), state.judged.end(),
                     [](const JudgeTensor& t) { return t.output && t.elements < kManyRounded; });
}

bool is_noise(const JudgeTensor& output, const Admitted& needed) {
  return static_cast<double>(needed.jumps) > kNoisyShare * static_cast<double>(output.elements);
}

std::string degenerate_output(const CudaCase& state) {
  std::size_t output = 0;
  for (const JudgeTensor& t : state.judged) {
    if (!t.output) continue;
    bool constant = t.elements > 1, same = state.plan.rotation > 1, nowhere_finite = true;
    const ExpectedLook& first = state.looks[0][output];
    for (int set = 0; set < state.plan.rotation; ++set) {
      const ExpectedLook& look = state.looks[static_cast<std::size_t>(set)][output];
      const bool none = look.not_finite == static_cast<std::uint64_t>(t.elements);
      nowhere_finite = nowhere_finite && none;
      constant = constant && !none && look.not_finite == 0 && look.low == look.high;
      same = same && look.seal == first.seal;
    }
    ++output;
    if (nowhere_finite) return "the output " + t.name + " holds no finite number";
    if (constant) return "the output " + t.name + " is constant";
    // A few integers may agree by chance.
    if (same && (is_floating(t.dtype) || t.elements > 256)) {
      return "the output " + t.name + " does not depend on the inputs";
    }
  }
  return "";
}

}  // namespace kernelpro
