// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace kernelpro {

namespace {
constexpr const Subcommand* kSubcommands[] = {
    &kOptimize, &kResume, &kEvaluate, &kDiagnose, &kTools,     &kNew,    &kExport,
    &kShow,     &kList,   &kReport,   &kReplay,   &kKnowledge, &kDoctor, &kHelp,
};
}  // namespace

std::span<const Subcommand* const> subcommands() { return kSubcommands; }

}  // namespace kernelpro
