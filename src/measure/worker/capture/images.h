// SPDX-License-Identifier: Apache-2.0
// The device code that a program has loaded: its own modules, Triton's, those of libraries. Which
// of it holds a launched kernel: names alone do not decide, since an autotuner loads many kernels
// of one name. Thread-safe.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "measure/worker/cuda/capture.h"

namespace kernelpro {

class LoadedImages {
 public:
  // A module with this image was loaded, on this thread.
  void loaded(std::string_view image);
  // Brackets a driver call on this thread that loads or uses a module by its handle: what is loaded
  // in between is that module's.
  void begin_call();
  void end_call(const void* module);

  // The number of the image that holds the kernel of a module; null: the module is not known. Two
  // that could be meant are a fault.
  tl::expected<int, CaptureFault> find(const void* module, const std::string& kernel);
  // The images that `find` answered, by number.
  std::vector<std::string> used() const;

 private:
  struct Image {
    std::string bytes;
    std::set<const void*> modules;
    int number = -1;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Image> images_;  // by hash
  std::vector<const Image*> used_;
};

// Whether an ELF image has a function of this name.
bool image_defines(std::string_view image, const std::string& kernel);

// Tells `images` from now on of every module that this process loads. Before CUDA is used for the
// first time. "", or why it cannot.
std::string watch_module_loads(LoadedImages* images);

}  // namespace kernelpro

#endif
