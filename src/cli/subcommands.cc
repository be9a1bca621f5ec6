// SPDX-License-Identifier: Apache-2.0
#include "cli/subcommand.h"

namespace kernelpro {

// Every command, by the name of the row that its file defines, in help order.
#define KERNELPRO_COMMANDS(ROW) \
  ROW(kOptimize)                \
  ROW(kBench)                   \
  ROW(kResume)                  \
  ROW(kPropose)                 \
  ROW(kMeasure)                 \
  ROW(kEvaluate)                \
  ROW(kCompare)                 \
  ROW(kDiagnose)                \
  ROW(kTools)                   \
  ROW(kKnowledge)               \
  ROW(kMemory)                  \
  ROW(kMcp)                     \
  ROW(kServe)                   \
  ROW(kStation)                 \
  ROW(kNew)                     \
  ROW(kExport)                  \
  ROW(kShow)                    \
  ROW(kList)                    \
  ROW(kReport)                  \
  ROW(kReplay)                  \
  ROW(kPack)                    \
  ROW(kTrajectories)            \
  ROW(kDoctor)                  \
  ROW(kHelp)

#define KERNELPRO_DECLARE(row) extern const Subcommand row;
KERNELPRO_COMMANDS(KERNELPRO_DECLARE)

std::span<const Subcommand* const> subcommands() {
#define KERNELPRO_ADDRESS(row) &row,
  static constexpr const Subcommand* kAll[] = {KERNELPRO_COMMANDS(KERNELPRO_ADDRESS)};
  return kAll;
}

}  // namespace kernelpro
