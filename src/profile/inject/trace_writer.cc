// SPDX-License-Identifier: Apache-2.0
#include "profile/inject/trace_writer.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kernelpro::tracer {

using trace_format::Kind;

namespace {

// Writes everything or closes the file: a full disk ends the trace, never the program.
bool write_all(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

TraceWriter::TraceWriter(const std::string& folder, std::uint64_t limit) : limit_(limit) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string path = folder + "/" + std::to_string(::getpid()) + "-" +
                           std::to_string(now.tv_sec * 1000000000LL + now.tv_nsec) + ".kptrace";
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd_ < 0) return;
  trace_format::FileHead head{};
  std::memcpy(head.magic, trace_format::kMagic, sizeof head.magic);
  head.version = trace_format::kVersion;
  head.process = static_cast<std::uint32_t>(::getpid());
  open_.store(write_all(fd_, reinterpret_cast<const char*>(&head), sizeof head));
}

std::uint32_t TraceWriter::Batch::name(const char* text) {
  if (text == nullptr) return 0;
  const auto [entry, fresh] =
      writer_->names_.emplace(text, static_cast<std::uint32_t>(writer_->names_.size() + 1));
  if (fresh) {
    const trace_format::Name payload{entry->second};
    append(Kind::kName, &payload, sizeof payload, entry->first);
  }
  return entry->second;
}

void TraceWriter::Batch::note(std::string_view text) { append(Kind::kNote, nullptr, 0, text); }

void TraceWriter::Batch::append(Kind kind, const void* payload, std::size_t bytes,
                                std::string_view more) {
  std::string& out = writer_->pending_;
  const bool small = kind == Kind::kName || kind == Kind::kNote || kind == Kind::kEnd;
  if (!small && writer_->written_ + out.size() > writer_->limit_) {
    ++writer_->dropped_;
    return;
  }
  const trace_format::RecordHead head{kind, 0, static_cast<std::uint32_t>(bytes + more.size())};
  out.append(reinterpret_cast<const char*>(&head), sizeof head);
  if (bytes > 0) out.append(static_cast<const char*>(payload), bytes);
  out.append(more);
}

void TraceWriter::commit() {
  if (open_.load() && !pending_.empty()) {
    written_ += pending_.size();
    if (!write_all(fd_, pending_.data(), pending_.size())) open_.store(false);
  }
  pending_.clear();
}

void TraceWriter::close() {
  {
    Batch batch(this);
    batch.add(Kind::kEnd, trace_format::End{dropped_});
  }
  const std::lock_guard lock(mutex_);
  if (open_.exchange(false)) ::close(fd_);
}

}  // namespace kernelpro::tracer
