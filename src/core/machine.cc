// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include "core/json.h"

namespace kernelpro {

std::string machine_to_json(const Machine& m) {
  return dump_json({{"target", m.target},
                    {"name", m.name},
                    {"versions", m.versions},
                    {"parallel_units", m.parallel_units},
                    {"arch", m.arch},
                    {"l2_bytes", m.l2_bytes},
                    {"theoretical_bytes_per_s", m.theoretical_bytes_per_s},
                    {"copy_bytes_per_s", m.ceilings.copy_bytes_per_s},
                    {"fma_flops_per_s", m.ceilings.fma_flops_per_s},
                    {"tensor_flops_per_s", m.ceilings.tensor_flops_per_s},
                    {"ceilings_how", m.ceilings.how}});
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
  m.l2_bytes = r.real("l2_bytes");
  m.theoretical_bytes_per_s = r.real("theoretical_bytes_per_s");
  m.ceilings = {r.real("copy_bytes_per_s"), r.real("fma_flops_per_s"), r.real("tensor_flops_per_s"),
                r.text("ceilings_how")};
  return m;
}

}  // namespace kernelpro
