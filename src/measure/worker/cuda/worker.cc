// SPDX-License-Identifier: Apache-2.0
// Role cuda-worker: rebuilds graphs from launch plans over the judge's buffers, runs and times
// them. It sees cubins and plans, never a candidate's host code, and holds no secrets.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/process/hidden_files.h"
#include "core/plan/protocol.h"
#include "core/task/inputs.h"
#include "measure/worker/cuda/burn.h"
#include "measure/worker/cuda/cases.h"
#include "measure/worker/cuda/graph.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/node.h"
#include "measure/worker/cuda/order.h"
#include "measure/worker/cuda/plan_files.h"
#include "measure/worker/cuda/serve.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kPageBytes = 2ull << 20;  // of CUDA's virtual memory
constexpr std::size_t kPastGraphs = 3;

class Worker {
 public:
  Worker(WorkerChannel* channel, const CudaDriver& cu, const CudaContext& context,
         TrustedKernels* kernels)
      : channel_(channel),
        cu_(cu),
        context_(context),
        kernels_(kernels),
        cases_(cu, context.device()) {}

  Result<void> start() {
    flush_bytes_ = kernelpro::flush_bytes(context_);
    shared_bytes_ = static_cast<unsigned>(
        context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    resident_threads_ = static_cast<unsigned>(
        context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
    // No part of L2 may be set aside to outlive a flush. (Not every GPU supports this.)
    static_cast<void>(cu_.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
    KP_ASSIGN(stream_, make_stream(cu_));
    for (CudaEvent* event : {&begin_, &end_}) {
      KP_ASSIGN(*event, make_event(cu_));
    }
    KP_ASSIGN(flush_, allocate(cu_, flush_bytes_ + 256));
    KP_CUDA_TRY(cu_.MemsetD8Async(flush_.get(), 1, flush_bytes_ + 256, stream_.get()));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    return {};
  }

  void serve(WorkerCommand& command) {
    using Handler = Result<Json> (Worker::*)(WorkerCommand&);
    static const std::map<std::string, Handler> handlers = {
        {"hello", &Worker::hello}, {"open", &Worker::open}, {"memory", &Worker::memory},
        {"load", &Worker::load},   {"run", &Worker::run},   {"time", &Worker::time},
        {"row", &Worker::row},     {"burn", &Worker::burn}, {"idle", &Worker::idle},
    };
    const auto handler = handlers.find(command.verb());
    if (handler == handlers.end()) return channel_->answer_error("unknown command");
    Result<Json> answer = (this->*handler->second)(command);
    if (!answer) {
      const bool misfit = answer.error().kind == ErrorKind::kBadInput;
      return channel_->answer_error(answer.error(), is_gpu_fault(cu_.CtxSynchronize())
                                                        ? RefusalKind::kEnvironment
                                                    : misfit ? RefusalKind::kPlan
                                                             : RefusalKind::kNone);
    }
    channel_->answer(std::move(*answer));
  }

 private:
  struct Subject {
    std::vector<std::string> images;
    LaunchPlan plan;
    std::vector<std::string> constants;  // contents of the plan's
    AddressLayout layout;                // its case's, and its scratch
    ReplayGraph graph;
    std::deque<ReplayGraph> past;  // graphs of earlier loads, the last few
    int scrub_kib = 0;             // KiB of each thread's local memory to overwrite
    std::uint64_t checked = 0;     // calls of "run" ...
    std::uint64_t order = 0;       // ... and the seed of the latest order
  };

  Result<Json> hello(WorkerCommand&) { return Json::object(); }

  Result<Json> open(WorkerCommand& command) {
    subjects_.clear();
    return cases_.open(command);
  }

  Result<Json> memory(WorkerCommand& command) { return cases_.memory(command); }

  // A fresh module has fresh globals. It also has a different address than the last few: the
  // placement of code and parameters is worth a percent of a short call, and must vary.
  Result<void> reload(Subject* subject) { return reload(subject, subject->plan); }
  Result<void> reload(Subject* subject, const LaunchPlan& plan) {
    subject->past.push_back(std::move(subject->graph));
    subject->graph = ReplayGraph();
    while (subject->past.size() > kPastGraphs) subject->past.pop_front();
    Result<ReplayGraph> graph = ReplayGraph::build(cu_, subject->images, plan, subject->layout);
    if (!graph) {  // large globals may not fit more than once
      subject->past.clear();
      graph = ReplayGraph::build(cu_, subject->images, plan, subject->layout);
    }
    if (!graph) return tl::unexpected<Error>(graph.error());
    subject->graph = std::move(*graph);
    KP_CUDA_TRY(subject->graph.upload(stream_.get()));
    return {};
  }

  Result<Json> load(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    // The driver needs memory behind the addresses of copies and memsets to build a graph.
    if (!cases_.bound(*c)) KP_TRY(cases_.bind(*c, 0));
    const std::pair name(c->name, command.text("subject"));
    Result<Json> loaded = load_into(*c, command, &subjects_[name]);
    if (!loaded) subjects_.erase(name);  // nor may what was loaded before run in its place
    return loaded;
  }

  Result<Json> load_into(const OpenCase& c, const WorkerCommand& command, Subject* subject) {
    const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
    if (!plan) return fail(ErrorKind::kBadInput, "the launch plan cannot be read", "");
    if (const std::string problem = plan->problem(); !problem.empty()) return plan_misfit(problem);
    *subject = Subject();
    KP_ASSIGN(PlanFiles files, plan_files(command, *plan));
    subject->images = std::move(files.images);
    subject->constants = std::move(files.constants);
    subject->plan = *plan;
    subject->layout = c.layout;
    subject->layout.scratch_bytes = plan->scratch_bytes;
    KP_TRY(scratch_.cover(cu_, context_.device(), c.layout.scratch_base(), plan->scratch_bytes));
    KP_TRY(reload(subject));
    Json answer = {{"facts", driver_facts(*subject)}};
    subject->scrub_kib = scrub_frame(subject->graph.local_bytes());
    if (subject->scrub_kib == 0 && subject->graph.local_bytes() > 0) {
      answer["notes"] =
          Json::array({"its local memory, " + std::to_string(subject->graph.local_bytes()) +
                       " bytes for each thread, is too large to be overwritten "
                       "between calls"});
    }
    return answer;
  }

  // Only the driver knows how many blocks fit at once: of the launch with the most threads.
  Json driver_facts(const Subject& subject) const {
    const PlanNode* largest = nullptr;
    double most = 0;
    for (const PlanNode& n : subject.plan.nodes) {
      const double threads =
          1.0 * n.grid[0] * n.grid[1] * n.grid[2] * n.block[0] * n.block[1] * n.block[2];
      if (n.kind != PlanNode::Kind::kKernel || threads <= most) continue;
      largest = &n;
      most = threads;
    }
    Json facts = Json::object();
    if (largest == nullptr) return facts;
    const double grid = 1.0 * largest->grid[0] * largest->grid[1] * largest->grid[2];
    const int resident = subject.graph.resident_blocks(*largest) * kernels_->multiprocessors();
    if (resident > 0) facts["launch__waves_per_multiprocessor"] = grid / resident;
    return facts;
  }

  Result<Subject*> find(const OpenCase* c, const std::string& name) {
    const auto it = subjects_.find({c->name, name});
    if (it == subjects_.end()) return fail(ErrorKind::kInternal, "no subject " + name, "");
    return &it->second;
  }

  // Before each call: nothing in the scratch outlives the last one but the plan's constants.
  Result<void> renew_scratch(const Subject& subject, std::uint64_t key) {
    const std::uint64_t words = subject.plan.scratch_bytes / 4;
    if (words > 0) {
      KP_CUDA_TRY(kernels_->run_on(stream_.get(), "poison", kernels_->blocks_for(words), 256u, 0u,
                                   subject.layout.scratch_base(), key, words));
    }
    if (subject.constants.empty()) return {};
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    for (std::size_t i = 0; i < subject.constants.size(); ++i) {
      const std::string& bytes = subject.constants[i];
      KP_CUDA_TRY(cu_.MemcpyHtoD(subject.layout.scratch_base() + subject.plan.constants[i].offset,
                                 bytes.data(), bytes.size()));
    }
    KP_CUDA_TRY(cu_.CtxSynchronize());
    return {};
  }

  // Overwrites leftovers of the last kernel in shared and local memory with noise.
  Result<void> scrub(const Subject& subject, std::uint64_t key) {
    const auto multiprocessors = static_cast<unsigned>(kernels_->multiprocessors());
    const CUdeviceptr sink = flush_.get() + flush_bytes_;
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), "scrub_shared", multiprocessors, 1024u,
                                 shared_bytes_, key, shared_bytes_ / 4, sink));
    if (subject.scrub_kib == 0) return {};
    const std::string kernel = "scrub_local_" + std::to_string(subject.scrub_kib) + "k";
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), kernel.c_str(),
                                 multiprocessors * (resident_threads_ / 256), 256u, 0u, key, sink));
    return {};
  }

  // The smallest of our kernels' frames that covers this many bytes; 0 if none does, or if memory
  // is short: the driver reserves the frame for every thread that the GPU can hold.
  int scrub_frame(int local_bytes) {
    const auto threads = static_cast<std::uint64_t>(resident_threads_) *
                         static_cast<std::uint64_t>(kernels_->multiprocessors());
    for (const int kib : {1, 8, 16, 32, 64, 128}) {
      if (local_bytes == 0 || local_bytes > kib * 1024) continue;
      std::size_t free_bytes = 0, total = 0;
      static_cast<void>(cu_.MemGetInfo(&free_bytes, &total));
      const std::uint64_t wanted = threads * static_cast<std::uint64_t>(kib) * 1024;
      if (kib > largest_frame_kib_ && wanted > free_bytes / 2) return 0;
      largest_frame_kib_ = std::max(largest_frame_kib_, kib);
      return kib;
    }
    return 0;
  }

  // Of three calls whose steps may overlap, two run them one after the other, in opposite orders.
  // True: this is one of these.
  Result<bool> reload_to_check(Subject* subject, std::uint64_t key) {
    const std::uint64_t number = subject->checked++ % 3;
    if (number == 0 || subject->plan.one_after_another()) {
      KP_TRY(reload(subject));
      return false;
    }
    if (number == 1) subject->order = kp::mix64(key);
    KP_TRY(reload(subject, in_some_order(subject->plan, subject->order, number == 2)));
    return true;
  }

  Result<Json> run(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    KP_ASSIGN(const auto subject, find(c, command.text("subject")));
    Json reordered = Json::array();
    for (const Json& item : JsonReader(command.json).array("steps")) {
      const JsonReader step(item);
      KP_TRY(cases_.bind(*c, step.integer("set", -1)));
      KP_ASSIGN(const bool in_order, reload_to_check(subject, step.natural("key")));
      if (in_order) reordered.push_back(step.integer("set"));
      KP_TRY(scrub(*subject, step.natural("key")));
      KP_TRY(renew_scratch(*subject, step.natural("key")));
      KP_CUDA_TRY(subject->graph.launch(stream_.get()));
      KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    }
    return Json{{"reordered", reordered}};
  }

  // Freshly mapped memory is missing from the TLBs, which real programs would not see: every
  // multiprocessor reads one word of each page.
  Result<void> touch_pages(const AddressLayout& layout) {
    for (const AddressLayout::Slot& slot : layout.slots) {
      KP_TRY(touch(slot.mapping, slot.mapping_bytes / kPageBytes));
    }
    if (layout.scratch_bytes == 0) return {};
    return touch(layout.scratch_base(), (layout.scratch_bytes + kPageBytes - 1) / kPageBytes);
  }

  Result<void> touch(std::uint64_t address, std::uint64_t pages) {
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), "touch_pages",
                                 static_cast<unsigned>(kernels_->multiprocessors()), 256u, 0u,
                                 address, pages, kPageBytes, flush_.get() + flush_bytes_));
    return {};
  }

  // One L2-cold replay, in microseconds. The flush keeps the GPU busy while the host submits, so
  // that the window contains the graph and no host time.
  Result<double> timed(const Subject& subject) {
    const std::uint64_t words = flush_bytes_ / 16;
    // Persisting lines of a kernel would outlive the flush.
    static_cast<void>(cu_.CtxResetPersistingL2Cache());
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), "flush_cache", kernels_->blocks_for(words), 256u,
                                 0u, flush_.get(), words, flush_.get() + flush_bytes_));
    KP_TRY(touch_pages(subject.layout));
    KP_CUDA_TRY(cu_.EventRecord(begin_.get(), stream_.get()));
    KP_CUDA_TRY(subject.graph.launch(stream_.get()));
    KP_CUDA_TRY(cu_.EventRecord(end_.get(), stream_.get()));
    KP_CUDA_TRY(cu_.EventSynchronize(end_.get()));
    float ms = 0;
    KP_CUDA_TRY(cu_.EventElapsedTime(&ms, begin_.get(), end_.get()));
    return static_cast<double>(ms) * 1e3;
  }

  Result<Json> time(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    const JsonReader r(command.json);
    const std::uint64_t key = command.natural("key");
    for (const Json& name : r.array("reload")) {
      KP_ASSIGN(const auto subject, find(c, name.is_string() ? name.get<std::string>() : ""));
      KP_TRY(reload(subject));
      KP_TRY(scrub(*subject, key));
    }
    const std::uint64_t words = flush_bytes_ / 4;
    KP_CUDA_TRY(kernels_->run_on(stream_.get(), "poison", kernels_->blocks_for(words), 256u, 0u,
                                 flush_.get(), key, words));
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    Json times = Json::array();
    for (const Json& item : r.array("steps")) {
      const JsonReader step(item);
      KP_ASSIGN(const auto subject, find(c, step.text("subject")));
      KP_TRY(cases_.bind(*c, step.integer("set", -1)));
      KP_TRY(renew_scratch(*subject, key));
      if (step.flag("timed")) {
        KP_ASSIGN(const double us, timed(*subject));
        times.push_back(us);
      } else {
        KP_CUDA_TRY(subject->graph.launch(stream_.get()));
        KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
        times.push_back(nullptr);
      }
    }
    return Json{{"times", times}};
  }

  // As its users call it: loaded once, and no call waits for the host.
  Result<Json> row(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    KP_ASSIGN(const auto subject, find(c, command.text("subject")));
    KP_TRY(cases_.bind(*c, command.integer("set")));
    if (JsonReader(command.json).flag("load")) {
      KP_TRY(reload(subject));
    }
    KP_TRY(renew_scratch(*subject, command.natural("key")));
    const std::int64_t calls = command.integer("calls");
    for (std::int64_t i = 0; i < calls; ++i) {
      KP_CUDA_TRY(subject->graph.launch(stream_.get()));
    }
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
    return Json::object();
  }

  Result<Json> burn(WorkerCommand& command) {
    KP_ASSIGN(const OpenCase* c, cases_.of(command));
    KP_ASSIGN(const auto counter, EnergyCounter::open(command.text("gpu")));
    const JsonReader r(command.json);
    std::vector<const ReplayGraph*> graphs;
    for (const Json& name : r.array("subjects")) {
      KP_ASSIGN(const auto subject, find(c, name.is_string() ? name.get<std::string>() : ""));
      graphs.push_back(&subject->graph);
    }
    if (graphs.empty()) return fail(ErrorKind::kInternal, "no subject is named", "");
    KP_TRY(cases_.bind(*c, 0));
    KP_ASSIGN(const auto burned, kernelpro::burn(cu_, stream_.get(), graphs, counter,
                                                 r.real("preheat"), r.real("window")));
    return Json{{"us", burned.us_per_call},
                {"watts", burned.watts},
                {"window", burned.window_s},
                {"calls", burned.calls}};
  }

  Result<Json> idle(WorkerCommand& command) {
    KP_ASSIGN(const auto counter, EnergyCounter::open(command.text("gpu")));
    KP_ASSIGN(const auto watts, idle_watts(counter, JsonReader(command.json).real("window")));
    return Json{{"watts", watts}};
  }

  WorkerChannel* channel_;
  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  CudaStream stream_;
  CudaEvent begin_, end_;
  DeviceMemory flush_;
  std::uint64_t flush_bytes_ = 0;
  unsigned shared_bytes_ = 0;
  unsigned resident_threads_ = 0;
  int largest_frame_kib_ = 0;  // memory for it is already reserved
  OpenCases cases_;
  FixedMemory scratch_;                                              // of whichever subject runs
  std::map<std::pair<std::string, std::string>, Subject> subjects_;  // by case and name
};

}  // namespace

int cuda_worker(int argc, char** argv) {
  // A hint: anything that cannot be hidden only costs time.
  static_cast<void>(hide_files({argv + std::min(argc, 2), argv + argc}));
  return serve_commands<Worker>();
}

}  // namespace kernelpro

#endif
