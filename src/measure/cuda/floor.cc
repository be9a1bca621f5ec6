// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/floor.h"

#include <algorithm>
#include <cmath>

#include "core/evidence/rates.h"
#include "core/task/key.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kLargeInput = 4 << 20;  // bytes; smaller ones count as needed
constexpr int kTries = 32;
constexpr std::uint64_t kPieceBytes = 32;

}  // namespace

double physical_floor_us(const CudaCase& state, const Machine& machine,
                         const std::vector<double>& shares) {
  if (machine.theoretical_bytes_per_s <= 0) return 0;
  double inputs = 0, outputs = 0;
  for (std::size_t i = 0; i < state.judged.size(); ++i) {
    const JudgeTensor& t = state.judged[i];
    const double bytes = static_cast<double>(t.bytes);
    if (t.output) {
      outputs += bytes;
    } else {
      inputs += bytes * (i < shares.size() ? shares[i] : 1.0);
    }
  }
  const double bytes = inputs + std::max(0.0, outputs - machine.l2_bytes);
  return 0.95 * bytes / machine.theoretical_bytes_per_s * 1e6;
}

double measured_floor_us(const Task& task, const CudaCase& state, const Machine& machine) {
  double inputs = 0, outputs = 0;
  for (const JudgeTensor& t : state.judged) {
    (t.output ? outputs : inputs) += static_cast<double>(t.bytes);
  }
  double us = 0;
  if (const double rate = machine.ceilings.copy_bytes_per_s; rate > 0) {
    us = (inputs + std::max(0.0, outputs - machine.l2_bytes)) / rate * 1e6;
  }
  const bool exact = task.precision == Precision::kFp32 && !has_half_inputs(task);
  const double fma = machine.ceilings.fma_flops_per_s;
  // Operands in parts are as good as fp32, and faster where the matrix units are.
  const double tensor = machine.ceilings.tensor_flops_per_s;
  const double products = exact && fma > 0 ? std::max(fma, tensor / kFewestProducts) : tensor;
  if (fma > 0 && products > 0) {
    const double matmul = task_matmul_flops(task, *state.c);
    us = std::max(us,
                  1e6 * std::max(matmul / products, (task_flops(task, *state.c) - matmul) / fma));
  }
  return us;
}

double share_at_least(int hits, int tries) {
  if (hits <= 0) return 0;
  // The p at which `hits` or more of `tries` have probability 5 %: bisects the binomial tail.
  double low = 0, high = 1;
  for (int round = 0; round < 50; ++round) {
    const double p = (low + high) / 2;
    double tail = 0;
    for (int k = hits; k <= tries; ++k) {
      tail += std::exp(std::lgamma(tries + 1) - std::lgamma(k + 1) - std::lgamma(tries - k + 1) +
                       k * std::log(p) + (tries - k) * std::log1p(-p));
    }
    (tail < 0.05 ? low : high) = p;
  }
  return low;
}

Result<std::vector<double>> needed_shares(CudaLink& judge, CudaReference& reference,
                                          CudaCase& state) {
  const int set = state.spare();
  KP_TRY(reference.fill(state, set, {fresh_key(), DrawKind::kGiven}));
  const auto seals = [&] {
    std::vector<std::uint64_t> all;
    for (const ExpectedLook& look : state.looks[static_cast<std::size_t>(set)]) {
      all.push_back(look.seal);
    }
    return all;
  };
  const std::vector<std::uint64_t> before = seals();
  std::vector<double> shares;
  for (std::size_t i = 0; i < state.judged.size(); ++i) {
    const JudgeTensor& t = state.judged[i];
    shares.push_back(t.output ? 0 : 1);
    if (t.output || t.bytes < kLargeInput) continue;
    const auto size = static_cast<std::uint64_t>(dtype_bytes(t.dtype));
    const std::uint64_t piece = kPieceBytes / size;
    const std::uint64_t pieces = static_cast<std::uint64_t>(t.elements) / piece;
    int hits = 0;
    for (int k = 0; k < kTries; ++k) {
      const auto place = [&] { return fresh_secret() % pieces * piece; };
      Json change = about(state, "disturb", set);
      change["tensor"] = i;
      change["first"] = place();
      change["other"] = place();
      change["count"] = piece;
      change["large"] = 1000.0;  // floating values: far out, in both directions
      KP_TRY(trusted(judge.ask(change, kJudgeTimeout), "the judge"));
      KP_TRY(reference.recompute(state, set));
      if (seals() != before) ++hits;
      KP_TRY(trusted(judge.ask(about(state, "restore", set), kJudgeTimeout), "the judge"));
    }
    shares.back() = share_at_least(hits, kTries);
  }
  state.contents[static_cast<std::size_t>(set)].reset();
  return shares;
}

}  // namespace kernelpro
