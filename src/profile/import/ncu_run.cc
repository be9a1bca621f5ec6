// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu_run.h"

#include <algorithm>
#include <set>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/evidence/counters.h"
#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

std::string escaped(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) result += '\\';
    result += c;
  }
  return result;
}

// Any context and stream; these functions; the first or second invocation of each. By mangled
// names, so that one instantiation of a template is told from another.
std::string kernel_id(const std::vector<NcuKernel>& kernels) {
  std::set<std::string> names;
  bool repeated = true;
  for (const NcuKernel& kernel : kernels) {
    if (!kernel.name.empty()) names.insert(escaped(kernel.name));
    repeated = repeated && kernel.repeated;
  }
  return "::regex:^(" + join_text({names.begin(), names.end()}, "|") +
         ")$:" + (repeated ? "2" : "1");
}

}  // namespace

Result<NcuImport> run_under_ncu(const std::vector<std::string>& argv,
                                const std::vector<NcuKernel>& kernels, double timeout_s) {
  const std::string ncu = find_cuda_tool("ncu");
  if (ncu.empty()) {
    return fail(ErrorKind::kEnvironment, "ncu was not found, so kernels have no hardware counters",
                "install Nsight Compute (the toolkit's package cuda-nsight-compute)");
  }
  std::vector<std::string> metrics = counters_of(CounterSet::kFull);
  for (const char* name : {"launch__registers_per_thread", "launch__grid_size",
                           "launch__block_size", "launch__waves_per_multiprocessor"}) {
    metrics.push_back(name);
  }
  const TempDir folder;
  const std::string log = join(folder.path(), "ncu.csv");
  Command command;
  command.argv = {ncu,
                  "--target-processes",
                  "all",
                  "--csv",
                  "--page",
                  "raw",
                  "--print-units",
                  "base",
                  "--kernel-name-base",
                  "mangled",
                  "--print-kernel-base",
                  "mangled",
                  "--kernel-id",
                  kernel_id(kernels),
                  "--cache-control",
                  "none",
                  "--clock-control",
                  "none",
                  "--metrics",
                  join_text(metrics, ","),
                  "--log-file",
                  log};
  command.argv.insert(command.argv.end(), argv.begin(), argv.end());
  command.env = {"LC_ALL=C"};
  command.limits.wall_seconds = timeout_s;
  command.limits.output_killed = 1LL << 30;
  KP_ASSIGN(const Exit exit, run(command));
  const auto text = read_file(log, 256 << 20);
  auto import = import_ncu_csv(text ? *text : exit.output, {});
  if (!import && !exit.ok()) {
    return fail(
        ErrorKind::kEnvironment,
        "the program under ncu " + exit.describe(command.limits) + ": " + import.error().message,
        import.error().next);
  }
  return import;
}

int add_ncu_counters(const NcuImport& import, Evidence* evidence) {
  int count = 0;
  for (KernelEvidence& kernel : evidence->kernels) {
    const double launches = kernel.facts.get("kernel.launches").value_or(1);
    const auto& all = import.evidence.kernels;
    // Kernels of several namespaces, or with other parameters, share a key.
    const bool exact = std::any_of(all.begin(), all.end(), [&](const KernelEvidence& theirs) {
      return theirs.name == kernel.name;
    });
    for (const KernelEvidence& theirs : all) {
      const bool same =
          exact ? theirs.name == kernel.name : kernel_key(theirs.name) == kernel_key(kernel.name);
      if (!same) continue;
      const double theirs_launches = theirs.facts.get("kernel.launches").value_or(1);
      bool any = false;
      for (const auto& [name, item] : theirs.facts.items()) {
        if (item.level != Level::kCounters || kernel.facts.find(name) != nullptr) continue;
        const double factor = adds_up(name) ? launches / theirs_launches : 1;
        kernel.facts.set(name, item.value * factor, "ncu");
        any = true;
      }
      count += any ? 1 : 0;
      break;
    }
  }
  return count;
}

}  // namespace kernelpro
