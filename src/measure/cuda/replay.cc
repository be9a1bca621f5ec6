// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/replay.h"

#include "base/files.h"
#include "core/json.h"

namespace kernelpro {

Result<void> write_replay(const std::string& path, const Binary& binary, const LaunchPlan& plan,
                          const AddressLayout& layout, const std::vector<JudgeTensor>& tensors,
                          std::uint64_t seed) {
  return write_file(path, dump_json({{"cubin", binary.cubin},
                                     {"plan", *parse_json(plan_to_json(plan))},
                                     {"layout", *parse_json(layout_to_json(layout))},
                                     {"tensors", *parse_json(judge_tensors_to_json(tensors))},
                                     {"seed", seed}}));
}

}  // namespace kernelpro
