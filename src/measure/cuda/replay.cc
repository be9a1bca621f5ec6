// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/replay.h"

#include "base/files.h"
#include "base/json.h"
#include "core/task/key.h"

namespace kernelpro {

Result<void> write_replay(const std::string& path, const Binary& binary, const LaunchPlan& plan,
                          const AddressLayout& layout, const std::vector<JudgeTensor>& tensors,
                          const kp::Key& key) {
  return write_file(path, dump_json({{"cubin", binary.cubin},
                                     {"plan", *parse_json(plan_to_json(plan))},
                                     {"layout", *parse_json(layout_to_json(layout))},
                                     {"tensors", *parse_json(judge_tensors_to_json(tensors))},
                                     {"key", key_to_text(key)}}));
}

}  // namespace kernelpro
