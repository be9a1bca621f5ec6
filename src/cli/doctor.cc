// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "machine/doctor/probes.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kDoctorOptions[] = {
    {"--quick", "", "", "Neither measure the machine's ceilings nor import PyTorch."},
    {"--remeasure", "", "", "Measure the ceilings again; the best rates seen so far are kept."},
    {"--json", "", "", "Print as JSON."},
};

std::string ceilings_text(const Machine& machine) {
  const Ceilings& c = machine.ceilings;
  std::string text = "copy " + human_bytes(c.copy_bytes_per_s) + "/s, fp32 " +
                     number(c.fma_flops_per_s * 1e-9, 4) + " GFLOP/s";
  if (c.tensor_flops_per_s > 0) {
    text += ", matrix units " + number(c.tensor_flops_per_s * 1e-12, 4) + " TFLOP/s";
  }
  const std::string basis = ceilings_basis(c);
  return basis.empty() ? text : text + " (" + basis + ")";
}

Probe ceilings_probe(const char* group, const Result<Machine>& machine) {
  if (machine && !machine->ceilings.quiet) {
    return {group, "measured ceilings", ProbeState::kLimited, ceilings_text(*machine),
            "the true rates may be higher: run `kernelpro doctor --remeasure` when the machine is "
            "quiet"};
  }
  if (machine) {
    return {group, "measured ceilings", ProbeState::kOk, ceilings_text(*machine), ""};
  }
  return {group, "measured ceilings", ProbeState::kMissing, machine.error().message,
          machine.error().next};
}

bool has_torch(const std::vector<Probe>& probes) {
  return std::any_of(probes.begin(), probes.end(), [](const Probe& probe) {
    return probe.name == "torch" && probe.state != ProbeState::kMissing;
  });
}

// Appends the probes that take seconds to the end of their groups.
void add_slow_ones(CeilingsWanted wanted, std::vector<Probe>* probes) {
  std::vector<Probe> result;
  for (std::size_t i = 0; i < probes->size(); ++i) {
    const std::string group = (*probes)[i].group;
    result.push_back((*probes)[i]);
    if (i + 1 < probes->size() && (*probes)[i + 1].group == group) continue;
    if (group == "cpu target") {
      result.push_back(ceilings_probe("cpu target", describe_cpu_machine(wanted)));
    } else if (group == "cuda target") {
      result.push_back(ceilings_probe("cuda target", describe_cuda_machine(wanted)));
    } else if (group == "PyTorch tasks" && has_torch(*probes)) {
      result.push_back(probe_torch_device());
    }
  }
  *probes = std::move(result);
}

void print_text(const std::vector<Probe>& probes) {
  std::string group;
  for (const Probe& probe : probes) {
    if (probe.group != group) std::printf("%s%s\n", group.empty() ? "" : "\n", probe.group.c_str());
    group = probe.group;
    std::printf("  %-8s %-22s %s\n", probe_state_name(probe.state).c_str(), probe.name.c_str(),
                probe.found.c_str());
    if (probe.state != ProbeState::kOk && !probe.next.empty()) {
      std::printf("  %-8s %-22s -> %s\n", "", "", probe.next.c_str());
    }
  }
}

int run_doctor(const Options& options) {
  std::vector<Probe> probes = probe_machine();
  const bool again = options.flag("--remeasure");
  if (again && options.flag("--quick")) {
    throw Fatal({ErrorKind::kBadInput, "--quick measures no ceilings, but --remeasure does",
                 "leave one of them out"});
  }
  if (!options.flag("--quick")) {
    add_slow_ones(again ? CeilingsWanted::kAgain : CeilingsWanted::kAny, &probes);
  }
  if (!options.flag("--json")) {
    print_text(probes);
    return 0;
  }
  Json json = Json::array();
  for (const Probe& probe : probes) {
    json.push_back({{"group", probe.group},
                    {"name", probe.name},
                    {"state", probe_state_name(probe.state)},
                    {"found", probe.found},
                    {"next", probe.next}});
  }
  std::printf("%s\n", dump_json(json, 2).c_str());
  return 0;
}

}  // namespace

extern const Subcommand kDoctor{
    "doctor", "Show what this machine supports, what is missing, and how to get it.",
    kDoctorOptions, run_doctor};

}  // namespace kernelpro
