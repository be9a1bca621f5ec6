// SPDX-License-Identifier: Apache-2.0
// JudgeCase: comparisons, and changes to memory that must not change.
#include <algorithm>
#include <cstring>

#include "measure/worker/cuda/judge_case.h"

#if KERNELPRO_HAVE_CUDA

namespace kernelpro {

namespace {

constexpr std::uint64_t kWindow = 4096;  // most elements that `window` returns
constexpr std::size_t kKnown = 16;       // correct outputs of a set remembered by their seal

// Mirrors struct Comparison of judge.cu.
struct RawComparison {
  std::uint64_t bad = 0, not_a_number = 0, unwritten = 0;
  std::uint64_t first_complement = 0, last = 0;
  std::uint64_t worst_bits = 0;
};

// Mirrors struct Admission of judge.cu.
struct RawAdmission {
  double largest = 0, worst = 0;
  std::uint64_t jumps = 0;
};

}  // namespace

JudgeCase::RuleSpec JudgeCase::rule_spec(const Set& set, std::size_t tensor) const {
  const JudgeTensor& t = tensors_[tensor];
  const bool floating = is_floating(t.dtype);
  return {static_cast<int>(t.dtype),
          floating ? 1 : 0,
          floating && t.wide ? 1 : 0,
          t.rule.kind == Rule::Kind::kAllclose ? 1 : 0,
          t.rule.tolerance,
          t.rule.absolute,
          t.rule.relative,
          std::max(set.typical ? set.scale[tensor] : set.rms[tensor], set.least[tensor])};
}

// core/task/mismatch.h's admit, on the device.
Result<std::vector<Admitted>> JudgeCase::admit(int index) {
  Set& set = set_at(index);
  set.known.clear();
  std::vector<Admitted> all;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const JudgeTensor& t = tensors_[i];
    if (!t.output) continue;
    Admitted& admitted = all.emplace_back();
    if (!is_floating(t.dtype) || t.rule.kind != Rule::Kind::kScaled || t.rule.tolerance <= 0) {
      continue;
    }
    const auto count = static_cast<std::uint64_t>(t.elements);
    for (int round = 0; round < kAdmitRounds; ++round) {
      const RuleSpec rule = rule_spec(set, i);
      KP_TRY(zero_results(sizeof(RawAdmission)));
      KP_CUDA_TRY(kernels_->run("admit", count, data_at(set, i), expected_at(set, i), rule, kJump,
                                set.rms[i], kMildly, count, scratch_));
      KP_ASSIGN(const std::vector<RawAdmission> raw, results<RawAdmission>(1));
      admitted.worst = raw[0].worst;
      admitted.jumps = raw[0].jumps;
      if (raw[0].largest <= rule.tolerance * rule.scale) break;
      set.least[i] = raw[0].largest / rule.tolerance;
    }
    admitted.least = set.least[i];
  }
  return all;
}

void JudgeCase::set_least(int index, const std::vector<double>& least) {
  Set& set = set_at(index);
  set.known.clear();
  std::size_t output = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].output && output < least.size()) set.least[i] = least[output++];
  }
}

Result<std::vector<SetFindings>> JudgeCase::verify(const std::vector<int>& sets, bool intrusions) {
  std::vector<SetFindings> found(sets.size());
  if (intrusions) KP_TRY(find_intrusions(sets, &found));
  const std::size_t count = tensors_.size();
  KP_TRY(zero_results(8 * count * sets.size()));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    const Set& set = set_at(sets[k]);
    for (std::size_t i = 0; i < count; ++i) {
      if (!tensors_[i].output) continue;
      KP_TRY(seal_data(data_at(set, i), tensors_[i].bytes, scratch_ + 8 * (k * count + i)));
    }
  }
  KP_ASSIGN(const std::vector<std::uint64_t> all, results<std::uint64_t>(count * sets.size()));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    const auto start = all.begin() + static_cast<std::ptrdiff_t>(k * count);
    KP_TRY(compare_set(&set_at(sets[k]), {start, start + static_cast<std::ptrdiff_t>(count)},
                       &found[k]));
  }
  return found;
}

// Outputs that were right before are recognized by their seal: a deterministic kernel is compared
// once for each content.
Result<void> JudgeCase::compare_set(Set* set, const std::vector<std::uint64_t>& seals,
                                    SetFindings* found) {
  const auto known = std::find_if(set->known.begin(), set->known.end(),
                                  [&](const Set::Known& each) { return each.seals == seals; });
  if (known != set->known.end()) {
    for (const double worst : known->worst) {
      found->outputs.emplace_back();
      found->outputs.back().worst = worst;
    }
    return {};
  }
  KP_TRY(zero_results(sizeof(RawComparison) * tensors_.size()));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    const AddressLayout::Slot& slot = layout_.slots[i];
    const auto count = static_cast<std::uint64_t>(tensors_[i].elements);
    KP_CUDA_TRY(kernels_->run("compare", count, data_at(*set, i), expected_at(*set, i),
                              rule_spec(*set, i), set->slots[i]->poison_key,
                              slot.address - slot.mapping, count,
                              scratch_ + sizeof(RawComparison) * i));
  }
  KP_ASSIGN(const std::vector<RawComparison> raw, results<RawComparison>(tensors_.size()));
  Set::Known right{seals, {}};
  bool all_right = true;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].output) continue;
    const RawComparison& r = raw[i];
    OutputComparison c;
    c.bad = r.bad;
    c.not_a_number = r.not_a_number;
    c.unwritten = r.unwritten;
    c.first = ~r.first_complement;
    c.last = r.last;
    std::memcpy(&c.worst, &r.worst_bits, sizeof c.worst);
    found->outputs.push_back(c);
    right.worst.push_back(c.worst);
    all_right = all_right && c.bad == 0;
  }
  if (all_right) {
    if (set->known.size() >= kKnown) set->known.erase(set->known.begin());
    set->known.push_back(std::move(right));
  }
  return {};
}

Result<void> JudgeCase::find_intrusions(const std::vector<int>& sets,
                                        std::vector<SetFindings>* all) {
  const std::size_t slots = layout_.slots.size();
  KP_TRY(zero_results(2 * sizeof(Found) * slots * sets.size()));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    for (std::size_t i = 0; i < slots; ++i) {
      const AddressLayout::Slot& slot = layout_.slots[i];
      const Buffer& buffer = *set_at(sets[k]).slots[i];
      const std::uint64_t before = (slot.address - slot.mapping) / 4;
      const std::uint64_t end = slot.address - slot.mapping + slot.bytes;
      // A word that also holds the last elements has poison only where it was laid over them.
      const std::uint64_t after = is_input(i) ? (end + 3) / 4 : end / 4;
      const unsigned skip = is_input(i) ? 0 : static_cast<unsigned>(end % 4);
      const std::uint64_t words = slot.mapping_bytes / 4;
      const std::uint64_t at = scratch_ + 2 * sizeof(Found) * (k * slots + i);
      if (before > 0) {
        KP_CUDA_TRY(kernels_->run("check_poison", before, buffer.at, buffer.poison_key,
                                  std::uint64_t{0}, before, 0u, at));
      }
      if (after < words) {
        KP_CUDA_TRY(kernels_->run("check_poison", words - after, buffer.at, buffer.poison_key,
                                  after, words, skip, at + sizeof(Found)));
      }
    }
  }
  KP_ASSIGN(const std::vector<Found> raw, results<Found>(2 * slots * sets.size()));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    for (std::size_t i = 0; i < slots; ++i) {
      const Found* two = &raw[2 * (k * slots + i)];
      const AddressLayout::Slot& slot = layout_.slots[i];
      const std::uint64_t start = slot.address - slot.mapping;
      const auto word = [](const Found& f) { return ~f.first_complement * 4; };
      if (two[0].count != 0) {
        (*all)[k].intrusions.push_back(
            {static_cast<int>(i), "before", two[0].count, start - word(two[0]), true});
      }
      if (two[1].count != 0) {
        const std::uint64_t end = start + slot.bytes;
        (*all)[k].intrusions.push_back(
            {static_cast<int>(i), "after", two[1].count, std::max(word(two[1]), end) - end, true});
      }
    }
  }
  KP_ASSIGN(const std::vector<std::uint64_t> seals, input_seals(sets));
  for (std::size_t k = 0; k < sets.size(); ++k) {
    const Set& set = set_at(sets[k]);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].output || seals[k * tensors_.size() + i] == set.seals[i]) continue;
      KP_ASSIGN(Intrusion where, locate(set, i));
      (*all)[k].intrusions.push_back(std::move(where));
    }
  }
  return {};
}

// A modified input: where, if it was drawn here.
Result<Intrusion> JudgeCase::locate(const Set& set, std::size_t tensor) {
  Intrusion intrusion{static_cast<int>(tensor), "input", 1, 0, false};
  if (set.specs.empty()) return intrusion;
  KP_TRY(zero_results(sizeof(Found)));
  const auto count = static_cast<std::uint64_t>(tensors_[tensor].elements);
  KP_CUDA_TRY(kernels_->run("check_inputs", count, data_at(set, tensor), set.specs[tensor], set.key,
                            std::uint64_t{tensor}, count, scratch_));
  KP_ASSIGN(const std::vector<Found> raw, results<Found>(1));
  intrusion.count = raw[0].count;
  intrusion.where = ~raw[0].first_complement;
  intrusion.where_known = intrusion.count > 0;
  return intrusion;
}

Result<void> JudgeCase::window(int index, int output, std::uint64_t first, std::uint64_t count,
                               std::vector<unsigned char>* bad, std::vector<double>* got,
                               std::vector<double>* expected) {
  const Set& set = set_at(index);
  const auto i = static_cast<std::size_t>(output);
  const auto elements = static_cast<std::uint64_t>(tensors_[i].elements);
  first = std::min(first, elements);
  count = std::min({count, elements - first, kWindow});
  bad->resize(count);
  got->resize(count);
  expected->resize(count);
  if (count == 0) return {};
  const std::uint64_t got_at = scratch_ + kWindow, expected_out = got_at + kWindow * sizeof(double);
  KP_CUDA_TRY(kernels_->run("mark_bad", count, data_at(set, i), expected_at(set, i),
                            rule_spec(set, i), first, count, scratch_, got_at, expected_out));
  KP_CUDA_TRY(cu_->MemcpyDtoH(bad->data(), scratch_, count));
  KP_CUDA_TRY(cu_->MemcpyDtoH(got->data(), got_at, count * sizeof(double)));
  KP_CUDA_TRY(cu_->MemcpyDtoH(expected->data(), expected_out, count * sizeof(double)));
  return {};
}

Result<std::string> JudgeCase::fetch(int index, int slot, bool expected) {
  const Set& set = set_at(index);
  const auto i = static_cast<std::size_t>(slot);
  const JudgeTensor& t = tensors_[i];
  std::string bytes(expected ? t.expected_bytes() : t.bytes, '\0');
  KP_CUDA_TRY(cu_->MemcpyDtoH(bytes.data(), expected ? expected_at(set, i) : data_at(set, i),
                              bytes.size()));
  if (!expected || !is_floating(t.dtype) || t.wide) return bytes;
  std::string wide(static_cast<std::size_t>(t.elements) * sizeof(double), '\0');
  for (std::int64_t k = 0; k < t.elements; ++k) {
    const double value = element_as_double(t.dtype, bytes.data(), k);
    std::memcpy(wide.data() + static_cast<std::size_t>(k) * sizeof value, &value, sizeof value);
  }
  return wide;
}

}  // namespace kernelpro

#endif
