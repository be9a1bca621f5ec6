// SPDX-License-Identifier: Apache-2.0
// NVRTC in child processes (kernelpro-worker cuda-compile), so that a source that hangs or crashes
// the compiler costs only its process. Each serves one compilation at a time and keeps precompiled
// headers; it sees the system and the toolkit, and can write only its own folder.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/json.h"
#include "base/process/subprocess.h"
#include "build/cache.h"

namespace kernelpro {

struct NvrtcBuild {
  bool compiled = false;
  std::string log;
  std::string cubin;  // bytes
};

// The process died on a source, or twice found no memory for its precompiled header: a crash, a
// time or memory limit, or an external signal. A retry might succeed.
struct NvrtcLost {
  std::string how;
  bool from_outside = false;
  // A crash, a hang or no memory, which another compiler may not share.
  bool of_the_compiler = false;
};

// Thread-safe: one compilation per process at a time, the others wait for a free process.
class NvrtcPool {
 public:
  // `most`: processes; started on demand, the first by `version`. `include_dirs`: library folders
  // that sources may include from.
  NvrtcPool(const BuildCache& cache, std::string arch, int most,
            std::vector<std::string> include_dirs);
  ~NvrtcPool();

  // NVRTC's version, "13.0"; "" if it is missing, with the reason in `problem`. The process then
  // warms up NVRTC in the background.
  std::string version(std::string* problem);
  // `library`: text of kLibraryHeader, which the source includes first, before `#pragma
  // nv_hdrstop`; "" if it starts with task.h. Fails only if the machine is at fault.
  Result<tl::expected<NvrtcBuild, NvrtcLost>> compile(const std::string& source,
                                                      const std::string& header,
                                                      const std::string& library,
                                                      const std::string& file, double timeout_s);

 private:
  struct Slot;
  Result<void> start(Slot* slot);
  Slot* take();
  void give_back(Slot* slot);
  // Of its running process.
  Result<tl::expected<NvrtcBuild, NvrtcLost>> answer_of(Slot* slot, const Json& message,
                                                        double timeout_s);

  const BuildCache& cache_;
  std::string arch_;
  std::size_t most_;
  std::vector<std::string> include_dirs_;
  std::string version_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> idle_;  // warmest last
};

}  // namespace kernelpro
