// SPDX-License-Identifier: Apache-2.0
// Writes the records of trace_format.h to one file per process. Each batch goes to the operating
// system at once, so that committed records survive however the process ends.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "profile/inject/trace_format.h"

namespace kernelpro::tracer {

class TraceWriter {
 public:
  // Creates FOLDER/<pid>-<time>.kptrace. Beyond `limit` bytes, records are counted as dropped.
  TraceWriter(const std::string& folder, std::uint64_t limit);

  // Records added during a batch's lifetime are written together. One batch at a time: a second
  // thread waits.
  class Batch {
   public:
    explicit Batch(TraceWriter* writer) : writer_(writer), lock_(writer->mutex_) {}
    ~Batch() { writer_->commit(); }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    // The string's number in the file; 0 for a null pointer.
    std::uint32_t name(const char* text);
    template <class Payload>
    void add(trace_format::Kind kind, const Payload& payload) {
      append(kind, &payload, sizeof payload, {});
    }
    void note(std::string_view text);
    void dropped(std::uint64_t records) { writer_->dropped_ += records; }

   private:
    void append(trace_format::Kind kind, const void* payload, std::size_t bytes,
                std::string_view more);
    TraceWriter* writer_;
    std::lock_guard<std::mutex> lock_;
  };

  // Writes the end record; later batches write nothing.
  void close();
  // For a forked child: the file belongs to the parent.
  void forget() { open_.store(false); }

 private:
  void commit();

  std::mutex mutex_;
  std::atomic<bool> open_{false};
  int fd_ = -1;
  std::uint64_t limit_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t dropped_ = 0;
  std::string pending_;
  std::unordered_map<std::string, std::uint32_t> names_;
};

}  // namespace kernelpro::tracer
