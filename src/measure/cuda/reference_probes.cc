// SPDX-License-Identifier: Apache-2.0
// CudaReference: what probes change after drawing, and how exact their results can be.
#include <algorithm>

#include "core/key.h"
#include "measure/cuda/reference.h"
#include "measure/judge/probes.h"

namespace kernelpro {

Result<void> CudaReference::reshape(const CudaCase& state, int set, std::uint64_t seed,
                                    const std::vector<kp::ShapeSpec>& specs) {
  Json message = about(state, "reshape", set);
  message["seed"] = seed;
  message["specs"] = *parse_json(shape_specs_to_json(specs));
  KP_TRY(trusted(judge_.ask(message, kJudgeTimeout), "the judge"));
  return {};
}

Result<void> CudaReference::shape_drawn(CudaCase& state, int set, const SetContent& content) {
  if (content.kind == DrawKind::kLowBits) return lean(state, set, content.key);
  const std::uint64_t word = kp::subkey(content.key, kp::kShapeStream);
  int linear = -1;
  if (content.kind == DrawKind::kSparse && state.linear && !state.linear->empty()) {
    linear = (*state.linear)[word % state.linear->size()];
  }
  const std::vector<kp::ShapeSpec> specs =
      probe_shapes(task_, state.tensors, content.kind, word, linear);
  if (specs.empty()) return {};
  return reshape(state, set, word, specs);
}

// Native references have no operators whose operands could be rounded: their inputs are nudged
// instead. So are those of all sparse probes, whose sums are short.
bool CudaReference::wants_nudging(const CudaCase& state, DrawKind kind) const {
  if (!probe_varies(kind) || settings_.policy != Policy::kContract) return false;
  if (settings_.module != nullptr && kind != DrawKind::kSparse) return false;
  return state.plan.wide && state.numerics == Numerics::kFloat64;
}

// Into the set's outputs. False without enough memory for it.
Result<bool> CudaReference::compute_nudged(CudaCase& state, int set, const SetContent& content) {
  if (content.kind == DrawKind::kSparse) state.nudged.clear();
  KP_TRY(reshape(state, set, kp::subkey(content.key, kp::kNudgeStream),
                 nudge_shapes(state.tensors, task_.precision, !state.shares_parameters(set))));
  if (settings_.module == nullptr) {
    KP_TRY(compute_native(state, set, false));
    KP_TRY(trusted(judge_.ask(about(state, "narrow", set), kJudgeTimeout), "the judge"));
    return true;
  }
  KP_TRY(attach_outputs(state, set));
  return settings_.module->compute(*state.c, kRoundedSet, Numerics::kFloat64, false).has_value();
}

Result<void> CudaReference::admit_nudged(CudaCase& state, int set, DrawKind kind) {
  if (kind == DrawKind::kSparse) {
    KP_ASSIGN(state.nudged, deviations(judge_, state, set));
  }
  KP_ASSIGN(state.admitted[kind], ask_admitted(state, set));
  if (kind != DrawKind::kSparse || settings_.module == nullptr) return {};
  // Still attached to the set's outputs.
  if (!settings_.module->compute(*state.c, kRoundedSet, Numerics::kStrict, false)) {
    state.nudged.clear();
    return {};
  }
  KP_ASSIGN(const std::vector<Deviation> plain, deviations(judge_, state, set));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    state.nudged[i].norm = std::max(state.nudged[i].norm, kPlainRoom * plain[i].norm);
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

// Whether all floating results are multiplied by a power of two when this input is.
Result<bool> CudaReference::scales(CudaCase& state, int set, int tensor) {
  std::vector<std::vector<OutputLook>> looks;
  const SetContent given{fresh_key(), DrawKind::kGiven};
  for (const float factor : kLinearFactors) {
    bool changed = true;
    KP_TRY(draw(state, set, given, &changed));
    KP_TRY(reshape(state, set, 0, power_shapes(state.tensors, tensor, factor)));
    KP_TRY(compute(state, set));
    KP_TRY(look(state, set, false));
    auto& all = looks.emplace_back();
    std::size_t output = 0;
    for (const JudgeTensor& t : state.judged) {
      if (!t.output) continue;
      const ExpectedLook& found = state.looks[static_cast<std::size_t>(set)][output++];
      if (!is_floating(t.dtype)) continue;
      if (found.not_finite > 0) return false;
      all.push_back({found.rms, found.low, found.high});
    }
  }
  return is_linear(looks[0], looks[1], looks[2]);
}

Result<std::vector<int>> CudaReference::linear_inputs(CudaCase& state, int set) {
  if (state.linear) return *state.linear;
  std::vector<int> linear;
  if (state.plan.wide && state.numerics == Numerics::kFloat64) {
    state.contents[static_cast<std::size_t>(set)].reset();
    for (const int tensor : linear_candidates(task_)) {
      const Result<bool> found = scales(state, set, tensor);
      // A reference that cannot take such values is not linear in them.
      if (!found && found.error().kind != ErrorKind::kTask) {
        return tl::unexpected<Error>(found.error());
      }
      if (!found || !*found || state.lesser[static_cast<std::size_t>(set)]) {
        linear.clear();
        break;
      }
      linear.push_back(tensor);
    }
  }
  state.linear = linear;
  return linear;
}

}  // namespace kernelpro
