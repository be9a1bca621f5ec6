// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/plan_files.h"

#include <utility>

#include "base/files.h"

namespace kernelpro {

Result<PlanFiles> plan_files(const WorkerCommand& command, const LaunchPlan& plan) {
  std::vector<std::string> paths;
  for (const Json& path : JsonReader(command.json).array("images")) {
    if (path.is_string()) paths.push_back(path.get<std::string>());
  }
  if (paths.empty()) paths.push_back(command.text("cubin"));
  PlanFiles files;
  for (const std::string& path : paths) {
    KP_ASSIGN(std::string image, read_file(path));
    files.images.push_back(std::move(image));
  }
  for (const PlanConstant& constant : plan.constants) {
    KP_ASSIGN(std::string bytes, read_file(constant.file));
    if (bytes.size() != constant.bytes) {
      return fail(ErrorKind::kBadInput, "a constant has another size than its plan states", "");
    }
    files.constants.push_back(std::move(bytes));
  }
  return files;
}

}  // namespace kernelpro
