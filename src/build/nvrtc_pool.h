// SPDX-License-Identifier: Apache-2.0
// NVRTC in child processes (kernelpro-worker cuda-compile), so that a source that never ends or
// crashes the compiler costs only its process. Each serves one compilation after the other and
// keeps precompiled headers; they see the system and the toolkit, and write only their own folder.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/process/subprocess.h"
#include "build/cache.h"

namespace kernelpro {

struct NvrtcBuild {
  bool compiled = false;
  std::string log;
  std::string cubin;  // bytes
};

// The process was lost over a source: a crash, its time or memory, or a signal from outside.
// Another try might go differently.
struct NvrtcLost {
  std::string how;
  bool from_outside = false;
};

// Thread-safe: as many compilations at once as there are processes, the others wait for their turn.
class NvrtcPool {
 public:
  // `most`: processes; made when they are needed, the first by `version`. `include_dirs`: folders
  // of libraries that sources may include from.
  NvrtcPool(const BuildCache& cache, std::string arch, int most,
            std::vector<std::string> include_dirs);
  ~NvrtcPool();

  // NVRTC's version, "13.0"; "" when it is not there, and why in `problem`. That process then pays
  // NVRTC's start-up by itself, while nobody waits for it.
  std::string version(std::string* problem);
  // `library`: text of kLibraryHeader, which the source includes before anything else, behind
  // `#pragma nv_hdrstop`; "" where it starts with task.h.
  // Fails for the machine's sake alone.
  Result<tl::expected<NvrtcBuild, NvrtcLost>> compile(const std::string& source,
                                                      const std::string& header,
                                                      const std::string& library,
                                                      const std::string& file, double timeout_s);

 private:
  struct Slot;
  Result<void> start(Slot* slot);
  Slot* take();
  void give_back(Slot* slot);

  const BuildCache& cache_;
  std::string arch_;
  std::size_t most_;
  std::vector<std::string> include_dirs_;
  std::string version_;
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> idle_;  // the warmest last
};

}  // namespace kernelpro
