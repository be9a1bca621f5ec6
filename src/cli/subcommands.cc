// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace kernelpro {

namespace {
constexpr const Subcommand* kSubcommands[] = {
    &kOptimize,  &kBench,  &kResume, &kPropose,      &kMeasure, &kEvaluate, &kDiagnose, &kTools,
    &kKnowledge, &kMemory, &kMcp,    &kServe,        &kNew,     &kExport,   &kShow,     &kList,
    &kReport,    &kReplay, &kPack,   &kTrajectories, &kDoctor,  &kHelp,
};
}  // namespace

std::span<const Subcommand* const> subcommands() { return kSubcommands; }

}  // namespace kernelpro
