// SPDX-License-Identifier: Apache-2.0
// Role cuda-worker: rebuilds graphs from launch plans over the judge's buffers, runs them and times
// them. It sees cubins and plans, never a candidate's host code, and holds nothing worth stealing.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <map>

#include "core/protocol.h"
#include "worker/cuda/graph.h"
#include "worker/cuda/kernels.h"
#include "worker/cuda/memory.h"
#include "worker/cuda/message.h"
#include "worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kFlushAtLeast = 128ull << 20;  // and twice L2

class Worker {
 public:
  Worker(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
         TrustedKernels* kernels)
      : channel_(channel), cu_(cu), context_(context), kernels_(kernels) {}

  Result<void> start() {
    const int l2 = context_.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    flush_bytes_ = std::max<std::uint64_t>(kFlushAtLeast, 2ull * static_cast<std::uint64_t>(l2));
    shared_bytes_ = static_cast<unsigned>(
        context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    KP_CUDA_TRY(cu_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    KP_CUDA_TRY(cu_.EventCreate(&begin_, CU_EVENT_DEFAULT));
    KP_CUDA_TRY(cu_.EventCreate(&end_, CU_EVENT_DEFAULT));
    KP_CUDA_TRY(cu_.MemAlloc(&flush_, flush_bytes_ + 256));
    KP_CUDA_TRY(cu_.MemsetD8Async(flush_, 1, flush_bytes_ + 256, stream_));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
    return {};
  }

  void serve(WorkerCommand& command) {
    using Handler = Result<Json> (Worker::*)(WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"open", &Worker::open},   {"memory", &Worker::memory}, {"load", &Worker::load},
        {"bind", &Worker::bind},   {"run", &Worker::run},       {"time", &Worker::time},
        {"hello", &Worker::hello},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    Result<Json> answer = (this->*handler->second)(command);
    if (!answer) {
      return channel_->answer_error(answer.error().message,
                                    answer.error().kind == ErrorKind::kBadInput ? "plan" : "");
    }
    channel_->answer(std::move(*answer));
  }

 private:
  struct Subject {
    std::string cubin;
    LaunchPlan plan;
    ReplayGraph graph;
  };

  Result<Json> hello(WorkerCommand&) { return Json::object(); }

  Result<Json> open(WorkerCommand& command) {
    const auto layout = layout_from_json(dump_json(JsonReader(command.json).object("layout")));
    if (!layout) return fail(ErrorKind::kInternal, "the layout cannot be read", "");
    subjects_.clear();
    range_ = AddressRange();
    sets_.clear();
    layout_ = *layout;
    Result<AddressRange> range = AddressRange::reserve(cu_, layout_.base, layout_.reserve_bytes);
    if (!range) return tl::unexpected<Error>(range.error());
    range_ = std::move(*range);
    return Json::object();
  }

  // The descriptors of one set's slots, in order of sets.
  Result<Json> memory(WorkerCommand& command) {
    if (command.fds.size() != layout_.slots.size()) {
      return fail(ErrorKind::kInternal, "descriptors and slots differ in number", "");
    }
    std::vector<PhysicalMemory> set;
    for (std::size_t i = 0; i < command.fds.size(); ++i) {
      Result<PhysicalMemory> memory =
          PhysicalMemory::import(cu_, command.fds[i].get(), layout_.slots[i].mapping_bytes);
      if (!memory) return tl::unexpected<Error>(memory.error());
      set.push_back(std::move(*memory));
    }
    sets_.push_back(std::move(set));
    return Json::object();
  }

  // Takes a subject in, or loads it anew: a fresh module has fresh globals.
  Result<Json> load(WorkerCommand& command) {
    Subject& subject = subjects_[command.text("subject")];
    if (!command.text("cubin").empty()) {
      Result<std::string> cubin = read_file(command.text("cubin"));
      if (!cubin) return tl::unexpected<Error>(cubin.error());
      const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
      if (!plan) return fail(ErrorKind::kBadInput, "the launch plan cannot be read", "");
      subject.cubin = std::move(*cubin);
      subject.plan = *plan;
    }
    subject.graph = ReplayGraph();
    Result<ReplayGraph> graph = ReplayGraph::build(cu_, subject.cubin, subject.plan, layout_);
    if (!graph) return tl::unexpected<Error>(graph.error());
    subject.graph = std::move(*graph);
    return launch_facts(subject);
  }

  // Of the launch with the most threads: what evidence says about the grid.
  Json launch_facts(const Subject& subject) const {
    const PlanNode* largest = nullptr;
    double most = 0;
    for (const PlanNode& n : subject.plan.nodes) {
      const double threads =
          1.0 * n.grid[0] * n.grid[1] * n.grid[2] * n.block[0] * n.block[1] * n.block[2];
      if (n.kind != PlanNode::Kind::kKernel || threads <= most) continue;
      largest = &n;
      most = threads;
    }
    Json facts = {{"plan.kernels", subject.plan.kernel_count()}};
    if (largest == nullptr) return Json{{"facts", facts}};
    const double grid = 1.0 * largest->grid[0] * largest->grid[1] * largest->grid[2];
    facts["launch__grid_size"] = grid;
    facts["launch__block_size"] = largest->block[0] * largest->block[1] * largest->block[2];
    const int resident = subject.graph.resident_blocks(*largest) * kernels_->multiprocessors();
    if (resident > 0) facts["launch__waves_per_multiprocessor"] = grid / resident;
    return Json{{"facts", facts}};
  }

  Result<Json> bind(WorkerCommand& command) {
    const auto set = static_cast<std::size_t>(command.natural("set"));
    if (set >= sets_.size()) return fail(ErrorKind::kInternal, "no such set", "");
    range_.unmap_all();
    for (std::size_t i = 0; i < layout_.slots.size(); ++i) {
      KP_TRY(range_.map(context_.device(), layout_.slots[i].mapping, layout_.slots[i].mapping_bytes,
                        sets_[set][i].handle()));
    }
    return Json::object();
  }

  Result<const Subject*> find(const std::string& name) {
    const auto it = subjects_.find(name);
    if (it == subjects_.end()) return fail(ErrorKind::kInternal, "no subject " + name, "");
    return &it->second;
  }

  Result<Json> run(WorkerCommand& command) {
    const Result<const Subject*> subject = find(command.text("subject"));
    if (!subject) return tl::unexpected<Error>(subject.error());
    KP_CUDA_TRY(kernels_->run_on(stream_, "scrub_shared",
                                 static_cast<unsigned>(kernels_->multiprocessors()), 1024u,
                                 shared_bytes_, std::uint64_t{command.natural("key")},
                                 shared_bytes_ / 4, flush_ + flush_bytes_));
    KP_CUDA_TRY((*subject)->graph.launch(stream_));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
    return Json::object();
  }

  // One L2-cold replay, in microseconds. The flush keeps the GPU busy while the host submits, so
  // that the window holds the graph and nothing of the host.
  Result<double> timed(const Subject& subject) {
    const std::uint64_t words = flush_bytes_ / 16;
    KP_CUDA_TRY(kernels_->run_on(stream_, "flush_cache", kernels_->blocks_for(words), 256u, 0u,
                                 flush_, words, flush_ + flush_bytes_));
    KP_CUDA_TRY(cu_.EventRecord(begin_, stream_));
    KP_CUDA_TRY(subject.graph.launch(stream_));
    KP_CUDA_TRY(cu_.EventRecord(end_, stream_));
    KP_CUDA_TRY(cu_.EventSynchronize(end_));
    float ms = 0;
    KP_CUDA_TRY(cu_.EventElapsedTime(&ms, begin_, end_));
    return static_cast<double>(ms) * 1e3;
  }

  // `count` turns; each turn times every named subject once, in an order that alternates.
  Result<Json> time(WorkerCommand& command) {
    std::vector<const Subject*> subjects;
    std::vector<std::string> names;
    for (const Json& name : JsonReader(command.json).array("subjects")) {
      if (!name.is_string()) return fail(ErrorKind::kInternal, "a subject has no name", "");
      names.push_back(name.get<std::string>());
      const Result<const Subject*> subject = find(names.back());
      if (!subject) return tl::unexpected<Error>(subject.error());
      subjects.push_back(*subject);
    }
    std::vector<std::vector<double>> times(subjects.size());
    const std::int64_t count = std::clamp<std::int64_t>(command.integer("count"), 1, 100'000);
    for (std::int64_t turn = 0; turn < count; ++turn) {
      for (std::size_t k = 0; k < subjects.size(); ++k) {
        const std::size_t which =
            (k + static_cast<std::size_t>(turn + command.integer("turn"))) % subjects.size();
        Result<double> us = timed(*subjects[which]);
        if (!us) return tl::unexpected<Error>(us.error());
        times[which].push_back(*us);
      }
    }
    Json json = Json::object();
    for (std::size_t k = 0; k < names.size(); ++k) json["times"][names[k]] = times[k];
    return json;
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  CUdeviceptr flush_ = 0;
  std::uint64_t flush_bytes_ = 0;
  unsigned shared_bytes_ = 0;
  AddressLayout layout_;
  std::vector<std::vector<PhysicalMemory>> sets_;
  AddressRange range_;
  std::map<std::string, Subject> subjects_;
};

}  // namespace

int cuda_worker(int, char**) {
  WorkerChannel channel;
  const Result<CudaContext> context = CudaContext::open();
  Result<TrustedKernels> kernels =
      context ? TrustedKernels::load(**cuda_driver(), *context)
              : Result<TrustedKernels>(tl::unexpected<Error>(context.error()));
  if (!kernels) {
    while (channel.next()) channel.answer_error(kernels.error());
    return 0;
  }
  Worker worker(&channel, **cuda_driver(), *context, &*kernels);
  const Result<void> started = worker.start();
  while (std::optional<WorkerCommand> command = channel.next()) {
    if (!started) {
      channel.answer_error(started.error());
    } else {
      worker.serve(*command);
    }
  }
  return 0;
}

}  // namespace kernelpro

#endif
