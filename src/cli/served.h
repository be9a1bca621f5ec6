// SPDX-License-Identifier: Apache-2.0
// Options that `mcp` and `serve` share, and their conversion to DeskSettings.
#pragma once

#include "cli/subcommand.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

inline constexpr OptionSpec kServedTasks = {
    "TASKS", "DIR...", "", "Tasks, or folders that contain tasks; the current folder by default."};
inline constexpr OptionSpec kServedRuns = {"--runs", "DIR", "runs", "Where run folders go."};
inline constexpr OptionSpec kServedTarget = {
    "--target", "TARGET",       "auto", "Where kernels run unless the client chooses.",
    false,      "auto|cpu|cuda"};
inline constexpr OptionSpec kServedGpu = {"--gpu", "ID", "",
                                          "GPU by index or UUID; the first by default."};
inline constexpr OptionSpec kServedTimeout = {
    "--timeout", "S", "30", "Time limit for one call of a candidate, in seconds."};
inline constexpr OptionSpec kServedRecord = {
    "--no-record", "", "", "Neither read nor update the record of past findings and the memory."};

DeskSettings read_desk_settings(const Options& options);

}  // namespace kernelpro
