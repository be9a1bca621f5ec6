// SPDX-License-Identifier: Apache-2.0
// CudaReference: what probes change after drawing, and how exact their results can be.
#include <algorithm>
#include <cmath>

#include "core/task/key.h"
#include "measure/cuda/reference.h"
#include "measure/judge/probes.h"

namespace kernelpro {

// Whether anything changed.
Result<bool> CudaReference::reshape(const CudaCase& state, int set, std::uint64_t seed,
                                    const std::vector<kp::ShapeSpec>& specs) {
  Json message = about(state, "reshape", set);
  message["seed"] = seed;
  message["specs"] = *parse_json(shape_specs_to_json(specs));
  KP_ASSIGN(const Reply reply, trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  return JsonReader(reply.json).flag("changed");
}

Result<void> CudaReference::shape_drawn(CudaCase& state, int set, const SetContent& content,
                                        bool* changed) {
  if (content.kind == DrawKind::kLowBits) return lean(state, set, content.key);
  const std::uint64_t word = kp::subkey(content.key, kp::kShapeStream);
  if (has_short_sums(content.kind)) {
    if (!state.contractions.empty()) {
      KP_ASSIGN(*changed, reshape(state, set, word,
                                  short_sum_shapes(state.tensors, state.contractions, content.kind,
                                                   word, state.addend)));
    }
    return {};
  }
  int linear = -1;
  if (content.kind == DrawKind::kSparse && state.linear && !state.linear->empty()) {
    linear = (*state.linear)[word % state.linear->size()];
  }
  const std::vector<kp::ShapeSpec> specs = probe_shapes(
      task_, state.tensors, content.kind, word, linear, state.addend, level_of(state, content));
  if (specs.empty()) return {};
  KP_ASSIGN(const bool reshaped, reshape(state, set, word, specs));
  *changed = *changed && reshaped;
  return {};
}

// Native references have no operators whose operands could be rounded: their inputs are nudged
// instead. So are those of all sparse probes, whose sums are short.
bool CudaReference::wants_nudging(const CudaCase& state, DrawKind kind) const {
  if (!wants_nudged(kind) || settings_.policy != Policy::kContract) return false;
  if (settings_.module != nullptr && !shows_products(kind)) return false;
  return state.plan.wide && state.numerics == Numerics::kFloat64;
}

// Results of inputs that are nudged by `by` times the usual, into the set's outputs.
Result<void> CudaReference::nudge_native(CudaCase& state, int set, const kp::Key& key, double by) {
  const bool parameters = !state.shares_parameters(set);
  KP_TRY(reshape(state, set, kp::subkey(key, kp::kNudgeStream),
                 nudge_shapes(state.tensors, task_.precision, parameters, by)));
  KP_TRY(compute_native(state, set, false));
  KP_TRY(trusted(judge_.ask(about(state, "narrow", set), kJudgeTimeout), "the judge"));
  return {};
}

bool CudaReference::wants_norm(const CudaCase& state, const SetContent& content) const {
  return shows_norm(content.kind) && settings_.policy == Policy::kContract && state.plan.wide &&
         state.numerics == Numerics::kFloat64 && norms_apply(task_) &&
         !state.norms.contains(named_kind(content, task_));
}

// Once: how many inputs a result depends on, where that is not known from the shapes. Leaves the
// set's contents changed.
Result<void> CudaReference::measure_reach(CudaCase& state, int set, const SetContent& content) {
  state.reach = 1;
  if (settings_.module != nullptr || !wants_reach(task_, *state.c)) return {};
  bool changed = true;
  const std::uint64_t word = kp::subkey(content.key, kp::kNudgeStream);
  KP_TRY(reshape(state, set, word, few_shapes(state.tensors)));
  KP_TRY(compute_native(state, set, false));
  KP_TRY(trusted(judge_.ask(about(state, "narrow", set), kJudgeTimeout), "the judge"));
  KP_TRY(draw(state, set, content, &changed));
  KP_TRY(compute(state, set));
  KP_TRY(look(state, set, false));
  KP_ASSIGN(const std::vector<Deviation> found, deviations(judge_, state, set));
  for (const Deviation& each : found) {
    state.reach = std::max(state.reach, reach_of(state.tensors, each.changed));
  }
  return {};
}

// Once for each kind of contents, of the set's expected results. Those of a native reference on
// nudged inputs are in the outputs.
Result<void> CudaReference::measure_norm(CudaCase& state, int set, const SetContent& content) {
  std::vector<Deviation>& known = state.norms[named_kind(content, task_)];
  if (state.numerics != Numerics::kFloat64 || state.lesser[static_cast<std::size_t>(set)]) {
    return {};
  }
  std::vector<Deviation> found;
  const auto add = [&](double by) -> Result<void> {
    KP_ASSIGN(const std::vector<Deviation> now, deviations(judge_, state, set));
    found.resize(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) raise(now[i], by, &found[i]);
    return {};
  };
  if (settings_.module == nullptr) {
    // Parameters in common were not nudged.
    KP_TRY(add(state.shares_parameters(set) ? 1.4142135623730951 : 1));
    const double length = plain_length(task_, *state.c, state.reach, content.kind);
    for (Deviation& each : found) each = with_sums(each, length);
  } else {
    KP_TRY(attach_outputs(state, set));
    for (int run = few_elements(state) ? kNormRuns : 1; run >= 0; --run) {
      const bool plain = run == 0;
      const Numerics numerics = plain ? Numerics::kStrict : Numerics::kTight;
      if (!ask_module(state, kRoundedSet, numerics, false)) return {};
      KP_TRY(add(plain ? kPlainRoom : 1));
    }
  }
  std::size_t output = 0;
  for (const JudgeTensor& t : state.judged) {
    if (!t.output) continue;
    const ExpectedLook& look = state.looks[static_cast<std::size_t>(set)][output];
    const double largest = std::max(std::fabs(look.low), std::fabs(look.high));
    const bool half = t.dtype == DType::kFp16 || t.dtype == DType::kBf16;
    const Deviation seen = half ? narrowed(found[output]) : found[output];
    found[output] = steady(seen, t.elements, largest, look.rms);
    ++output;
  }
  known = found;
  return {};
}

// Into the set's outputs. False without enough memory for it.
Result<bool> CudaReference::compute_nudged(CudaCase& state, int set, const SetContent& content) {
  state.nudged.erase(content.kind);
  if (settings_.module == nullptr) {
    KP_TRY(nudge_native(state, set, content.key, 1));
    return true;
  }
  KP_TRY(reshape(state, set, kp::subkey(content.key, kp::kNudgeStream),
                 nudge_shapes(state.tensors, task_.precision, !state.shares_parameters(set))));
  KP_TRY(attach_outputs(state, set));
  return ask_module(state, kRoundedSet, Numerics::kFloat64, false).has_value();
}

Result<void> CudaReference::admit_nudged(CudaCase& state, int set, const SetContent& content) {
  const DrawKind kind = content.kind;
  if (shows_products(kind)) {
    KP_ASSIGN(state.nudged[kind], deviations(judge_, state, set));
  }
  if (shows_lost(kind) && norms_apply(task_)) {
    KP_ASSIGN(state.lost[named_kind(content, task_)], deviations(judge_, state, set));
  }
  KP_ASSIGN(state.admitted[kind], ask_admitted(state, set));
  if (!shows_products(kind) || settings_.module == nullptr) return {};
  // Still attached to the set's outputs.
  if (!ask_module(state, kRoundedSet, Numerics::kStrict, false)) {
    state.nudged.erase(kind);
    return {};
  }
  KP_ASSIGN(const std::vector<Deviation> plain, deviations(judge_, state, set));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    double& norm = state.nudged[kind][i].norm;
    norm = std::max(norm, kPlainRoom * plain[i].norm);
  }
  return {};
}

Result<void> CudaReference::make_room(CudaCase& state, int set, DrawKind kind) {
  if (settings_.policy != Policy::kContract || least_scale(kind) == 0) return {};
  const auto known = state.admitted.find(kind);
  std::vector<Admitted> room;
  for (const ExpectedLook& look : state.looks[static_cast<std::size_t>(set)]) {
    Admitted& each = room.emplace_back();
    each.least = least_scale(kind) * look.rms;
    if (known == state.admitted.end() || room.size() > known->second.size()) continue;
    each.least = std::max(each.least, known->second[room.size() - 1].least);
  }
  return tell_least(state, set, room);
}

// The floating results of reshaped inputs; nullopt if some are not finite.
Result<std::optional<std::vector<OutputLook>>> CudaReference::look_at(
    CudaCase& state, int set, const SetContent& given, const std::vector<kp::ShapeSpec>& specs) {
  using Looks = std::optional<std::vector<OutputLook>>;
  bool changed = true;
  KP_TRY(draw(state, set, given, &changed));
  KP_TRY(reshape(state, set, 0, specs));
  KP_TRY(compute(state, set));
  KP_TRY(look(state, set, false));
  std::size_t output = 0;
  for (const JudgeTensor& t : state.judged) {
    if (!t.output) continue;
    const ExpectedLook& found = state.looks[static_cast<std::size_t>(set)][output++];
    if (is_floating(t.dtype) && found.not_finite > 0) return Looks();
  }
  return Looks(floating_looks(state, set));
}

// The results of a probe's background alone.
Result<std::optional<std::vector<OutputLook>>> CudaReference::look_at_background(
    CudaCase& state, int set, const SetContent& content) {
  const std::uint64_t word = kp::subkey(content.key, kp::kShapeStream);
  const std::vector<kp::ShapeSpec> specs = background_alone(
      probe_shapes(task_, state.tensors, content.kind, word, -1, false, level_of(state, content)));
  if (specs.empty()) return std::optional<std::vector<OutputLook>>();
  return look_at(state, set, {content.key, DrawKind::kGiven}, specs);
}

std::vector<OutputLook> floating_looks(const CudaCase& state, int set) {
  std::vector<OutputLook> all;
  std::size_t output = 0;
  for (const JudgeTensor& t : state.judged) {
    if (!t.output) continue;
    const ExpectedLook& found = state.looks[static_cast<std::size_t>(set)][output++];
    if (is_floating(t.dtype)) all.push_back({found.rms, found.low, found.high});
  }
  return all;
}

// Whether all floating results are multiplied by a power of two when this input is; `factor`:
// whether it is multiplied by another tensor.
Result<bool> CudaReference::scales(CudaCase& state, int set, int tensor, bool* factor) {
  std::vector<std::vector<OutputLook>> looks;
  const SetContent given{fresh_key(), DrawKind::kGiven};
  for (const float by : kLinearFactors) {
    KP_ASSIGN(auto found, look_at(state, set, given, power_shapes(state.tensors, tensor, by)));
    if (!found) return false;
    looks.push_back(std::move(*found));
  }
  if (!is_linear(looks[0], looks[1], looks[2])) return false;
  state.addend = state.addend || has_addend(looks[0], looks[3]);
  KP_ASSIGN(const auto together,
            look_at(state, set, given,
                    power_shapes(state.tensors, tensor, kLinearFactors[0], kOtherFactor,
                                 !state.shares_parameters(set))));
  *factor = together && is_factor(looks[0], *together);
  return true;
}

Result<std::vector<int>> CudaReference::linear_inputs(CudaCase& state, int set) {
  if (state.linear) return *state.linear;
  std::vector<int> linear, factors;
  if (state.plan.wide && state.numerics == Numerics::kFloat64) {
    state.contents[static_cast<std::size_t>(set)].reset();
    for (const int tensor : linear_candidates(task_)) {
      bool factor = false;
      const Result<bool> found = scales(state, set, tensor, &factor);
      // A reference that cannot take such values is not linear in them.
      if (!found && found.error().kind != ErrorKind::kTask) {
        return tl::unexpected<Error>(found.error());
      }
      if (!found || !*found || state.lesser[static_cast<std::size_t>(set)]) {
        linear.clear();
        factors.clear();
        break;
      }
      linear.push_back(tensor);
      if (factor) factors.push_back(tensor);
    }
  }
  state.linear = factors.empty() ? linear : factors;
  const SetContent given{fresh_key(), DrawKind::kGiven};
  const auto contractions = find_contractions(
      state.tensors, factors,
      [&](const std::vector<kp::ShapeSpec>& specs) { return look_at(state, set, given, specs); });
  if (contractions) {
    state.contractions = *contractions;
  } else if (contractions.error().kind != ErrorKind::kTask) {
    return tl::unexpected<Error>(contractions.error());
  }
  return *state.linear;
}

}  // namespace kernelpro
