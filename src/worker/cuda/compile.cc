// SPDX-License-Identifier: Apache-2.0
// Role cuda-compile: NVRTC in a process of its own, so that a source that never ends or crashes the
// compiler costs only this process. Serves any number of compilations (the first pays NVRTC's
// start).
#if KERNELPRO_HAVE_CUDA

#include "worker/cuda/message.h"
#include "worker/cuda/nvrtc.h"
#include "worker/roles.h"

namespace kernelpro {

namespace {

void serve_compile(WorkerChannel* channel, const WorkerCommand& command) {
  std::vector<std::string> options;
  for (const Json& option : JsonReader(command.json).array("options")) {
    if (option.is_string()) options.push_back(option.get<std::string>());
  }
  const std::string include = cuda_include_dir();
  if (!include.empty()) {
    options.push_back("-I" + include);
    options.push_back("-I" + include + "/cccl");
  }
  Result<NvrtcOutput> output = nvrtc_compile(command.text("source"), command.text("file"),
                                             {{"task.h", command.text("header")}}, options);
  if (!output) return channel->answer_error(output.error());
  std::string path = command.text("output");
  if (output->ok) {
    const Result<void> written = write_file(path, output->cubin);
    if (!written) return channel->answer_error(written.error());
  }
  channel->answer({{"compiled", output->ok}, {"log", output->log}});
}

}  // namespace

int cuda_compile(int, char**) {
  WorkerChannel channel;
  const Result<std::string> version = nvrtc_version();
  while (const std::optional<WorkerCommand> command = channel.next()) {
    if (!version) {
      channel.answer_error(version.error());
    } else if (command->verb() == "version") {
      channel.answer({{"version", *version}});
    } else {
      serve_compile(&channel, *command);
    }
  }
  return 0;
}

}  // namespace kernelpro

#endif
