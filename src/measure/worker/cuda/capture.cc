// SPDX-License-Identifier: Apache-2.0
// Role cuda-capture: runs a candidate's `launch` once under stream capture, in a process where no
// tensor has data, and returns the launch plan; then perhaps once more outside of a capture, over a
// set's memory, for the judge to look at the results. One candidate per process.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/capture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/protocol.h"
#include "measure/worker/cuda/capture_sandbox.h"
#include "measure/worker/cuda/memory.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

// kp_guarded of build/cuda_compiler.cc.
using Guarded = int (*)(const void* args, CUstream stream, char* message, std::size_t size);

struct Captured {
  CUgraph graph = nullptr;
  int status = 0;       // 1: an exception; 2: a CUDA error of the candidate
  std::string message;  // for either, or its last CUDA error
  CUresult result = CUDA_SUCCESS;
};

class CaptureProcess {
 public:
  CaptureProcess(WorkerChannel* channel, const CudaDriver& cu, CUdevice device)
      : channel_(channel), cu_(cu), device_(device) {}

  void serve(const WorkerCommand& command) {
    const std::string verb = command.verb();
    if (verb == "capture") return capture(command);
    if (launch_ == nullptr) return channel_->answer_error("nothing was captured here");
    Result<Json> answer = verb == "memory" ? memory(command)
                          : verb == "call" ? call(command)
                                           : fail(ErrorKind::kInternal, "unknown command", "");
    answer ? channel_->answer(std::move(*answer)) : channel_->answer_error(answer.error());
  }

 private:
  Captured captured() {
    Captured captured;
    captured.result = cu_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    if (captured.result != CUDA_SUCCESS) return captured;
    captured.result = cu_.StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (captured.result != CUDA_SUCCESS) return captured;
    char message[1024] = "";
    captured.status = launch_(args_.data(), stream_, message, sizeof message);
    captured.message = message;
    captured.result = cu_.StreamEndCapture(stream_, &captured.graph);
    return captured;
  }

  void capture(const WorkerCommand& command) {
    const std::optional<AddressLayout> layout = layout_from_json(dump_json(command.json["layout"]));
    if (!layout || launch_ != nullptr) return channel_->answer_error("the layout cannot be read");
    layout_ = *layout;
    Result<ScratchMapping> scratch = ScratchMapping::make(cu_, device_, layout_);
    if (!scratch) return channel_->answer_error(scratch.error());
    scratch_ = std::move(*scratch);
    const std::string object = command.text("shared_object");
    const Result<void> confined = enter_capture_sandbox(object);
    if (!confined) return channel_->answer_error(confined.error());
    const int threads = own_threads();

    void* library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return channel_->answer_error(std::string("cannot load: ") + ::dlerror());
    }
    launch_ = reinterpret_cast<Guarded>(::dlsym(library, "kp_guarded"));
    if (launch_ == nullptr) {
      return channel_->answer_broken("entry", "the object has no entry point");
    }
    // Args is a sequence of pointers: the tensors in order, then the workspace (null without one).
    for (const AddressLayout::Slot& slot : layout_.slots) args_.push_back(slot.address);
    if (!layout_.has_workspace) args_.push_back(0);
    answer(captured(), threads);
  }

  void answer(const Captured& captured, int threads) {
    if (own_threads() > threads) {
      return channel_->answer_broken(
          "thread", "launch left a thread running; all work must be in the launches");
    }
    if (captured.status == 1) {
      return channel_->answer_error("launch threw: " + captured.message, RefusalKind::kException);
    }
    if (captured.status == 2) {
      return channel_->answer_error("launch ended with " + captured.message,
                                    RefusalKind::kCudaError);
    }
    if (captured.result != CUDA_SUCCESS || captured.graph == nullptr) {
      return channel_->answer_broken(
          "capture",
          "launch cannot be captured: " + cuda_error_text(captured.result) +
              (captured.message.empty() ? "" : "; its last CUDA error: " + captured.message) +
              ". Work must go to the stream that launch is given; synchronising, allocating and "
              "other streams that are not joined to it cannot be part of a launch plan");
    }
    auto plan = export_graph(cu_, captured.graph, layout_);
    if (!plan) return channel_->answer_broken(plan.error().rule, plan.error().reason);
    if (plan->kernel_count() == 0) {
      return channel_->answer_error("launch launches no kernel", RefusalKind::kNoKernel);
    }
    channel_->answer({{"plan", *parse_json(plan_to_json(*plan))}});
  }

  // A set's memory, by slot.
  Result<Json> memory(const WorkerCommand& command) {
    const Json& slots = JsonReader(command.json).array("slots");
    for (std::size_t i = 0; i < std::min(slots.size(), command.fds.size()); ++i) {
      const auto slot = slots[i].is_number_unsigned() ? slots[i].get<std::size_t>() : SIZE_MAX;
      if (slot >= layout_.slots.size()) return fail(ErrorKind::kInternal, "no such slot", "");
      KP_ASSIGN(memory_[slot], PhysicalMemory::import(cu_, command.fds[i].get(),
                                                      layout_.slots[slot].mapping_bytes));
    }
    return Json::object();
  }

  // One call outside of a capture, over that memory.
  Result<Json> call(const WorkerCommand& command) {
    scratch_.reset();
    KP_ASSIGN(range_, AddressRange::reserve(cu_, layout_.base, layout_.reserve_bytes));
    const Json& inputs = JsonReader(command.json).array("inputs");
    for (const auto& [slot, physical] : memory_) {
      const AddressLayout::Slot& at = layout_.slots[slot];
      if (slot < inputs.size() && inputs[slot] == true) {
        KP_TRY(range_.map_read_only(device_, at.mapping, at.mapping_bytes, physical.handle()));
      } else {
        KP_TRY(range_.map(device_, at.mapping, at.mapping_bytes, physical.handle()));
      }
    }
    char message[1024] = "";
    const int status = launch_(args_.data(), stream_, message, sizeof message);
    KP_CUDA_TRY(cu_.CtxSynchronize());
    if (status == 0) return Json::object();
    return fail(ErrorKind::kBadInput, std::string("it ended with ") + message, "");
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  CUdevice device_;
  AddressLayout layout_;
  std::optional<ScratchMapping> scratch_;
  Guarded launch_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<std::uint64_t> args_;
  std::map<std::size_t, PhysicalMemory> memory_;
  AddressRange range_;  // unmapped before the memory is released
};

}  // namespace

int cuda_capture(int, char**) {
  WorkerChannel channel;
  const Result<CudaContext> context = CudaContext::open();
  std::optional<CaptureProcess> process;
  while (std::optional<WorkerCommand> command = channel.next()) {
    if (!context) {
      channel.answer_error(context.error());
      continue;
    }
    if (!process) process.emplace(&channel, **cuda_driver(), context->device());
    process->serve(*command);
  }
  ::_exit(0);  // skips the candidate's destructors and exit handlers
}

}  // namespace kernelpro

#endif
