// SPDX-License-Identifier: Apache-2.0
// Role cuda-worker: rebuilds graphs from launch plans over the judge's buffers, runs them and times
// them. It sees cubins and plans, never a candidate's host code, and holds nothing worth stealing.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <map>
#include <memory>

#include "core/protocol.h"
#include "worker/cuda/graph.h"
#include "worker/cuda/kernels.h"
#include "worker/cuda/memory.h"
#include "worker/cuda/message.h"
#include "worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kFlushAtLeast = 128ull << 20;  // and twice L2
constexpr std::uint64_t kPageBytes = 2ull << 20;       // of CUDA's virtual memory
constexpr std::int64_t kMostSets = 64;

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
    resident_threads_ = static_cast<unsigned>(
        context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
    // No part of L2 may be set aside to outlive a flush. (Not every GPU has the notion.)
    static_cast<void>(cu_.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
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
        {"hello", &Worker::hello}, {"open", &Worker::open}, {"memory", &Worker::memory},
        {"load", &Worker::load},   {"run", &Worker::run},   {"time", &Worker::time},
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
  using Memory = std::shared_ptr<PhysicalMemory>;
  struct Subject {
    std::string cubin;
    LaunchPlan plan;
    ReplayGraph graph;
  };
  struct OpenCase {
    AddressLayout layout;
    std::vector<std::vector<Memory>> sets;  // by set, by slot
    std::map<std::string, Subject> subjects;
  };

  Result<Json> hello(WorkerCommand&) { return Json::object(); }

  Result<Json> open(WorkerCommand& command) {
    cases_.clear();
    range_ = AddressRange();
    bound_.clear();
    bound_case_ = nullptr;
    std::uint64_t base = 0, bytes = 0;
    for (const Json& item : JsonReader(command.json).array("cases")) {
      const JsonReader r(item);
      const auto layout = layout_from_json(dump_json(r.object("layout")));
      if (!layout || (base != 0 && layout->base != base)) {
        return fail(ErrorKind::kInternal, "the layout cannot be read", "");
      }
      base = layout->base;
      bytes = std::max(bytes, layout->reserve_bytes);
      OpenCase& opened = cases_[r.text("case")];
      opened.layout = *layout;
      opened.sets.resize(
          static_cast<std::size_t>(std::clamp<std::int64_t>(r.integer("sets"), 1, kMostSets)));
      for (auto& set : opened.sets) set.resize(layout->slots.size());
    }
    if (cases_.empty()) return fail(ErrorKind::kInternal, "no case is named", "");
    Result<AddressRange> range = AddressRange::reserve(cu_, base, bytes);
    if (!range) return tl::unexpected<Error>(range.error());
    range_ = std::move(*range);
    return Json::object();
  }

  Result<OpenCase*> case_of(const WorkerCommand& command) {
    const auto it = cases_.find(command.text("case"));
    if (it == cases_.end()) return fail(ErrorKind::kInternal, "no such case", "");
    return &it->second;
  }

  Result<Json> memory(WorkerCommand& command) {
    const Result<OpenCase*> c = case_of(command);
    if (!c) return tl::unexpected<Error>(c.error());
    const auto set = static_cast<std::size_t>(command.natural("set"));
    const Json& slots = JsonReader(command.json).array("slots");
    if (set >= (*c)->sets.size() || command.fds.size() != slots.size()) {
      return fail(ErrorKind::kInternal, "descriptors and slots differ in number", "");
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto slot = slots[i].is_number_unsigned() ? slots[i].get<std::size_t>() : SIZE_MAX;
      if (slot >= (*c)->layout.slots.size()) return fail(ErrorKind::kInternal, "no such slot", "");
      Result<PhysicalMemory> memory =
          PhysicalMemory::import(cu_, command.fds[i].get(), (*c)->layout.slots[slot].mapping_bytes);
      if (!memory) return tl::unexpected<Error>(memory.error());
      (*c)->sets[set][slot] = std::make_shared<PhysicalMemory>(std::move(*memory));
    }
    return Json::object();
  }

  // Puts a set's memory behind the case's addresses; only what differs is mapped anew.
  Result<void> bind(const OpenCase& c, std::int64_t set) {
    if (set < 0 || set >= static_cast<std::int64_t>(c.sets.size())) {
      return fail(ErrorKind::kInternal, "no such set", "");
    }
    if (bound_case_ != &c) {
      range_.unmap_all();
      bound_.assign(c.layout.slots.size(), nullptr);
      bound_case_ = &c;
    }
    for (std::size_t i = 0; i < c.layout.slots.size(); ++i) {
      const Memory& own = c.sets[static_cast<std::size_t>(set)][i];
      const Memory& memory = own ? own : c.sets[0][i];
      if (!memory) return fail(ErrorKind::kInternal, "a slot has no memory", "");
      if (bound_[i] == memory.get()) continue;
      const AddressLayout::Slot& slot = c.layout.slots[i];
      if (bound_[i] != nullptr) range_.unmap(slot.mapping);
      bound_[i] = nullptr;
      KP_TRY(range_.map(context_.device(), slot.mapping, slot.mapping_bytes, memory->handle()));
      bound_[i] = memory.get();
    }
    return {};
  }

  // A fresh module has fresh globals.
  Result<void> reload(const OpenCase& c, Subject* subject) {
    subject->graph = ReplayGraph();
    Result<ReplayGraph> graph = ReplayGraph::build(cu_, subject->cubin, subject->plan, c.layout);
    if (!graph) return tl::unexpected<Error>(graph.error());
    subject->graph = std::move(*graph);
    KP_CUDA_TRY(subject->graph.upload(stream_));
    return {};
  }

  Result<Json> load(WorkerCommand& command) {
    const Result<OpenCase*> c = case_of(command);
    if (!c) return tl::unexpected<Error>(c.error());
    // The driver wants memory behind the addresses of copies and memsets when it builds a graph.
    if (bound_case_ != *c) KP_TRY(bind(**c, 0));
    Subject& subject = (*c)->subjects[command.text("subject")];
    Result<std::string> cubin = read_file(command.text("cubin"));
    if (!cubin) return tl::unexpected<Error>(cubin.error());
    const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
    if (!plan) return fail(ErrorKind::kBadInput, "the launch plan cannot be read", "");
    subject.cubin = std::move(*cubin);
    subject.plan = *plan;
    KP_TRY(reload(**c, &subject));
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

  static Result<Subject*> find(OpenCase* c, const std::string& name) {
    const auto it = c->subjects.find(name);
    if (it == c->subjects.end()) return fail(ErrorKind::kInternal, "no subject " + name, "");
    return &it->second;
  }

  // Shared and local memory keep what the last kernel left in them: noise goes there.
  Result<void> scrub(const Subject& subject, std::uint64_t key) {
    const auto multiprocessors = static_cast<unsigned>(kernels_->multiprocessors());
    const CUdeviceptr sink = flush_ + flush_bytes_;
    KP_CUDA_TRY(kernels_->run_on(stream_, "scrub_shared", multiprocessors, 1024u, shared_bytes_,
                                 key, shared_bytes_ / 4, sink));
    const int local = subject.graph.local_bytes();
    if (local == 0) return {};
    const char* kernel = local <= 1024   ? "scrub_local_1k"
                         : local <= 8192 ? "scrub_local_8k"
                                         : "scrub_local_64k";
    KP_CUDA_TRY(kernels_->run_on(stream_, kernel, multiprocessors * (resident_threads_ / 256), 256u,
                                 0u, key, sink));
    return {};
  }

  Result<Json> run(WorkerCommand& command) {
    const Result<OpenCase*> c = case_of(command);
    if (!c) return tl::unexpected<Error>(c.error());
    const Result<Subject*> subject = find(*c, command.text("subject"));
    if (!subject) return tl::unexpected<Error>(subject.error());
    for (const Json& item : JsonReader(command.json).array("steps")) {
      const JsonReader step(item);
      KP_TRY(bind(**c, step.integer("set", -1)));
      KP_TRY(reload(**c, *subject));
      KP_TRY(scrub(**subject, step.natural("key")));
      KP_CUDA_TRY((*subject)->graph.launch(stream_));
      KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
    }
    return Json::object();
  }

  // Memory that was mapped a moment ago is unknown to the address translation, which no program
  // outside of a judge would meet: every multiprocessor reads one word of each page.
  Result<void> touch_pages(const OpenCase& c) {
    for (const AddressLayout::Slot& slot : c.layout.slots) {
      const std::uint64_t pages = slot.mapping_bytes / kPageBytes;
      KP_CUDA_TRY(kernels_->run_on(stream_, "touch_pages",
                                   static_cast<unsigned>(kernels_->multiprocessors()), 256u, 0u,
                                   slot.mapping, pages, kPageBytes, flush_ + flush_bytes_));
    }
    return {};
  }

  // One L2-cold replay, in microseconds. The flush keeps the GPU busy while the host submits, so
  // that the window holds the graph and nothing of the host.
  Result<double> timed(const OpenCase& c, const Subject& subject) {
    const std::uint64_t words = flush_bytes_ / 16;
    // Lines that a kernel asked to stay would outlive the flush.
    static_cast<void>(cu_.CtxResetPersistingL2Cache());
    KP_CUDA_TRY(kernels_->run_on(stream_, "flush_cache", kernels_->blocks_for(words), 256u, 0u,
                                 flush_, words, flush_ + flush_bytes_));
    KP_TRY(touch_pages(c));
    KP_CUDA_TRY(cu_.EventRecord(begin_, stream_));
    KP_CUDA_TRY(subject.graph.launch(stream_));
    KP_CUDA_TRY(cu_.EventRecord(end_, stream_));
    KP_CUDA_TRY(cu_.EventSynchronize(end_));
    float ms = 0;
    KP_CUDA_TRY(cu_.EventElapsedTime(&ms, begin_, end_));
    return static_cast<double>(ms) * 1e3;
  }

  Result<Json> time(WorkerCommand& command) {
    const Result<OpenCase*> c = case_of(command);
    if (!c) return tl::unexpected<Error>(c.error());
    const JsonReader r(command.json);
    const std::uint64_t key = command.natural("key");
    for (const Json& name : r.array("reload")) {
      const Result<Subject*> subject = find(*c, name.is_string() ? name.get<std::string>() : "");
      if (!subject) return tl::unexpected<Error>(subject.error());
      KP_TRY(reload(**c, *subject));
      KP_TRY(scrub(**subject, key));
    }
    const std::uint64_t words = flush_bytes_ / 4;
    KP_CUDA_TRY(kernels_->run_on(stream_, "poison", kernels_->blocks_for(words), 256u, 0u, flush_,
                                 key, words));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
    Json times = Json::array();
    for (const Json& item : r.array("steps")) {
      const JsonReader step(item);
      const Result<Subject*> subject = find(*c, step.text("subject"));
      if (!subject) return tl::unexpected<Error>(subject.error());
      KP_TRY(bind(**c, step.integer("set", -1)));
      if (step.flag("timed")) {
        const Result<double> us = timed(**c, **subject);
        if (!us) return tl::unexpected<Error>(us.error());
        times.push_back(*us);
      } else {
        KP_CUDA_TRY((*subject)->graph.launch(stream_));
        KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
        times.push_back(nullptr);
      }
    }
    return Json{{"times", times}};
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
  unsigned resident_threads_ = 0;
  std::map<std::string, OpenCase> cases_;  // its memory goes after the range that maps it
  AddressRange range_;
  const OpenCase* bound_case_ = nullptr;
  std::vector<const PhysicalMemory*> bound_;  // by slot, what is mapped
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
