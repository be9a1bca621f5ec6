// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/plan_subjects.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <utility>

#include "measure/worker/cuda/plan_files.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kPoison = 0x6b70;
constexpr std::size_t kMostTimed = 4096;  // nodes

}  // namespace

Result<void> PlanSubjects::start() {
  flush_bytes_ = kernelpro::flush_bytes(context_);
  static_cast<void>(cu_.CtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
  KP_ASSIGN(stream_, make_stream(cu_));
  KP_ASSIGN(flush_, allocate(cu_, flush_bytes_ + 256));
  KP_CUDA_TRY(cu_.MemsetD8Async(flush_.get(), 1, flush_bytes_ + 256, stream_.get()));
  return wait();
}

Result<Json> PlanSubjects::open(WorkerCommand& command) {
  subjects_.clear();
  return cases_.open(command);
}

Result<Json> PlanSubjects::load(WorkerCommand& command) {
  KP_ASSIGN(const OpenCase* c, cases_.of(command));
  if (!cases_.bound(*c)) KP_TRY(cases_.bind(*c, 0));
  PlanSubject& subject = subjects_[command.text("subject")];
  subject = PlanSubject();
  const auto plan = plan_from_json(dump_json(JsonReader(command.json).object("plan")));
  if (!plan) return fail(ErrorKind::kBadInput, "the launch plan cannot be read", "");
  KP_ASSIGN(const PlanFiles files, plan_files(command, *plan));
  AddressLayout layout = c->layout;
  layout.scratch_bytes = plan->scratch_bytes;
  KP_ASSIGN(auto launcher, PlanLauncher::build(cu_, files.images, *plan, layout));
  subject = {c, *plan, files.constants, std::move(launcher)};
  return Json::object();
}

Result<PlanSubject*> PlanSubjects::of(const WorkerCommand& command) {
  KP_ASSIGN(const OpenCase* c, cases_.of(command));
  const auto found = subjects_.find(command.text("subject"));
  if (found == subjects_.end() || found->second.c != c) {
    return fail(ErrorKind::kInternal, "no such subject", "");
  }
  KP_TRY(cases_.bind(*c, command.integer("set")));
  if (const std::uint64_t bytes = found->second.plan.scratch_bytes; bytes > 0) {
    if (!scratch_) scratch_.emplace();
    KP_TRY(scratch_->cover(cu_, context_.device(), c->layout.scratch_base(), bytes));
  }
  return &found->second;
}

Result<void> PlanSubjects::flush() {
  static_cast<void>(cu_.CtxResetPersistingL2Cache());
  const std::uint64_t words = flush_bytes_ / 16;
  KP_CUDA_TRY(kernels_->run_on(stream_.get(), "flush_cache", kernels_->blocks_for(words), 256u, 0u,
                               flush_.get(), words, flush_.get() + flush_bytes_));
  return wait();
}

Result<void> PlanSubjects::renew(const PlanSubject& subject) {
  for (std::size_t i = 0; i < subject.constants.size(); ++i) {
    const std::string& bytes = subject.constants[i];
    KP_CUDA_TRY(cu_.MemcpyHtoD(subject.c->layout.scratch_base() + subject.plan.constants[i].offset,
                               bytes.data(), bytes.size()));
  }
  // Copies of the default stream are not ordered with ours.
  if (!subject.constants.empty()) KP_CUDA_TRY(cu_.CtxSynchronize());
  if (!subject.c->layout.has_workspace) return {};
  const AddressLayout::Slot& slot = subject.c->layout.slots.back();
  const std::uint64_t words = slot.mapping_bytes / 4;
  KP_CUDA_TRY(kernels_->run_on(stream_.get(), "poison", kernels_->blocks_for(words), 256u, 0u,
                               slot.mapping, kPoison, words));
  return {};
}

Result<void> PlanSubjects::run(PlanSubject* subject, int node) {
  const CUresult result = subject->launcher.launch(node, stream_.get());
  if (result == CUDA_SUCCESS) return {};
  return fail(
      ErrorKind::kEnvironment,
      "node " + std::to_string(node) + " cannot be launched by itself: " + cuda_error_text(result),
      "");
}

Result<void> PlanSubjects::run(PlanSubject* subject, const std::vector<int>& nodes) {
  for (const int node : nodes) KP_TRY(run(subject, node));
  return wait();
}

Result<std::vector<double>> PlanSubjects::node_times(PlanSubject* subject) {
  const std::vector<int> nodes = plan_order(subject->plan);
  std::vector<double> us;
  if (nodes.size() > kMostTimed) return us;
  std::vector<CudaEvent> events;
  for (std::size_t i = 0; i <= nodes.size(); ++i) {
    KP_ASSIGN(CudaEvent event, make_event(cu_));
    events.push_back(std::move(event));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    KP_CUDA_TRY(cu_.EventRecord(events[i].get(), stream_.get()));
    KP_TRY(run(subject, nodes[i]));
  }
  KP_CUDA_TRY(cu_.EventRecord(events.back().get(), stream_.get()));
  KP_TRY(wait());
  us.resize(subject->plan.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    float ms = 0;
    KP_CUDA_TRY(cu_.EventElapsedTime(&ms, events[i].get(), events[i + 1].get()));
    us[static_cast<std::size_t>(nodes[i])] = 1e3 * static_cast<double>(ms);
  }
  return us;
}

Result<void> PlanSubjects::wait() {
  KP_CUDA_TRY(cu_.StreamSynchronize(stream_.get()));
  return {};
}

}  // namespace kernelpro

#endif
