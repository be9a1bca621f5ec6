// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/rates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/task/dtype.h"

namespace kernelpro {

namespace {

struct Work {
  double bytes = 0, flops = 0, matmul_flops = 0;
};

struct Rates {
  double copy = 0, fma = 0, matmul = 0;  // per second
};

Floors floors_of(const Work& work, const Rates& rates) {
  Floors least;
  if (rates.copy > 0) least.memory_us = work.bytes / rates.copy * 1e6;
  if (rates.fma > 0 && rates.matmul > 0) {
    const double products = std::min(work.matmul_flops, work.flops);
    least.compute_us = ((work.flops - products) / rates.fma + products / rates.matmul) * 1e6;
  }
  return least;
}

}  // namespace

bool has_half_inputs(const Task& task) {
  bool any = false;
  for (const Tensor& tensor : task.tensors) {
    if (tensor.role == Role::kOutput || !is_floating(tensor.dtype)) continue;
    if (tensor.dtype != DType::kFp16 && tensor.dtype != DType::kBf16) return false;
    any = true;
  }
  return any;
}

bool has_matrix_products(const Evidence& kernel) {
  const auto count = [&](const char* name) { return kernel.get(name).value_or(0); };
  const double wide = count("sass.hot.dmma");
  const bool others = wide <= 0 || count("sass.hot.hmma") > wide;
  return count("sass.hgmma") > 0 || (count("sass.hmma") > 0 && others);
}

bool uses_matrix_units(const Evidence& evidence) {
  return has_matrix_products(evidence) ||
         std::any_of(
             evidence.kernels.begin(), evidence.kernels.end(),
             [](const KernelEvidence& kernel) { return has_matrix_products(kernel.facts); });
}

bool multiplies_in_parts(const Evidence& evidence) {
  const auto is = [&](const char* name) { return evidence.get(name).value_or(0) > 0; };
  return is("task.matmul_flops") && !is("task.half_inputs") && !is("task.tf32") &&
         uses_matrix_units(evidence);
}

double fewest_products(Precision precision) {
  return precision == Precision::kTf32 ? 1 : kFewestProducts;
}

double fewest_products(const Evidence& evidence) {
  const bool tf32 = evidence.get("task.tf32").value_or(0) > 0;
  return fewest_products(tf32 ? Precision::kTf32 : Precision::kFp32);
}

double matmul_rate(const Evidence& evidence) {
  const double tensor = evidence.get("ceiling.tensor_rate").value_or(0);
  if (tensor > 0 && evidence.get("task.half_inputs").value_or(0) > 0) return tensor;
  const bool tf32 = tensor > 0 && evidence.get("task.tf32").value_or(0) > 0;
  const double named = tf32 ? kTf32Rate * tensor : evidence.get("ceiling.fma_rate").value_or(0);
  return named > 0 && uses_matrix_units(evidence)
             ? std::max(named, tensor / fewest_products(evidence))
             : named;
}

double matmul_rate(const Task& task, const Ceilings& ceilings) {
  const double tensor = ceilings.tensor_flops_per_s;
  if (tensor > 0 && has_half_inputs(task)) return tensor;
  if (tensor > 0 && task.precision == Precision::kTf32) return kTf32Rate * tensor;
  return ceilings.fma_flops_per_s;
}

Floors floors(const Evidence& evidence) {
  const auto known = [&](const char* name) { return evidence.get(name).value_or(0); };
  return floors_of(
      {known("task.compulsory_bytes"), known("task.flops"), known("task.matmul_flops")},
      {known("ceiling.copy_bandwidth"), known("ceiling.fma_rate"), matmul_rate(evidence)});
}

Floors floors(const Task& task, const Case& c, const Ceilings& ceilings) {
  return floors_of(
      {compulsory_bytes(task, c), task_flops(task, c), task_matmul_flops(task, c)},
      {ceilings.copy_bytes_per_s, ceilings.fma_flops_per_s, matmul_rate(task, ceilings)});
}

double floor_in_halves_us(const Task& task, const Case& c, const Ceilings& ceilings) {
  const bool wide = task.precision == Precision::kTf32 || task.precision == Precision::kFp32;
  const bool narrowed = wide && !has_half_inputs(task);
  const double rate = ceilings.tensor_flops_per_s / fewest_products(task.precision);
  if (!narrowed || rate <= ceilings.fma_flops_per_s) return 0;
  const double us = floors_of({0, task_flops(task, c), task_matmul_flops(task, c)},
                              {ceilings.copy_bytes_per_s, ceilings.fma_flops_per_s, rate})
                        .compute_us;
  return us < floors(task, c, ceilings).compute_us ? us : 0;
}

void set_ceilings(const Machine& machine, Evidence* evidence) {
  const Ceilings& ceilings = machine.ceilings;
  evidence->forget(Family::kCeilings);
  const auto put = [&](const char* name, double value, const char* source) {
    if (value > 0 && std::isfinite(value)) evidence->set(name, value, source);
  };
  const auto ceiling = [&](const char* name, double value, const char* floor) {
    put(name, value, "ceilings");
    if (value > 0) return;
    evidence->note_missing({Family::kCeilings,
                            "it was not measured on this machine",
                            "run `kernelpro doctor`, which measures the ceilings",
                            {name, floor}});
  };
  ceiling("ceiling.copy_bandwidth", ceilings.copy_bytes_per_s, "roofline.memory_floor");
  ceiling("ceiling.fma_rate", ceilings.fma_flops_per_s, "roofline.compute_floor");
  // Many machines have no matrix units: not a missing fact.
  put("ceiling.tensor_rate", ceilings.tensor_flops_per_s, "ceilings");
  put("ceiling.disturbed", ceilings.quiet ? 0 : 1, "ceilings");
  put("machine.parallel_units", machine.parallel_units, "machine");
  const Floors least = floors(*evidence);
  put("roofline.memory_floor", least.memory_us, "ceilings");
  put("roofline.compute_floor", least.compute_us, "ceilings");
}

Evidence at_ceilings(const Machine& machine, Evidence evidence) {
  set_ceilings(machine, &evidence);
  return evidence;
}

}  // namespace kernelpro
