// SPDX-License-Identifier: Apache-2.0
#include "core/machine/machine.h"

#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"

namespace kernelpro {

Ceilings better_of(const Ceilings& a, const Ceilings& b) {
  const bool a_copies_faster = a.copy_bytes_per_s >= b.copy_bytes_per_s;
  Ceilings best = a_copies_faster ? a : b;
  best.copy_bytes_per_s = std::max(a.copy_bytes_per_s, b.copy_bytes_per_s);
  best.fma_flops_per_s = std::max(a.fma_flops_per_s, b.fma_flops_per_s);
  best.tensor_flops_per_s = std::max(a.tensor_flops_per_s, b.tensor_flops_per_s);
  best.quiet = a.quiet || b.quiet;
  best.rounds = a.rounds + b.rounds;
  if (best.rounds > 0) {
    best.foreign = (a.foreign * a.rounds + b.foreign * b.rounds) / best.rounds;
  }
  best.measured_at = std::max(a.measured_at, b.measured_at);
  return best;
}

bool better_than(const Ceilings& now, const Ceilings& then) {
  constexpr double kNoise = 1.01;
  if (now.quiet && !then.quiet) return true;
  return now.copy_bytes_per_s > kNoise * then.copy_bytes_per_s ||
         now.fma_flops_per_s > kNoise * then.fma_flops_per_s ||
         now.tensor_flops_per_s > kNoise * then.tensor_flops_per_s;
}

std::string ceilings_basis(const Ceilings& c) {
  if (c.rounds == 0) return "";
  std::string text = "best of " + how_many(c.rounds, "measurement");
  if (c.quiet) return text;
  char busy[96];
  std::snprintf(busy, sizeof busy, " while other processes used %.0f %% of this machine",
                100 * c.foreign);
  return text + (c.foreign > 0 ? busy : " beside other work");
}

std::string ceiling_share(double fraction) {
  if (fraction > kBeyondCeiling) return ">100 %";
  char text[32];
  std::snprintf(text, sizeof text, fraction < 0.0995 ? "%.1f %%" : "%.0f %%", fraction * 100);
  return text;
}

std::string ceiling_note(double fraction) {
  if (fraction <= kBeyondCeiling) return "";
  return "the ceiling measured here is too low, or the kernel does less work than the task "
         "declares: run `kernelpro doctor --remeasure` on a quiet machine, and check the bytes and "
         "FLOPs of the task";
}

std::string machine_to_json(const Machine& m) {
  return dump_json({{"target", m.target},
                    {"name", m.name},
                    {"versions", m.versions},
                    {"parallel_units", m.parallel_units},
                    {"arch", m.arch},
                    {"instruction_sets", m.instruction_sets},
                    {"caches", m.caches},
                    {"l2_bytes", m.l2_bytes},
                    {"theoretical_bytes_per_s", m.theoretical_bytes_per_s},
                    {"copy_bytes_per_s", m.ceilings.copy_bytes_per_s},
                    {"fma_flops_per_s", m.ceilings.fma_flops_per_s},
                    {"tensor_flops_per_s", m.ceilings.tensor_flops_per_s},
                    {"ceilings_how", m.ceilings.how},
                    {"ceilings_quiet", m.ceilings.quiet},
                    {"ceilings_rounds", m.ceilings.rounds},
                    {"ceilings_foreign", m.ceilings.foreign},
                    {"ceilings_measured_at", m.ceilings.measured_at}});
}

std::optional<Machine> machine_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  Machine m;
  m.target = r.text("target");
  m.name = r.text("name");
  m.versions = r.text("versions");
  m.parallel_units = static_cast<int>(r.integer("parallel_units", 1));
  m.arch = r.text("arch");
  m.instruction_sets = r.text("instruction_sets");
  m.caches = r.text("caches");
  m.l2_bytes = r.real("l2_bytes");
  m.theoretical_bytes_per_s = r.real("theoretical_bytes_per_s");
  m.ceilings.copy_bytes_per_s = r.real("copy_bytes_per_s");
  m.ceilings.fma_flops_per_s = r.real("fma_flops_per_s");
  m.ceilings.tensor_flops_per_s = r.real("tensor_flops_per_s");
  m.ceilings.how = r.text("ceilings_how");
  const Json* quiet = r.member("ceilings_quiet");
  m.ceilings.quiet = quiet == nullptr || !quiet->is_boolean() || quiet->get<bool>();
  m.ceilings.rounds = static_cast<int>(r.integer("ceilings_rounds"));
  m.ceilings.foreign = r.real("ceilings_foreign");
  m.ceilings.measured_at = r.text("ceilings_measured_at");
  return m;
}

}  // namespace kernelpro
