// SPDX-License-Identifier: Apache-2.0
// A PyTorch module as the reference of the cpu target, over shared memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "measure/cpu/reference.h"

namespace kernelpro {

namespace {

// Multiplies non-constant parameters by 1 +- 1/64 at most. Masks, ones, zeros and tables that
// repeat themselves stay as they are.
bool vary(const Shaped& t, std::uint64_t seed, std::vector<char>* data) {
  if (!is_floating(t.tensor->dtype) || t.elements < 8) return false;
  std::vector<double> seen;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(t.elements, 64); ++i) {
    seen.push_back(element_as_double(t.tensor->dtype, data->data(), i));
    if (seen.back() == 0 || !std::isfinite(seen.back())) return false;
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return false;
  const std::int64_t size = dtype_bytes(t.tensor->dtype);
  for (std::int64_t i = 0; i < t.elements; ++i) {
    const std::uint64_t bits = kp::mix64(seed + static_cast<std::uint64_t>(i));
    const double by = (static_cast<double>(bits >> 40) * 0x1p-23 - 1) / 64;
    const auto value =
        static_cast<float>(element_as_double(t.tensor->dtype, data->data(), i) * (1 + by));
    const unsigned stored = t.tensor->dtype == DType::kFp32   ? kp::float_bits(value)
                            : t.tensor->dtype == DType::kFp16 ? kp::to_half(value)
                                                              : kp::to_bfloat16(value);
    std::memcpy(data->data() + i * size, &stored, static_cast<std::size_t>(size));
  }
  return true;
}

class TorchReference : public CpuReference {
 public:
  TorchReference(const Task& task, const Case& c, ModuleReference& module,
                 const CpuReferenceSettings& settings)
      : task_(task),
        c_(c),
        module_(module),
        settings_(settings),
        tensors_(shaped_tensors(task, c)) {}
  ~TorchReference() override {
    if (attached_) static_cast<void>(module_.detach(c_));
  }

  Result<void> start() {
    KP_ASSIGN(buffers_, reference_buffers(tensors_));
    std::vector<SharedBuffer> shared;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      SharedBuffer buffer;
      buffer.tensor = static_cast<int>(i);
      buffer.expected = is_output(tensors_[i]);
      buffer.wide = buffer.expected && is_floating(tensors_[i].tensor->dtype);
      const CpuBuffers::Place place = buffers_.place_of(i);
      buffer.fd = place.fd;
      buffer.bytes = static_cast<std::uint64_t>(place.file_bytes);
      buffer.offset = static_cast<std::uint64_t>(place.offset);
      shared.push_back(buffer);
    }
    KP_TRY(module_.attach(task_, c_, 0, shared));
    attached_ = true;
    return {};
  }

  Result<std::optional<InputSet>> compute_set(const SetRequest& request) override {
    const DrawKind kind = request.probe != nullptr ? request.probe->kind : request.kind;
    KP_ASSIGN(const DrawFacts drawn, module_.draw(c_, 0, seed_of(request.key), kind));
    if (request.probe != nullptr && !drawn.changed) return std::optional<InputSet>();
    InputSet set;
    if (!keep_inputs(request, &set)) return std::optional<InputSet>();
    const bool contract = settings_.policy == Policy::kContract;
    KP_TRY(compute_expected(contract ? Numerics::kFloat64 : Numerics::kKernelBench, request.twice,
                            request.probe == nullptr, &set));
    if (!contract) return std::optional<InputSet>(std::move(set));
    if (request.probe == nullptr && request.shapes.empty()) note_given(tensors_, set);
    if (request.probe != nullptr && !representable(tensors_, set, not_finite_)) {
      return std::optional<InputSet>();
    }
    if (wants_norm(task_, settings_.policy, request)) {
      measure_norm({kind, request.probe != nullptr ? request.probe->tensor : -1}, &set);
    }
    // The rules of the first set apply to others drawn like it.
    if (request.probe == nullptr && !rules_.empty()) return std::optional<InputSet>(std::move(set));
    if (shows_products(kind) && !measure_nudged(&set)) return std::optional<InputSet>();
    const bool lost = request.probe != nullptr && shows_lost(kind) && norms_apply(task_);
    KP_ASSIGN(bool usable, admit_rounding(request.probe == nullptr, lost, &set));
    if (!usable) return std::optional<InputSet>();
    for (Expected& expected : set.expected) make_room(kind, &expected);
    return std::optional<InputSet>(std::move(set));
  }

 private:
  // False: the shapes change nothing.
  bool keep_inputs(const SetRequest& request, InputSet* set) {
    bool reshaped = request.shapes.empty();
    set->inputs.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (is_output(t)) continue;
      set->inputs[i].assign(buffers_.data(i), buffers_.data(i) + t.bytes);
      const DrawKind kind = request.probe != nullptr ? request.probe->kind : request.kind;
      reshaped |= reshape_input(t, request.shapes, i, kind, request.key, &set->inputs[i]);
      if (!request.vary_weights || t.tensor->role != Role::kParameter) continue;
      if (vary(t, kp::subkey(request.key, kp::kVaryStreams + i), &set->inputs[i]))
        set->varied = true;
    }
    return reshaped;
  }

  // Computes from the set's inputs: a module may have modified those in the buffers in place.
  Result<ComputeFacts> compute(Numerics numerics, bool twice, const InputSet& set) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (set.inputs[i].empty()) continue;
      std::memcpy(buffers_.data(i), set.inputs[i].data(), set.inputs[i].size());
    }
    ++runs_;
    KP_ASSIGN(ComputeFacts facts, module_.compute(c_, 0, numerics, twice));
    add_work(facts.processor_s);
    return facts;
  }

  Result<void> compute_expected(Numerics numerics, bool twice, bool given, InputSet* set) {
    Result<ComputeFacts> facts = compute(numerics, twice, *set);
    if (!facts && numerics == Numerics::kFloat64 && facts.error().kind != ErrorKind::kTask) {
      add_label(Label::kNoFloat64);  // not enough memory
      facts = compute(Numerics::kStrict, twice, *set);
    }
    if (!facts) return tl::unexpected<Error>(facts.error());
    if (!facts->random.empty()) {
      return fail(ErrorKind::kTask, "the module disagrees with itself: " + facts->random,
                  "remove what is random from it, for example with model.eval()");
    }
    set->expected.assign(tensors_.size(), Expected{});
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!is_output(tensors_[i])) continue;
      Rule rule = rule_for(task_, *tensors_[i].tensor, settings_.policy);
      if (given && i < rules_.size()) rule = rules_[i];
      rule.typical = given;
      set->expected[i] = make_expected(tensors_[i], buffers_.data(i), rule);
    }
    return {};
  }

  // Widens the rules by the effect of rounding on these results. false: a probe whose results
  // rounding changes too much to be conclusive. `lost`: keeps how much rounding loses.
  Result<bool> admit_rounding(bool given, bool lost, InputSet* set) {
    std::vector<Admitted> admitted(tensors_.size());
    if (lost && has_float64()) set->nudged.assign(tensors_.size(), {});
    for (int run = few_elements() ? kRoundedRuns : 1; run > 0; --run) {
      // Without enough memory for it, the rules stay unchanged.
      if (!compute(Numerics::kRounded, false, *set)) {
        if (lost) set->nudged.clear();
        break;
      }
      if (lost && !set->nudged.empty()) raise_all(deviations(*set), 1, &set->nudged);
      for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const Shaped& t = tensors_[i];
        if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
        const auto* rounded = reinterpret_cast<const double*>(buffers_.data(i));
        const Admitted now = admit({rounded, rounded + t.elements}, &set->expected[i]);
        admitted[i].worst = std::max(admitted[i].worst, now.worst);
        admitted[i].jumps = std::max(admitted[i].jumps, now.jumps);
      }
    }
    return given ? keep_rules(admitted, set) : Result<bool>(says_something(admitted, *set));
  }

  bool few_elements() const {
    return std::any_of(tensors_.begin(), tensors_.end(),
                       [](const Shaped& t) { return is_output(t) && t.elements < kManyRounded; });
  }

  // Once for each kind of contents and the tensor that it names; stays unknown without enough
  // memory for it.
  void measure_norm(const std::pair<DrawKind, int>& contents, InputSet* set) {
    const bool sparing = contents.first == DrawKind::kSparing;  // whose levels differ
    if (const auto known = norms_.find(contents); known != norms_.end() && !sparing) {
      set->nudged = known->second;
      return;
    }
    std::vector<Deviation>& known = norms_[contents];
    if (!has_float64()) return;
    std::vector<Deviation> found(tensors_.size());
    const int runs = sparing ? kSparingRuns : few_elements() ? kNormRuns : 1;
    for (int run = runs; run > 0; --run) {
      if (!compute(Numerics::kTight, false, *set)) return;
      raise_all(deviations(*set), 1, &found);
    }
    if (!compute(Numerics::kStrict, false, *set)) return;
    raise_all(deviations(*set), kPlainRoom, &found);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (sparing && tensors_[i].elements < kFewestNormed) continue;
      if (is_output(tensors_[i])) found[i] = steady(tensors_[i], found[i], set->expected[i]);
    }
    set->nudged = known = found;
  }

  static void raise_all(const std::vector<Deviation>& by, double times,
                        std::vector<Deviation>* all) {
    for (std::size_t i = 0; i < by.size(); ++i) raise(by[i], times, &(*all)[i]);
  }

  // False without enough memory for it.
  bool measure_nudged(InputSet* set) {
    InputSet nudged;
    nudged.inputs = nudged_inputs(task_, tensors_, *set);
    if (!compute(Numerics::kFloat64, false, nudged)) return false;
    set->nudged = deviations(*set);
    if (!compute(Numerics::kStrict, false, *set)) return false;
    const std::vector<Deviation> plain = deviations(*set);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      set->nudged[i].norm = std::max(set->nudged[i].norm, kPlainRoom * plain[i].norm);
    }
    return true;
  }

  // Of the results in the buffers.
  std::vector<Deviation> deviations(const InputSet& set) const {
    std::vector<Deviation> all(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
      const auto* values = reinterpret_cast<const double*>(buffers_.data(i));
      all[i] = deviation({values, values + t.elements}, set.expected[i], t.shape);
    }
    return all;
  }

  static bool noise(const Shaped& t, const Admitted& admitted) {
    return static_cast<double>(admitted.jumps) > kNoisyShare * static_cast<double>(t.elements);
  }

  bool says_something(const std::vector<Admitted>& admitted, const InputSet& set) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!is_output(tensors_[i])) continue;
      if (!conclusive(tensors_[i], admitted[i], set.expected[i].rule)) return false;
    }
    return true;
  }

  Result<bool> keep_rules(const std::vector<Admitted>& admitted, InputSet* set) {
    rules_.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (!is_output(t)) continue;
      Rule& rule = set->expected[i].rule;
      if (noise(t, admitted[i])) {
        return fail(ErrorKind::kTask,
                    "the task is degenerate: output " + t.tensor->name +
                        " is rounding noise: rounding changes " +
                        std::to_string(admitted[i].jumps) + " of " + std::to_string(t.elements) +
                        " elements by more than half of their size",
                    "choose a module whose results are larger than their rounding errors");
      }
      if (rule.tolerance > 0 && admitted[i].worst > rule.tolerance) {
        rule.tolerance = admitted[i].worst;
        add_label(Label::kToleranceOfModule);
      }
      rules_[i] = rule;
    }
    return true;
  }

  void add_label(Label label) {
    const std::string_view name = label_name(label);
    if (std::find(labels_.begin(), labels_.end(), name) == labels_.end())
      labels_.emplace_back(name);
  }

  const Task& task_;
  const Case& c_;
  ModuleReference& module_;
  CpuReferenceSettings settings_;
  std::vector<Shaped> tensors_;
  std::vector<Rule> rules_;  // by tensor, of sets drawn as given; empty before the first
  // Of kinds, and the tensors that they name.
  std::map<std::pair<DrawKind, int>, std::vector<Deviation>> norms_;
  CpuBuffers buffers_;
  bool attached_ = false;
};

}  // namespace

Result<std::unique_ptr<CpuReference>> make_module_reference(const Task& task, const Case& c,
                                                            ModuleReference& module,
                                                            const CpuReferenceSettings& settings) {
  auto result = std::make_unique<TorchReference>(task, c, module, settings);
  KP_TRY(result->start());
  return std::unique_ptr<CpuReference>(std::move(result));
}

}  // namespace kernelpro
