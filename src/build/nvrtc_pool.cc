// SPDX-License-Identifier: Apache-2.0
#include "build/nvrtc_pool.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "core/plan/worker_role.h"

namespace kernelpro {

namespace {

constexpr double kStartTimeout = 30;
constexpr std::int64_t kMaxMemory = 8LL << 30;
constexpr std::int64_t kMaxFile = 1LL << 30;  // CuTe's headers, precompiled: 280 MB
constexpr std::int64_t kMaxCubin = 256LL << 20;
// Of its precompiled header: the machine's fault, or the process's, and not the source's.
constexpr const char* kNoMemory = "Catastrophic error: unable to obtain mapped memory";

// Non-system folders that hold NVRTC, its headers and our worker.
std::vector<std::string> toolkit_roots(const std::string& worker) {
  std::vector<std::string> roots = cuda_toolkits();
  roots.insert(roots.end(), {dirname(worker), program_root("nvcc")});
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  for (const std::string& folder : split(libraries != nullptr ? libraries : "", ':')) {
    if (!folder.empty()) roots.push_back(folder);
  }
  return roots;
}

std::string read_cubin(const Frame& frame) {
  struct stat st {};
  if (frame.fds.size() != 1 || ::fstat(frame.fds[0].get(), &st) != 0 || st.st_size > kMaxCubin) {
    return "";
  }
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(st.st_size, 0)), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pread(frame.fds[0].get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(done));
    if (n <= 0) return "";
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

struct NvrtcPool::Slot {
  Child child;
  Limits limits;
  std::string folder;  // for precompiled headers

  std::optional<Frame> ask(const Json& message, double timeout_s) {
    return child.send(dump_json(message)) ? child.receive(timeout_s) : std::nullopt;
  }
};

NvrtcPool::NvrtcPool(const BuildCache& cache, std::string arch, int most,
                     std::vector<std::string> include_dirs)
    : cache_(cache),
      arch_(std::move(arch)),
      most_(static_cast<std::size_t>(std::max(1, most))),
      include_dirs_(std::move(include_dirs)) {}

NvrtcPool::~NvrtcPool() {
  for (const std::unique_ptr<Slot>& slot : slots_) {
    slot->child.finish();
    if (!slot->folder.empty()) cache_.discard(slot->folder);
  }
}

Result<void> NvrtcPool::start(Slot* slot) {
  KP_ASSIGN(const std::string worker, worker_path());
  if (slot->folder.empty()) {
    KP_ASSIGN(slot->folder, cache_.stage());
  }
  Command command;
  command.argv = {worker, worker_role_name(WorkerRole::kCudaCompile)};
  command.cwd = slot->folder;
  command.keep = compiler_variables();
  command.env = {"TMPDIR=" + slot->folder, "HOME=" + slot->folder};
  command.limits.memory_bytes = kMaxMemory;
  std::vector<std::string> roots = toolkit_roots(worker);
  roots.insert(roots.end(), include_dirs_.begin(), include_dirs_.end());
  command.sandbox = compiler_sandbox(slot->folder, roots, 0);
  command.sandbox->alone = true;
  command.sandbox->file_bytes = kMaxFile;
  slot->limits = command.limits;
  KP_ASSIGN(slot->child, Child::start(command));
  return {};
}

NvrtcPool::Slot* NvrtcPool::take() {
  std::unique_lock<std::mutex> lock(mutex_);
  free_.wait(lock, [&] { return !idle_.empty() || slots_.size() < most_; });
  if (idle_.empty()) {
    slots_.push_back(std::make_unique<Slot>());
    return slots_.back().get();
  }
  Slot* slot = idle_.back();
  idle_.pop_back();
  return slot;
}

void NvrtcPool::give_back(Slot* slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(slot);
  free_.notify_one();
}

std::string NvrtcPool::version(std::string* problem) {
  Slot* slot = take();
  const Result<void> started = start(slot);
  std::optional<Frame> frame;
  if (started) frame = slot->ask({{"do", "version"}, {"arch", arch_}}, kStartTimeout);
  const std::optional<Json> answer = frame ? parse_json(frame->bytes) : std::nullopt;
  if (answer && answer->is_object()) {
    const JsonReader r(*answer);
    version_ = r.text("version");
    *problem = r.text("error");
  } else {
    *problem = started ? "the compiler " + slot->child.finish().describe(slot->limits)
                       : started.error().message;
  }
  give_back(slot);
  return version_;
}

Result<tl::expected<NvrtcBuild, NvrtcLost>> NvrtcPool::compile(const std::string& source,
                                                               const std::string& header,
                                                               const std::string& library,
                                                               const std::string& file,
                                                               double timeout_s) {
  Slot* slot = take();
  struct Return {
    NvrtcPool* pool;
    Slot* slot;
    ~Return() { pool->give_back(slot); }
  } const back{this, slot};
  Json message = {
      {"do", "compile"}, {"arch", arch_}, {"source", source}, {"header", header}, {"file", file}};
  if (!library.empty()) {
    message["library"] = library;
    message["include_dirs"] = include_dirs_;
  }
  const double until = real_clock().now_s() + timeout_s;
  for (int tries = 0; tries < 2; ++tries) {
    if (!slot->child.running()) KP_TRY(start(slot));
    KP_ASSIGN(auto built, answer_of(slot, message, std::max(0.0, until - real_clock().now_s())));
    if (!built || built->compiled || !contains(built->log, kNoMemory)) return built;
    slot->child.finish();  // a process of its own has more
    slot->child = Child();
  }
  return tl::unexpected<NvrtcLost>(
      {"the compiler found no memory for its precompiled header", true, true});
}

Result<tl::expected<NvrtcBuild, NvrtcLost>> NvrtcPool::answer_of(Slot* slot, const Json& message,
                                                                 double timeout_s) {
  const std::optional<Frame> frame = slot->ask(message, timeout_s);
  const std::optional<Json> answer = frame ? parse_json(frame->bytes) : std::nullopt;
  if (!answer || !answer->is_object()) {
    slot->limits.wall_seconds = timeout_s;
    const Exit exit = slot->child.finish();
    slot->child = Child();
    const bool gave_out = exit.kind == Exit::Kind::kSignalled || exit.kind == Exit::Kind::kTimedOut;
    return tl::unexpected<NvrtcLost>(
        {"the compiler " + exit.describe(slot->limits), exit.from_outside(), gave_out});
  }
  const JsonReader r(*answer);
  if (r.member("error") != nullptr) {
    return fail(ErrorKind::kEnvironment, r.text("error"),
                r.text("next", "check `kernelpro doctor`"));
  }
  return NvrtcBuild{r.flag("compiled"), r.text("log"), read_cubin(*frame)};
}

}  // namespace kernelpro
