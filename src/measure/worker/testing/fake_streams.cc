// SPDX-License-Identifier: Apache-2.0
// The fake driver's launches, streams and events.
#if KERNELPRO_HAVE_CUDA

#include <utility>

#include "measure/worker/testing/fake_state.h"

using namespace kernelpro::fake;

// After what the graph already has.
static CUresult capture_launch(CUgraph handle, const CUlaunchConfig& config, CUfunction function,
                               void** parameters) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function;
  params.gridDimX = config.gridDimX;
  params.gridDimY = config.gridDimY;
  params.gridDimZ = config.gridDimZ;
  params.blockDimX = config.blockDimX;
  params.blockDimY = config.blockDimY;
  params.blockDimZ = config.blockDimZ;
  params.sharedMemBytes = config.sharedMemBytes;
  params.kernelParams = parameters;
  Graph& graph = *reinterpret_cast<Graph*>(handle);
  Node* last = graph.nodes.empty() ? nullptr : graph.nodes.back().get();
  CUgraphNode made = nullptr;
  const CUresult added = cuGraphAddKernelNode(&made, handle, nullptr, 0, &params);
  if (added == CUDA_SUCCESS && last != nullptr) {
    graph.edges.push_back({last, reinterpret_cast<Node*>(made), CUgraphEdgeData{}});
  }
  return added;
}

KP_FAKE(LaunchKernelEx, const CUlaunchConfig* config, CUfunction function, void** parameters,
        void**) {
  KP_FAKE_ENTER(LaunchKernelEx);
  auto* f = reinterpret_cast<Function*>(function);
  if (!state().functions.has(f) || !state().good_stream(config->hStream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Launch launch;
  launch.kernel = f->name;
  launch.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  launch.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  launch.shared = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    apply_attribute(config->attrs[i].id, config->attrs[i].value, &launch);
  }
  if (const CUresult bad = check_launch(*f, launch); bad != CUDA_SUCCESS) return bad;
  if (const auto captured = state().captures.find(config->hStream);
      captured != state().captures.end()) {
    return capture_launch(captured->second, *config, function, parameters);
  }
  read_parameters(*f->kernel, parameters, &launch);
  return state().run(f, std::move(launch), "launch");
}
KP_FAKE(LaunchKernel, CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
        void** parameters, void** extra) {
  const CUlaunchConfig config{grid_x,  grid_y, grid_z, block_x, block_y,
                              block_z, shared, stream, nullptr, 0};
  return cuLaunchKernelEx(&config, function, parameters, extra);
}

KP_FAKE(StreamCreate, CUstream* stream, unsigned) {
  KP_FAKE_ENTER(StreamCreate);
  *stream = reinterpret_cast<CUstream>(state().streams.add());
  return CUDA_SUCCESS;
}
KP_FAKE(StreamDestroy, CUstream stream) {
  state().leave("StreamDestroy");
  if (!state().streams.remove(stream)) state().complain("an unknown stream is destroyed");
  return state().broken;
}
KP_FAKE(StreamSynchronize, CUstream stream) {
  KP_FAKE_ENTER(StreamSynchronize);
  return state().good_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
// Kernels are captured, one after the other; nothing else.
KP_FAKE(StreamBeginCapture, CUstream stream, CUstreamCaptureMode) {
  KP_FAKE_ENTER(StreamBeginCapture);
  if (!state().good_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  state().captures[stream] = reinterpret_cast<CUgraph>(state().graphs.add());
  return CUDA_SUCCESS;
}
KP_FAKE(StreamEndCapture, CUstream stream, CUgraph* graph) {
  const auto found = state().captures.find(stream);
  if (found == state().captures.end()) return CUDA_ERROR_INVALID_HANDLE;
  *graph = found->second;
  state().captures.erase(found);
  const CUresult entered = state().enter("StreamEndCapture");
  if (entered == CUDA_SUCCESS) return CUDA_SUCCESS;
  state().graphs.remove(std::exchange(*graph, nullptr));
  return entered;
}

KP_FAKE(StreamGetCaptureInfo, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*,
        CUgraph* graph, const CUgraphNode**, const CUgraphEdgeData**, std::size_t*) {
  KP_FAKE_ENTER(StreamGetCaptureInfo);
  const auto found = state().captures.find(stream);
  const bool active = found != state().captures.end();
  *status = active ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (active) *graph = found->second;
  return CUDA_SUCCESS;
}

KP_FAKE(EventCreate, CUevent* event, unsigned) {
  KP_FAKE_ENTER(EventCreate);
  *event = reinterpret_cast<CUevent>(state().events.add());
  return CUDA_SUCCESS;
}
KP_FAKE(EventDestroy, CUevent event) {
  state().leave("EventDestroy");
  if (!state().events.remove(event)) state().complain("an unknown event is destroyed");
  return state().broken;
}
KP_FAKE(EventRecord, CUevent event, CUstream stream) {
  KP_FAKE_ENTER(EventRecord);
  if (!state().events.has(event) || !state().good_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  reinterpret_cast<Event*>(event)->us = state().now_us;
  return CUDA_SUCCESS;
}
KP_FAKE(EventSynchronize, CUevent event) {
  KP_FAKE_ENTER(EventSynchronize);
  return state().events.has(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
KP_FAKE(EventQuery, CUevent event) {
  KP_FAKE_ENTER(EventQuery);
  return state().events.has(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
KP_FAKE(EventElapsedTime, float* ms, CUevent begin, CUevent end) {
  KP_FAKE_ENTER(EventElapsedTime);
  if (!state().events.has(begin) || !state().events.has(end)) return CUDA_ERROR_INVALID_HANDLE;
  const double from = reinterpret_cast<Event*>(begin)->us, to = reinterpret_cast<Event*>(end)->us;
  if (from < 0 || to < 0) return CUDA_ERROR_INVALID_HANDLE;
  *ms = static_cast<float>((to - from) / 1e3);
  return CUDA_SUCCESS;
}

#endif
