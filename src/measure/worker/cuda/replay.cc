// SPDX-License-Identifier: Apache-2.0
// Role cuda-replay FILE: runs a launch plan once over its own memory, for tools that watch a whole
// process (compute-sanitizer, ncu). FILE is JSON: "cubin" (a path), "plan", "layout", "tensors"
// (core/plan/protocol.h), "key". No channel: prints the error and exits with status 1, or 0.
#if KERNELPRO_HAVE_CUDA

#include <cstdio>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "core/plan/protocol.h"
#include "core/task/key.h"
#include "measure/worker/cuda/graph.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/memory.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

struct Replay {
  std::string cubin;
  LaunchPlan plan;
  AddressLayout layout;
  std::vector<JudgeTensor> tensors;
  kp::Key key{};
};

Result<Replay> read_replay(const std::string& path) {
  KP_ASSIGN(const std::string text, read_file(path));
  const std::optional<Json> json = parse_json(text);
  const auto bad = [&] {
    return fail(ErrorKind::kBadInput, path + " is not a replay", "let kernelpro write it");
  };
  if (!json || !json->is_object()) return bad();
  const JsonReader r(*json);
  const auto plan = plan_from_json(dump_json(r.object("plan")));
  const auto layout = layout_from_json(dump_json(r.object("layout")));
  const auto tensors = judge_tensors_from_json(dump_json(r.array("tensors")));
  const auto key = key_from_text(r.text("key"));
  if (!plan || !layout || !tensors || !key || layout->slots.size() < tensors->size()) return bad();
  return Replay{r.text("cubin"), *plan, *layout, *tensors, *key};
}

Result<void> run_replay(const Replay& replay) {
  KP_ASSIGN(const CudaContext context, CudaContext::open());
  const CudaDriver& cu = **cuda_driver();
  KP_ASSIGN(TrustedKernels kernels, TrustedKernels::load(cu, context));
  // The memory outlives the range that maps it.
  std::vector<PhysicalMemory> memory;
  KP_ASSIGN(AddressRange range,
            AddressRange::reserve(cu, replay.layout.base, replay.layout.reserve_bytes));
  for (const AddressLayout::Slot& slot : replay.layout.slots) {
    if (slot.mapping_bytes == 0) continue;
    KP_ASSIGN(PhysicalMemory made,
              PhysicalMemory::create(cu, context.device(), slot.mapping_bytes));
    memory.push_back(std::move(made));
    KP_TRY(range.map(context.device(), slot.mapping, slot.mapping_bytes, memory.back().handle()));
    KP_CUDA_TRY(cu.MemsetD8Async(slot.mapping, 0x5a, slot.mapping_bytes, nullptr));
  }
  for (std::size_t i = 0; i < replay.tensors.size(); ++i) {
    const JudgeTensor& t = replay.tensors[i];
    if (t.output || t.elements == 0) continue;
    const auto count = static_cast<std::uint64_t>(t.elements);
    KP_CUDA_TRY(kernels.run("draw", count, replay.layout.slots[i].address, t.draw, replay.key,
                            std::uint64_t{i}, count));
  }
  KP_CUDA_TRY(cu.CtxSynchronize());
  KP_ASSIGN(const std::string cubin, read_file(replay.cubin));
  KP_ASSIGN(const ReplayGraph graph, ReplayGraph::build(cu, cubin, replay.plan, replay.layout));
  KP_ASSIGN(const CudaStream stream, make_stream(cu));
  // For ncu --profile-from-start off: only the plan counts.
  KP_CUDA_TRY(cu.ProfilerStart());
  KP_CUDA_TRY(graph.launch(stream.get()));
  KP_CUDA_TRY(cu.StreamSynchronize(stream.get()));
  KP_CUDA_TRY(cu.ProfilerStop());
  return {};
}

}  // namespace

int cuda_replay(int argc, char** argv) {
  const Result<Replay> replay =
      argc == 3 ? read_replay(argv[2])
                : Result<Replay>(fail(ErrorKind::kBadInput, "one file is needed", "give one"));
  const Result<void> done =
      replay ? run_replay(*replay) : Result<void>(tl::unexpected<Error>(replay.error()));
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().text().c_str());
  return 1;
}

}  // namespace kernelpro

#endif
