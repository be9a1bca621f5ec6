// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "measure/cpu/case_probes.h"
#include "measure/cpu/session.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kSetsBytes = 256 << 20;  // for all sets of a case, beyond the minimum
constexpr std::int64_t kSlotsBytes = 32 << 20;  // for all slots of a case, beyond two
constexpr int kFewestSlots = 2;
constexpr int kMostSlots = 8;

struct Sizes {
  std::int64_t inputs = 0, outputs = 0, references = 0;
};

Sizes sizes_of(const std::vector<Shaped>& tensors) {
  Sizes sizes;
  for (const Shaped& t : tensors) {
    (is_output(t) ? sizes.outputs : sizes.inputs) += t.bytes;
    if (is_output(t)) sizes.references += reference_bytes(t);
  }
  return sizes;
}

// `seconds`: what the first set took, whose reference ran twice.
std::size_t set_count(const CpuCase& state, const CpuCaseSettings& settings, double seconds) {
  if (settings.policy == Policy::kKernelBench) return kTrials;
  if (!state.c->timed) return kCheckedSets;
  const Sizes sizes = sizes_of(state.tensors);
  const auto by_memory = static_cast<std::size_t>(kSetsBytes / (sizes.inputs + sizes.references));
  const double affordable = 2 * settings.budget_s / std::max(seconds, 1e-9);
  const auto by_time = static_cast<std::size_t>(std::min(affordable, 1.0 * kMostSets));
  return std::clamp(std::min(by_memory, by_time), kFewestSets, kMostSets);
}

int slot_count(const CpuCase& state) {
  if (!state.c->timed) return kFewestSlots;
  const Sizes sizes = sizes_of(state.tensors);
  const std::int64_t fit = kSlotsBytes / (sizes.inputs + sizes.outputs);
  return static_cast<int>(std::clamp<std::int64_t>(fit, kFewestSlots, kMostSlots));
}

std::size_t place(const CpuCase& state, int slot, std::size_t tensor) {
  return static_cast<std::size_t>(slot) * state.tensors.size() + tensor;
}

}  // namespace

std::int64_t case_memory_bytes(const Task& task, const Case& c) {
  const Sizes sizes = sizes_of(shaped_tensors(task, c));
  const auto probes = static_cast<std::int64_t>(most_probes(task, c));
  const std::int64_t sets = (c.timed ? kFewestSets : kCheckedSets) + probes;
  const std::int64_t slots = (c.timed ? 2 : 1) * kFewestSlots;  // in each of two processes
  // The reference holds one more set of inputs and results.
  return (sets + slots + 1) * sizes.inputs + slots * sizes.outputs + (sets + 1) * sizes.references +
         workspace_bytes(task, c);
}

Result<CpuCase> make_cpu_case(const Task& task, const Case& c, CpuReference& reference,
                              const CpuCaseSettings& settings) {
  CpuCase state;
  state.c = &c;
  state.tensors = shaped_tensors(task, c);
  const bool contract = settings.policy == Policy::kContract;
  const int before = reference.runs();
  for (std::size_t k = 0, count = 1; k < count; ++k) {
    SetRequest request;
    request.key = contract ? fresh_key() : key_of(k);
    request.kind = contract ? DrawKind::kGiven : DrawKind::kKernelBench;
    request.twice = k == 0;
    request.vary_weights = contract && k >= 2;
    KP_ASSIGN(std::optional<InputSet> set, reference.make_set(request));
    KP_ASSERT(set.has_value());
    state.sets.push_back(std::move(*set));
    if (k == 0) {
      count = set_count(state, settings, (reference.runs() - before) * reference.fastest_s());
    }
  }
  if (contract && settings.probes) {
    CaseProbes probes;
    const Result<void> made =
        make_probes(task, c, state.tensors, settings.probe_budget_s, reference, &probes);
    // A reference that cannot take a probe's values has nothing to say about them.
    if (!made && made.error().kind != ErrorKind::kTask) return tl::unexpected<Error>(made.error());
    state.probes = std::move(probes.sets);
    state.linear = probes.linear;
  }
  state.labels = reference.labels();
  state.sum_length = plain_length(task, c, reference.reach());
  state.accounted = norms_account_for_all(task, c);
  state.slots = slot_count(state);
  state.workspace = workspace_bytes(task, c);
  return state;
}

Result<CpuBuffers> make_buffers(const CpuCase& state) {
  std::vector<BufferSpec> specs;
  for (int slot = 0; slot < state.slots; ++slot) {
    // The slot that is never timed, so that how tensors lie does not change times.
    for (const Shaped& t : state.tensors) specs.push_back({t.bytes, is_output(t), slot == 0});
  }
  if (state.workspace > 0) specs.push_back({state.workspace, true, false});
  return CpuBuffers::make(specs);
}

Result<CpuBuffers> make_small_buffers(const CpuCase& state) {
  constexpr std::int64_t kPage = 4096;
  std::vector<BufferSpec> specs;
  for (const Shaped& t : state.tensors) specs.push_back({kPage, is_output(t), false});
  return CpuBuffers::make(specs);
}

Result<InputSet> make_host_set(const Task& task, const Case& c, const Binary& reference,
                               const std::string& worker, const kp::Key& key, double timeout_s) {
  CpuReferenceSettings settings;
  settings.worker = worker;
  settings.timeout_s = timeout_s;
  KP_ASSIGN(std::unique_ptr<CpuReference> made,
            make_native_reference(task, c, reference, settings));
  SetRequest request;
  request.key = key;
  request.twice = true;
  KP_ASSIGN(std::optional<InputSet> set, made->make_set(request));
  KP_ASSERT(set.has_value());
  return std::move(*set);
}

namespace {

constexpr double kSame = 1e-9;  // rounding difference in float64 between equal values

bool same(const Expected& a, const Expected& b) {
  if (a.bytes != b.bytes || a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x)) return false;
    if (!(std::fabs(x - y) <= kSame * std::max(std::fabs(x), a.rms))) return false;
  }
  return true;
}

bool constant(const Shaped& t, const Expected& e) {
  if (t.elements < 2) return false;
  if (!e.values.empty()) {
    const double first = e.values.front();
    return std::all_of(e.values.begin(), e.values.end(), [&](double v) {
      return v == first || (std::isnan(v) && std::isnan(first)) ||
             (std::isfinite(first) && std::fabs(v - first) <= kSame * std::fabs(first));
    });
  }
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(t.tensor->dtype));
  for (std::size_t at = size; at < e.bytes.size(); at += size) {
    if (std::memcmp(e.bytes.data(), e.bytes.data() + at, size) != 0) return false;
  }
  return true;
}

}  // namespace

std::string degenerate_output(const std::vector<CpuCase>& cases) {
  if (cases.empty()) return "";
  for (std::size_t i = 0; i < cases.front().tensors.size(); ++i) {
    if (!is_output(cases.front().tensors[i])) continue;
    bool always_constant = true, always_same = true;
    for (const CpuCase& state : cases) {
      for (const InputSet& set : state.sets) {
        always_constant = always_constant && constant(state.tensors[i], set.expected[i]);
        if (set.varied) continue;  // the output may then follow the weights
        always_same = always_same && same(set.expected[i], state.sets.front().expected[i]);
      }
    }
    const std::string name = "output " + cases.front().tensors[i].tensor->name;
    if (always_constant) return name + " is constant: every element of it has the same value";
    if (always_same) return name + " does not depend on the inputs: different inputs give the same";
  }
  return "";
}

void load_inputs(const CpuCase& state, const CpuBuffers& buffers, int slot, const InputSet& set) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (set.inputs[i].empty()) continue;
    std::memcpy(buffers.data(place(state, slot, i)), set.inputs[i].data(), set.inputs[i].size());
  }
  buffers.surround(place(state, slot, 0), state.tensors.size());
}

namespace {

// Part of a tensor, and what belongs there: bytes, or else a pattern.
struct Piece {
  char* to = nullptr;
  const char* from = nullptr;
  std::int64_t bytes = 0;
  const Poison* poison = nullptr;
};
constexpr std::int64_t kPiece = 16 << 10;  // a multiple of every pattern

void add_pieces(const Piece& whole, std::vector<Piece>* pieces) {
  for (std::int64_t at = 0; at < whole.bytes; at += kPiece) {
    pieces->push_back({whole.to + at, whole.from == nullptr ? nullptr : whole.from + at,
                       std::min(kPiece, whole.bytes - at), whole.poison});
  }
}

void write_shuffled(std::vector<Piece> pieces) {
  std::uint64_t random = fresh_secret();
  for (std::size_t k = pieces.size(); k-- > 1;) {
    random = kp::mix64(random);
    std::swap(pieces[k], pieces[random % (k + 1)]);
  }
  for (const Piece& piece : pieces) {
    if (piece.poison != nullptr) {
      fill_poison(*piece.poison, piece.to, piece.bytes);
    } else {
      std::memcpy(piece.to, piece.from, static_cast<std::size_t>(piece.bytes));
    }
  }
}

std::vector<Poison> make_poisons(const CpuCase& state) {
  std::vector<Poison> poisons(state.tensors.size());
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (!is_output(state.tensors[i])) continue;
    poisons[i] = make_poison(state.tensors[i].tensor->dtype, fresh_secret());
  }
  return poisons;
}

void add_outputs(const CpuCase& state, const CpuBuffers& buffers, int slot,
                 const std::vector<Poison>& poisons, std::vector<Piece>* pieces) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (!is_output(state.tensors[i])) continue;
    add_pieces({buffers.data(place(state, slot, i)), nullptr, state.tensors[i].bytes, &poisons[i]},
               pieces);
  }
}

void add_workspace(const CpuCase& state, const CpuBuffers& buffers, const Poison& poison,
                   std::vector<Piece>* pieces) {
  const std::size_t workspace = place(state, state.slots, 0);
  if (workspace >= buffers.slots().size()) return;
  add_pieces({buffers.data(workspace), nullptr, buffers.slots()[workspace].bytes, &poison}, pieces);
}

void surround_workspace(const CpuCase& state, const CpuBuffers& buffers) {
  const std::size_t workspace = place(state, state.slots, 0);
  if (workspace < buffers.slots().size()) buffers.surround(workspace, 1);
}

}  // namespace

std::vector<Poison> poison_outputs(const CpuCase& state, const CpuBuffers& buffers, int first,
                                   int count) {
  std::vector<Piece> pieces;
  std::vector<Poison> poisons = make_poisons(state);
  for (int slot = first; slot < first + count; ++slot) {
    add_outputs(state, buffers, slot, poisons, &pieces);
  }
  const Poison noise = make_poison(DType::kFp32, fresh_secret());
  add_workspace(state, buffers, noise, &pieces);
  write_shuffled(std::move(pieces));
  surround_workspace(state, buffers);
  return poisons;
}

std::vector<Poison> reveal(const CpuCase& state, const CpuBuffers& buffers, int slot,
                           const InputSet& set) {
  std::vector<Piece> pieces;
  std::vector<Poison> poisons = make_poisons(state);
  buffers.surround(place(state, slot, 0), state.tensors.size());
  surround_workspace(state, buffers);
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    add_pieces({buffers.data(place(state, slot, i)), set.inputs[i].data(),
                static_cast<std::int64_t>(set.inputs[i].size()), nullptr},
               &pieces);
  }
  add_outputs(state, buffers, slot, poisons, &pieces);
  const Poison noise = make_poison(DType::kFp32, fresh_secret());
  add_workspace(state, buffers, noise, &pieces);
  write_shuffled(std::move(pieces));
  return poisons;
}

std::optional<Outcome> judge_memory(const CpuCase& state, const CpuBuffers& buffers) {
  const auto broken = buffers.broken_canary();
  if (!broken) return std::nullopt;
  const bool workspace = broken->slot >= place(state, state.slots, 0);
  const Tensor& tensor = *state.tensors[broken->slot % state.tensors.size()].tensor;
  const std::string name = workspace ? "the workspace" : "tensor " + tensor.name;
  return Crashed{"the kernel " +
                     describe_stray(name, buffers.slots()[broken->slot].bytes,
                                    workspace ? 1 : dtype_bytes(tensor.dtype), broken->at, true) +
                     ", while checking case " + state.c->name,
                 ""};
}

void add_deviations(const CpuCase& state, const CpuBuffers& buffers, int slot, const InputSet& set,
                    DrawKind kind, std::vector<NormError>* all) {
  if (set.nudged.empty()) return;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    const Deviation& nudged = set.nudged[i];
    if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
    const bool known = shows_lost(kind) || nudged.norm > 0 || nudged.relative > 0;
    if (shows_products(kind) ? t.tensor->dtype != DType::kFp32 : !known) continue;
    add_norm({state.c->name, t.tensor->name,
              deviation(t, buffers.data(place(state, slot, i)), set.expected[i]), nudged, kind,
              t.shape, t.tensor->dtype, state.sum_length, state.linear, state.accounted, set.named,
              t.tensor->tolerance},
             all);
  }
}

std::optional<Outcome> judge_outputs(const CpuCase& state, const CpuBuffers& buffers, int slot,
                                     const InputSet& set, const std::vector<Poison>& poisons,
                                     double* max_error) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    if (!is_output(t)) continue;
    const char* data = buffers.data(place(state, slot, i));
    const Comparison comparison = compare_output(t, data, set.expected[i]);
    const double allowed = allowed_error(set.expected[i].rule);
    if (comparison.ok()) {
      if (allowed > 0) *max_error = std::max(*max_error, comparison.worst / allowed);
      continue;
    }
    return WrongResult{state.c->name, t.tensor->name,
                       describe_mismatch(t, data, set.expected[i], comparison, poisons[i]),
                       comparison.worst, allowed};
  }
  return std::nullopt;
}

}  // namespace kernelpro
