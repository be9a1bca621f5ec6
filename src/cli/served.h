// SPDX-License-Identifier: Apache-2.0
// Options that `mcp` and `serve` share, and their conversion to DeskSettings.
#pragma once

#include "cli/subcommand.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

inline constexpr OptionSpec kServedTasks = {
    "TASKS", "DIR...", "", "Tasks, or folders with tasks below; the current folder by default."};
inline constexpr OptionSpec kServedRuns = {"--runs", "DIR", "runs", "Where run folders go."};
inline constexpr OptionSpec kServedTarget = {
    "--target", "TARGET",       "auto", "Where kernels run when the client does not say.",
    false,      "auto|cpu|cuda"};
inline constexpr OptionSpec kServedGpu = {"--gpu", "ID", "",
                                          "GPU by index or UUID; the first by default."};
inline constexpr OptionSpec kServedTimeout = {"--timeout", "S", "30",
                                              "Longest time for one call of a candidate."};
inline constexpr OptionSpec kServedRecord = {
    "--no-record", "", "",
    "Neither use nor extend the record of what came of findings and the memory."};

DeskSettings read_desk_settings(const Options& options);

}  // namespace kernelpro
