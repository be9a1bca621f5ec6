// SPDX-License-Identifier: Apache-2.0
// libkernelpro_capture.so: CallCapture for Python (python/kernelpro_torch/capture.py, by ctypes).
// One capture per process. Functions that can fail return a text: null, or what went wrong, valid
// until the next call. Errors of the candidate that a plan cannot hold come with their rule in
// front: "rule: reason".
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#if KERNELPRO_HAVE_CUDA

#include "base/files.h"
#include "base/hash.h"
#include "measure/worker/capture/call_capture.h"

#define KP_CAPTURE_API extern "C" __attribute__((visibility("default")))

namespace kernelpro {

namespace {

struct Library {
  std::mutex mutex;
  LoadedImages images;
  std::unique_ptr<CallCapture> capture;
  std::string text;
};

// Never destroyed: PyTorch frees memory until the process ends.
Library& library() {
  static auto* const one = new Library;
  return *one;
}

const char* said(std::string text) {
  library().text = std::move(text);
  return library().text.c_str();
}
const char* outcome(const Result<void>& result) {
  return result ? nullptr : said(result.error().message);
}

// With PyTorch's context, or the one that it will use.
CallCapture* capture() {
  Library& l = library();
  const std::lock_guard lock(l.mutex);
  if (l.capture) return l.capture.get();
  const auto driver = cuda_driver();
  if (!driver || (*driver)->Init(0) != CUDA_SUCCESS) return nullptr;
  CUcontext context = nullptr;
  if ((*driver)->CtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) {
    if ((*driver)->DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        (*driver)->CtxSetCurrent(context) != CUDA_SUCCESS) {
      return nullptr;
    }
  }
  l.capture = std::make_unique<CallCapture>(**driver, 0, &l.images);
  return l.capture.get();
}

Result<void> write_images(const std::string& folder, std::string* names) {
  for (const std::string& image : library().images.used()) {
    const std::string name = hash_hex(image) + ".cubin";
    if (!exists(join(folder, name))) KP_TRY(write_file(join(folder, name), image));
    *names += (names->empty() ? "\"" : ",\"") + name + "\"";
  }
  return {};
}

}  // namespace

}  // namespace kernelpro

using namespace kernelpro;

// Before CUDA is used.
KP_CAPTURE_API const char* kp_capture_watch() {
  const std::string problem = watch_module_loads(&library().images);
  return problem.empty() ? nullptr : said(problem);
}

KP_CAPTURE_API void* kp_capture_allocate(std::ptrdiff_t bytes, int, void* stream) {
  CallCapture* c = capture();
  if (c == nullptr || bytes <= 0) return nullptr;
  return reinterpret_cast<void*>(
      c->allocate(static_cast<std::uint64_t>(bytes), static_cast<CUstream>(stream)));
}
KP_CAPTURE_API void kp_capture_free(void* address, std::ptrdiff_t, int, void*) {
  CallCapture* c = capture();
  if (c != nullptr && address != nullptr) c->free(reinterpret_cast<std::uint64_t>(address));
}
KP_CAPTURE_API void kp_capture_share(void* address, void*) {
  CallCapture* c = capture();
  if (c != nullptr && address != nullptr) c->share(reinterpret_cast<std::uint64_t>(address));
}

// `slots`: four numbers each, as AddressLayout::Slot has them.
KP_CAPTURE_API const char* kp_capture_open(std::uint64_t base, std::uint64_t reserve_bytes,
                                           const std::uint64_t* slots, int count, int second) {
  CallCapture* c = capture();
  if (c == nullptr) return said("there is no CUDA context");
  AddressLayout layout;
  layout.base = base;
  layout.reserve_bytes = reserve_bytes;
  for (int i = 0; i < count; ++i, slots += 4) {
    layout.slots.push_back({slots[0], slots[1], slots[2], slots[3]});
  }
  return outcome(c->open(layout, second != 0));
}
KP_CAPTURE_API void kp_capture_close() {
  if (CallCapture* c = capture()) c->close();
}
// The address of a slot in this capture.
KP_CAPTURE_API std::uint64_t kp_capture_slot(int slot) {
  CallCapture* c = capture();
  const auto at = static_cast<std::size_t>(slot);
  return c != nullptr && at < c->layout().slots.size() ? c->layout().slots[at].address : 0;
}

// `places`: pairs of an allocation's number and a slot.
KP_CAPTURE_API const char* kp_capture_begin(void* stream, const int* places, int count) {
  CallCapture* c = capture();
  if (c == nullptr) return said("there is no CUDA context");
  std::map<int, int> all;
  for (int i = 0; i < count; ++i) all[places[2 * i]] = places[2 * i + 1];
  return outcome(c->begin(static_cast<CUstream>(stream), all));
}
KP_CAPTURE_API const char* kp_capture_end(void* stream) {
  CallCapture* c = capture();
  if (c == nullptr) return said("there is no CUDA context");
  return outcome(c->end(static_cast<CUstream>(stream)));
}
KP_CAPTURE_API int kp_capture_number(void* address) {
  CallCapture* c = capture();
  return c == nullptr ? -1 : c->number_of(reinterpret_cast<std::uint64_t>(address));
}
// How many steps the call that is being captured has so far; -1: unknown.
KP_CAPTURE_API int kp_capture_steps(void* stream) {
  CallCapture* c = capture();
  return c == nullptr ? -1 : c->steps(static_cast<CUstream>(stream));
}
KP_CAPTURE_API int kp_capture_short_of_memory() {
  CallCapture* c = capture();
  return c != nullptr && c->short_of_memory() ? 1 : 0;
}

// The captured call as JSON, or "rule: reason" with `*failed` set. Writes files to `folder`.
KP_CAPTURE_API const char* kp_capture_export(const char* folder, int* failed) {
  CallCapture* c = capture();
  *failed = 1;
  if (c == nullptr) return said("capture: there is no CUDA context");
  const auto call = c->exported(folder);
  if (!call) return said(call.error().rule + ": " + call.error().reason);
  std::string names;
  if (const Result<void> written = write_images(folder, &names); !written) {
    return said("capture: " + written.error().message);
  }
  *failed = 0;
  return said("{\"call\":" + captured_call_to_json(*call) + ",\"images\":[" + names + "]}");
}

#endif
