// SPDX-License-Identifier: Apache-2.0
// Options shared by the commands that take a TASK, and their conversion to OpenSettings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/subcommand.h"
#include "measure/remote/stations.h"
#include "run/evaluate_one.h"
#include "task/open/open_task.h"

namespace kernelpro {

// Rows for a command's options.
inline constexpr OptionSpec kTaskOption = {
    "TASK", "", "", "Task folder (with task.toml), or a PyTorch file with Model.", true};
inline constexpr OptionSpec kPrecisionOption = {
    "--precision",        "NAME", "", "Precision contract, instead of the task's own.", false,
    "fp32|tf32|fp16|bf16"};
inline constexpr OptionSpec kSetOption = {"--set", "NAME=VALUE...", "",
                                          "Replace an integer at the top of a PyTorch file."};
inline constexpr OptionSpec kPythonOption = {"--python", "FILE", "",
                                             "Interpreter with PyTorch; python3 by default."};
inline constexpr OptionSpec kIncludeOption = {
    "--include", "DIR...", "",
    "Folder that candidates may #include from, like the libraries of `kernelpro knowledge`."};
inline constexpr OptionSpec kStationOption = {
    "--station", "ADDRESS...", "",
    "Measure on another machine: ssh://USER@HOST, or a name from stations.toml (docs/stations.md); "
    "several measure in parallel."};
// Row of the option that sets RunSettings::counters.
constexpr OptionSpec profile_option(std::string_view initial) {
  return {"--profile",
          "SET",
          initial,
          "GPU hardware counters: none, enough to find the bottleneck (triage), or all (full).",
          false,
          "off|triage|full"};
}

// NAME=VALUE pairs of a repeated option; throws Fatal on anything else.
std::map<std::string, std::string> read_pairs(const Options& options, const std::string& name);
// Folders of --include and of the indexed libraries; throws Fatal when one does not exist.
std::vector<std::string> read_include_dirs(const Options& options);
// The addresses of --station; empty: this machine.
std::vector<std::string> read_stations(const Options& options);
// The GPUs that --gpu names (machine/gpu_watch.h) on `host`; empty when --gpu was not given.
std::vector<std::string> read_gpus(const Options& options, const Host& host = Host());
// Reads a kernel's source; its language is that of the file's name. Throws Fatal.
KernelFile read_kernel(const std::string& file);
inline constexpr std::int64_t kMaxSource = 4 << 20;  // bytes
// From the kernels' languages; Python runs on a GPU if `host` has one. Throws Fatal when they need
// different targets.
TargetKind target_of_kernels(const Host& host, const std::vector<KernelFile>& kernels);
// "runs/softmax:17" is a run and 17, a run's folder or its text alone the run and 0; nullopt: no
// run. Throws Fatal when the number is none.
std::optional<std::pair<std::string, std::int64_t>> candidate_named(const std::string& what);
// All settings except the target, the start and the GPU.
OpenSettings read_open_settings(const Options& options);

}  // namespace kernelpro
