// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/advice.h"

#include <utility>

#include "base/text.h"
#include "core/evidence/rates.h"
#include "core/machine/architecture.h"
#include "core/task/operator_family.h"

namespace kernelpro {

namespace {

// Below this share of the other floor, memory traffic does not limit a task.
constexpr double kMemoryMatters = 0.4;

std::string tera(double rate, const char* unit) {
  return rate <= 0 ? "an unknown rate" : number(rate / 1e12, 3) + " " + unit;
}

// Of the largest timed case.
Floors largest_floors(const Task& task, TargetKind target, const Machine* machine) {
  const Case* largest = largest_timed(task, target);
  if (machine == nullptr || largest == nullptr) return {};
  return floors(task, *largest, machine->ceilings);
}

// `halves_us`: of floor_in_halves_us.
std::string floor_text(const Floors& least, double halves_us = 0, bool tf32 = false) {
  if (least.memory_us <= 0) return "";
  std::string text =
      "In the largest timed case, reading every input once and writing every output once takes " +
      human_us(least.memory_us) + " at this rate";
  if (least.compute_us > 0) {
    text += ", and the arithmetic, in the precision that is owed, " + human_us(least.compute_us);
    if (halves_us > 0 && tf32) {
      text += " with TF32 products, " + human_us(halves_us) +
              " with fp16 ones (operands scaled by powers of two and rounded)";
    } else if (halves_us > 0) {
      text += " on multiply-adds, " + human_us(halves_us) +
              " with the matrix products on tensor cores, operands in two fp16 parts";
    }
  }
  return text + ". A well-made kernel comes within 10 to 20 % of " +
         (least.compute_us > 0 ? "the larger of these times" : "this time") +
         "; beyond that, only the last wave, the start and the end remain.";
}

// Empty where the machine's rates are unknown.
PromptFields processor_fields(const Task& task, const Machine* machine, const Prompts& prompts) {
  if (machine == nullptr || machine->ceilings.copy_bytes_per_s <= 0) return {};
  constexpr double kGiga = 1e9;
  const auto known = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  PromptFields fields;
  fields["name"] = machine->name;
  fields["arch"] = machine->arch;
  fields["units"] = std::to_string(machine->parallel_units);
  fields["sets"] = known(machine->instruction_sets);
  fields["caches"] = known(machine->caches);
  fields["bandwidth"] = number(machine->ceilings.copy_bytes_per_s / kGiga, 3) + " GB/s";
  fields["fma"] = number(machine->ceilings.fma_flops_per_s / kGiga, 3) + " GFLOP/s";
  fields["floor"] = floor_text(largest_floors(task, TargetKind::kCpu, machine));
  fields["machine"] = prompts.fill("processor", fields);
  return fields;
}

}  // namespace

CraftSubject craft_subject(const Task& task, TargetKind target, const Machine* machine) {
  CraftSubject subject;
  subject.target = target;
  subject.arch = Architecture::parse(machine != nullptr ? machine->arch : "");
  subject.family = operator_family(task);
  const Floors least = largest_floors(task, target, machine);
  const bool computes = has_kind(subject.family, "products") ||
                        has_kind(subject.family, "convolution") ||
                        has_kind(subject.family, "attention");
  subject.memory_limits = !computes || least.memory_us > kMemoryMatters * least.compute_us;
  return subject;
}

namespace {

std::string craft_text(const Task& task, TargetKind target, const Machine* machine,
                       const PromptFields& fields, const Prompts& prompts) {
  std::string advice;
  for (const std::string& name : prompts.craft_for(craft_subject(task, target, machine))) {
    advice += (advice.empty() ? "" : "\n") + prompts.fill(name, fields);
  }
  return advice;
}

}  // namespace

PromptFields advice_fields(const Task& task, TargetKind target, const Machine* machine,
                           const Prompts& prompts) {
  PromptFields fields;
  if (target != TargetKind::kCuda) {
    fields = processor_fields(task, machine, prompts);
    fields["advice"] = craft_text(task, target, machine, fields, prompts);
    return fields;
  }
  fields["arch"] = machine == nullptr ? "native" : machine->arch;
  if (machine != nullptr) {
    fields["name"] = machine->name;
    fields["units"] = std::to_string(machine->parallel_units);
    fields["bandwidth"] = tera(machine->ceilings.copy_bytes_per_s, "TB/s");
    fields["fma"] = tera(machine->ceilings.fma_flops_per_s, "TFLOP/s");
    fields["tensor"] = tera(machine->ceilings.tensor_flops_per_s, "TFLOP/s");
    const Case* largest = largest_timed(task, target);
    fields["floor"] =
        floor_text(largest_floors(task, target, machine),
                   largest == nullptr ? 0 : floor_in_halves_us(task, *largest, machine->ceilings),
                   task.precision == Precision::kTf32);
    fields["machine"] = prompts.fill("machine", fields);
  }
  const CraftSubject subject = craft_subject(task, target, machine);
  if (const SmLimits* sm = subject.arch ? subject.arch->limits() : nullptr) {
    constexpr int kWarp = 32, kKiB = 1024;
    fields["registers"] = std::to_string(sm->registers);
    fields["threads"] = std::to_string(sm->warps * kWarp);
    fields["blocks"] = std::to_string(sm->blocks);
    fields["shared"] = std::to_string(sm->shared_bytes / kKiB);
    fields["block_shared"] = std::to_string(sm->shared_block_bytes / kKiB);
  }
  fields["advice"] = craft_text(task, target, machine, fields, prompts);
  fields["compile"] = prompts.fill("compile", fields);
  return fields;
}

}  // namespace kernelpro
