// SPDX-License-Identifier: Apache-2.0
// Role cuda-capture: runs a candidate's `launch` once under stream capture, in a process where no
// tensor has data, and returns the launch plan. One candidate per process.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/capture.h"

#include <dlfcn.h>
#include <unistd.h>

#include "core/protocol.h"
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

Captured capture(const CudaDriver& cu, Guarded launch, const std::vector<std::uint64_t>& args) {
  Captured captured;
  CUstream stream = nullptr;
  captured.result = cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (captured.result != CUDA_SUCCESS) return captured;
  captured.result = cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (captured.result != CUDA_SUCCESS) return captured;
  char message[1024] = "";
  captured.status = launch(args.data(), stream, message, sizeof message);
  captured.message = message;
  captured.result = cu.StreamEndCapture(stream, &captured.graph);
  return captured;
}

void serve(WorkerChannel* channel, const CudaDriver& cu, CUdevice device,
           const WorkerCommand& command) {
  const std::optional<AddressLayout> layout = layout_from_json(dump_json(command.json["layout"]));
  if (!layout) return channel->answer_error("the layout cannot be read");
  const Result<ScratchMapping> scratch = ScratchMapping::make(cu, device, *layout);
  if (!scratch) return channel->answer_error(scratch.error());
  const std::string object = command.text("shared_object");
  const Result<void> confined = enter_capture_sandbox(object);
  if (!confined) return channel->answer_error(confined.error());
  const int threads = own_threads();

  void* library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return channel->answer_error(std::string("cannot load: ") + ::dlerror());
  const auto launch = reinterpret_cast<Guarded>(::dlsym(library, "kp_guarded"));
  if (launch == nullptr) return channel->answer_broken("entry", "the object has no entry point");

  // Args is a sequence of pointers: the tensors in order, then the workspace (null without one).
  std::vector<std::uint64_t> args;
  for (const AddressLayout::Slot& slot : layout->slots) args.push_back(slot.address);
  if (!layout->has_workspace) args.push_back(0);

  const Captured captured = capture(cu, launch, args);
  if (own_threads() > threads) {
    return channel->answer_broken("thread",
                                  "launch left a thread running; all work must be in the launches");
  }
  if (captured.status == 1) {
    return channel->answer_error("launch threw: " + captured.message, RefusalKind::kException);
  }
  if (captured.status == 2) {
    return channel->answer_error("launch ended with " + captured.message, RefusalKind::kCudaError);
  }
  if (captured.result != CUDA_SUCCESS || captured.graph == nullptr) {
    return channel->answer_broken(
        "capture",
        "launch cannot be captured: " + cuda_error_text(captured.result) +
            (captured.message.empty() ? "" : "; its last CUDA error: " + captured.message) +
            ". Work must go to the stream that launch is given; synchronising, allocating and "
            "other streams that are not joined to it cannot be part of a launch plan");
  }
  auto plan = export_graph(cu, captured.graph, *layout);
  if (!plan) return channel->answer_broken(plan.error().rule, plan.error().reason);
  if (plan->kernel_count() == 0) {
    return channel->answer_error("launch launches no kernel", RefusalKind::kNoKernel);
  }
  channel->answer({{"plan", *parse_json(plan_to_json(*plan))}});
}

}  // namespace

int cuda_capture(int, char**) {
  WorkerChannel channel;
  const Result<CudaContext> context = CudaContext::open();
  while (std::optional<WorkerCommand> command = channel.next()) {
    if (!context) {
      channel.answer_error(context.error());
    } else {
      serve(&channel, **cuda_driver(), context->device(), *command);
    }
  }
  ::_exit(0);  // skips the candidate's destructors and exit handlers
}

}  // namespace kernelpro

#endif
