// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/capture/images.h"

#if KERNELPRO_HAVE_CUDA

#include <cstring>
#include <utility>

#include "base/hash.h"

namespace kernelpro {

namespace {

// Hashes of the images that were loaded in the innermost open call of this thread.
thread_local int calls_open = 0;
thread_local std::vector<std::string> loaded_in_call;

}  // namespace

bool image_defines(std::string_view image, const std::string& kernel) {
  // The name of its section, in the string table.
  const std::string name = std::string(1, '\0') + ".text." + kernel + '\0';
  return ::memmem(image.data(), image.size(), name.data(), name.size()) != nullptr;
}

void LoadedImages::loaded(std::string_view image) {
  const std::string hash = hash_hex(image);
  if (calls_open > 0) loaded_in_call.push_back(hash);
  const std::lock_guard lock(mutex_);
  Image& known = images_[hash];
  if (known.bytes.empty()) known.bytes = image;
}

void LoadedImages::begin_call() {
  if (calls_open++ == 0) loaded_in_call.clear();
}

void LoadedImages::end_call(const void* module) {
  if (calls_open == 0 || --calls_open > 0) return;
  const std::vector<std::string> hashes = std::exchange(loaded_in_call, {});
  if (hashes.empty()) return;
  const std::lock_guard lock(mutex_);
  // A new module may have an unloaded one's handle.
  for (auto& [hash, image] : images_) image.modules.erase(module);
  for (const std::string& hash : hashes) images_[hash].modules.insert(module);
}

tl::expected<int, CaptureFault> LoadedImages::find(const void* module, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  // Those of the module itself, else those of modules that nobody named, else any.
  std::vector<Image*> own, nameless, all;
  for (auto& [hash, image] : images_) {
    if (!image_defines(image.bytes, kernel)) continue;
    all.push_back(&image);
    if (image.modules.empty()) nameless.push_back(&image);
    if (module != nullptr && image.modules.count(module) != 0) own.push_back(&image);
  }
  const std::vector<Image*>& meant = !own.empty() ? own : !nameless.empty() ? nameless : all;
  if (meant.size() != 1) {
    return tl::unexpected<CaptureFault>(
        CaptureFault{"plan", meant.empty() ? "no loaded module holds the kernel " + kernel
                                           : "several loaded modules hold a kernel " + kernel});
  }
  Image* image = meant.front();
  if (image->number < 0) {
    image->number = static_cast<int>(used_.size());
    used_.push_back(image);
  }
  return image->number;
}

std::vector<std::string> LoadedImages::used() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const Image* image : used_) all.push_back(image->bytes);
  return all;
}

}  // namespace kernelpro

#endif
