// SPDX-License-Identifier: Apache-2.0
// The SQLite export of Nsight Systems. Its schema differs between versions: every query uses only
// the columns present.
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/files.h"
#include "base/text.h"
#include "profile/import/nsys.h"

namespace kernelpro {

namespace {

// Reads at most this many records: more would only repeat the same picture.
constexpr std::int64_t kMostRecords = 5'000'000;

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Rows = std::unique_ptr<sqlite3_stmt, CloseStatement>;

// Read-only access to one export.
class Export {
 public:
  Result<void> open(const std::string& path);
  bool has(const std::string& table) const { return columns_.find(table) != columns_.end(); }
  bool has(const std::string& table, const std::string& column) const {
    const auto found = columns_.find(table);
    return found != columns_.end() && found->second.contains(column);
  }
  // Rows of `table` with the given columns, NULL for those it lacks. No rows if a `required` column
  // is missing.
  Rows select(const std::string& table, const std::vector<std::string>& columns,
              const std::vector<std::string>& required);
  // False if the last statement hit corruption.
  bool intact() const { return intact_; }
  bool next(const Rows& rows);
  const std::string& fault() const { return fault_; }

 private:
  std::unique_ptr<sqlite3, CloseDatabase> db_;
  std::map<std::string, std::set<std::string>> columns_;  // by table
  bool intact_ = true;
  std::string fault_;
};

std::int64_t integer(const Rows& rows, int column) {
  return sqlite3_column_int64(rows.get(), column);
}
std::uint32_t small(const Rows& rows, int column) {
  const std::int64_t value = integer(rows, column);
  return value > 0 && value <= 0xffffffffLL ? static_cast<std::uint32_t>(value) : 0;
}
std::uint64_t large(const Rows& rows, int column) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, integer(rows, column)));
}
std::string text(const Rows& rows, int column) {
  const unsigned char* bytes = sqlite3_column_text(rows.get(), column);
  return bytes == nullptr ? "" : printable(reinterpret_cast<const char*>(bytes));
}
bool is_null(const Rows& rows, int column) {
  return sqlite3_column_type(rows.get(), column) == SQLITE_NULL;
}

Result<void> Export::open(const std::string& path) {
  sqlite3* handle = nullptr;
  // A path may contain any character, so do not treat it as a URI.
  const int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr);
  db_.reset(handle);
  if (code != SQLITE_OK) {
    return fail(ErrorKind::kBadInput, "cannot open " + path + ": " + sqlite3_errstr(code),
                "check the path");
  }
  // The file is untrusted: nothing in it may run.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 16 << 20);
  sqlite3_stmt* statement = nullptr;
  const int prepared = sqlite3_prepare_v2(
      handle,
      "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE "
      "m.type = 'table'",
      -1, &statement, nullptr);
  const Rows rows(statement);
  if (prepared == SQLITE_OK) {
    while (next(rows)) columns_[text(rows, 0)].insert(text(rows, 1));
  }
  if (prepared != SQLITE_OK || !intact_) {
    return fail(ErrorKind::kBadInput,
                path + " is not an SQLite database, or is damaged: " + sqlite3_errmsg(handle),
                "export it again: nsys export --type sqlite --force-overwrite true FILE.nsys-rep");
  }
  return {};
}

bool Export::next(const Rows& rows) {
  if (!rows) return false;
  const int code = sqlite3_step(rows.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) {
    intact_ = false;
    fault_ = sqlite3_errmsg(db_.get());
  }
  return false;
}

Rows Export::select(const std::string& table, const std::vector<std::string>& columns,
                    const std::vector<std::string>& required) {
  for (const std::string& column : required) {
    if (!has(table, column)) return nullptr;
  }
  std::string sql;
  for (const std::string& column : columns) {
    sql += sql.empty() ? "SELECT " : ", ";
    sql += has(table, column) ? "\"" + column + "\"" : "NULL";
  }
  sql += " FROM \"" + table + "\" LIMIT " + std::to_string(kMostRecords);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    intact_ = false;
    fault_ = sqlite3_errmsg(db_.get());
  }
  return Rows(statement);
}

using Strings = std::unordered_map<std::int64_t, std::string>;

Strings read_strings(Export* db) {
  Strings strings;
  const Rows rows = db->select("StringIds", {"id", "value"}, {"id", "value"});
  while (db->next(rows)) strings[integer(rows, 0)] = text(rows, 1);
  return strings;
}

// A name by its StringIds number; some versions store the text itself in the column.
std::string name_of(const Rows& rows, int column, const Strings& strings) {
  if (sqlite3_column_type(rows.get(), column) == SQLITE_TEXT) return text(rows, column);
  const auto found = strings.find(integer(rows, column));
  return found == strings.end() ? "" : found->second;
}

// Labels of an enumeration, if the export has them.
std::map<std::int64_t, std::string> read_labels(Export* db, const std::string& table) {
  std::map<std::int64_t, std::string> labels;
  const Rows rows = db->select(table, {"id", "label", "name"}, {"id"});
  while (db->next(rows)) {
    labels[integer(rows, 0)] = is_null(rows, 1) ? text(rows, 2) : text(rows, 1);
  }
  return labels;
}

// The process ID within a global identifier: bits 24 to 47 (nsys's documentation).
std::uint32_t process_of(std::int64_t global) {
  return static_cast<std::uint32_t>((global >> 24) & 0xffffff);
}

void read_kernels(Export* db, const Strings& strings, Trace* trace) {
  const std::string table = "CUPTI_ACTIVITY_KIND_KERNEL";
  const Rows rows = db->select(table,
                               {"start",
                                "end",
                                "demangledName",
                                "shortName",
                                "mangledName",
                                "correlationId",
                                "streamId",
                                "deviceId",
                                "graphNodeId",
                                "gridX",
                                "gridY",
                                "gridZ",
                                "blockX",
                                "blockY",
                                "blockZ",
                                "clusterX",
                                "clusterY",
                                "clusterZ",
                                "registersPerThread",
                                "staticSharedMemory",
                                "dynamicSharedMemory",
                                "localMemoryPerThread",
                                "globalPid",
                                "graphId"},
                               {"start", "end"});
  while (db->next(rows)) {
    Trace::Kernel kernel;
    kernel.start = integer(rows, 0);
    kernel.end = integer(rows, 1);
    for (int column = 2; column < 5 && kernel.name.empty(); ++column) {
      kernel.name = name_of(rows, column, strings);
    }
    kernel.correlation = small(rows, 5);
    kernel.stream = small(rows, 6);
    kernel.device = small(rows, 7);
    kernel.graph_node = large(rows, 8);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      kernel.grid[axis] = small(rows, 9 + static_cast<int>(axis));
      kernel.block[axis] = small(rows, 12 + static_cast<int>(axis));
      kernel.cluster[axis] = small(rows, 15 + static_cast<int>(axis));
    }
    kernel.registers = small(rows, 18);
    kernel.static_shared = small(rows, 19);
    kernel.dynamic_shared = small(rows, 20);
    kernel.local_bytes = small(rows, 21);
    kernel.process = process_of(integer(rows, 22));
    kernel.graph = small(rows, 23);
    trace->kernels.push_back(std::move(kernel));
  }
}

// Graphs traced as a whole (nsys's default), each as one kernel with the graph's time.
std::size_t read_graphs(Export* db, Trace* trace) {
  const Rows rows =
      db->select("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                 {"start", "end", "correlationId", "streamId", "deviceId", "globalPid", "graphId"},
                 {"start", "end"});
  std::size_t count = 0;
  while (db->next(rows)) {
    Trace::Kernel kernel;
    kernel.name = "[graph " + std::to_string(small(rows, 6)) + "]";
    kernel.start = integer(rows, 0);
    kernel.end = integer(rows, 1);
    kernel.correlation = small(rows, 2);
    kernel.stream = small(rows, 3);
    kernel.device = small(rows, 4);
    kernel.process = process_of(integer(rows, 5));
    kernel.graph = small(rows, 6);
    trace->kernels.push_back(std::move(kernel));
    ++count;
  }
  return count;
}

Trace::CopyKind copy_kind(std::int64_t kind, const std::map<std::int64_t, std::string>& labels) {
  const auto label = labels.find(kind);
  if (label != labels.end()) {
    const std::string& name = label->second;
    const auto has = [&](const char* part) { return contains(name, part); };
    if (has("Host-to-Device") || has("HTOD") || has("HtoD")) return Trace::CopyKind::kHostToDevice;
    if (has("Device-to-Host") || has("DTOH") || has("DtoH")) return Trace::CopyKind::kDeviceToHost;
    if (has("Host-to-Host") || has("HTOH") || has("HtoH")) return Trace::CopyKind::kHostToHost;
    if (has("Device-to-Device") || has("DTOD") || has("DtoD") || has("Peer") || has("PTOP")) {
      return Trace::CopyKind::kDeviceToDevice;
    }
  }
  // CUPTI's own numbers.
  switch (kind) {
    case 1:
    case 3:
      return Trace::CopyKind::kHostToDevice;
    case 2:
    case 4:
      return Trace::CopyKind::kDeviceToHost;
    case 5:
    case 6:
    case 7:
    case 8:
    case 10:
      return Trace::CopyKind::kDeviceToDevice;
    case 9:
      return Trace::CopyKind::kHostToHost;
    default:
      return Trace::CopyKind::kOther;
  }
}

// nsys numbers kinds of memory from 0, pageable being the first.
bool is_pageable(const Rows& rows, int column, const std::map<std::int64_t, std::string>& labels) {
  if (is_null(rows, column)) return false;
  const std::int64_t kind = integer(rows, column);
  const auto label = labels.find(kind);
  if (label == labels.end()) return labels.empty() && kind == 0;
  return contains(label->second, "ageable") || contains(label->second, "PAGEABLE");
}

void read_copies(Export* db, Trace* trace) {
  const auto kinds = read_labels(db, "ENUM_CUDA_MEMCPY_OPER");
  const auto memories = read_labels(db, "ENUM_CUDA_MEM_KIND");
  const Rows rows =
      db->select("CUPTI_ACTIVITY_KIND_MEMCPY",
                 {"start", "end", "copyKind", "srcKind", "dstKind", "bytes", "correlationId",
                  "streamId", "deviceId", "graphNodeId", "globalPid"},
                 {"start", "end"});
  while (db->next(rows)) {
    Trace::Copy copy;
    copy.start = integer(rows, 0);
    copy.end = integer(rows, 1);
    copy.kind = copy_kind(integer(rows, 2), kinds);
    copy.pageable = is_pageable(rows, 3, memories) || is_pageable(rows, 4, memories);
    copy.bytes = large(rows, 5);
    copy.correlation = small(rows, 6);
    copy.stream = small(rows, 7);
    copy.device = small(rows, 8);
    copy.graph_node = large(rows, 9);
    copy.process = process_of(integer(rows, 10));
    trace->copies.push_back(copy);
  }
}

void read_memsets(Export* db, Trace* trace) {
  const Rows rows = db->select("CUPTI_ACTIVITY_KIND_MEMSET",
                               {"start", "end", "bytes", "correlationId", "streamId", "deviceId",
                                "graphNodeId", "globalPid"},
                               {"start", "end"});
  while (db->next(rows)) {
    Trace::Memset memset;
    memset.start = integer(rows, 0);
    memset.end = integer(rows, 1);
    memset.bytes = large(rows, 2);
    memset.correlation = small(rows, 3);
    memset.stream = small(rows, 4);
    memset.device = small(rows, 5);
    memset.graph_node = large(rows, 6);
    memset.process = process_of(integer(rows, 7));
    trace->memsets.push_back(memset);
  }
}

void read_calls(Export* db, const Strings& strings, Trace* trace) {
  const Rows rows = db->select("CUPTI_ACTIVITY_KIND_RUNTIME",
                               {"start", "end", "nameId", "correlationId", "globalTid"},
                               {"start", "end", "nameId"});
  while (db->next(rows)) {
    Trace::Api call;
    call.start = integer(rows, 0);
    call.end = integer(rows, 1);
    call.name = std::string(api_base_name(name_of(rows, 2, strings)));
    call.correlation = small(rows, 3);
    const std::int64_t global = integer(rows, 4);
    call.thread = static_cast<std::uint32_t>(global & 0xffffff);
    call.process = process_of(global);
    trace->calls.push_back(std::move(call));
  }
}

// Without host calls, reads the waits that CUPTI recorded separately.
void read_waits(Export* db, Trace* trace) {
  const auto labels = read_labels(db, "ENUM_CUPTI_SYNC_TYPE");
  const Rows rows =
      db->select("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                 {"start", "end", "syncType", "correlationId", "globalPid"}, {"start", "end"});
  static const std::map<std::int64_t, std::string> names = {
      {1, "cudaEventSynchronize"}, {3, "cudaStreamSynchronize"}, {4, "cudaDeviceSynchronize"}};
  while (db->next(rows)) {
    const auto name = names.find(integer(rows, 2));
    if (name == names.end()) continue;  // a stream that waits for an event blocks no thread
    Trace::Api call;
    call.name = name->second;
    call.start = integer(rows, 0);
    call.end = integer(rows, 1);
    call.correlation = small(rows, 3);
    call.process = process_of(integer(rows, 4));
    trace->calls.push_back(std::move(call));
  }
}

void read_ranges(Export* db, const Strings& strings, Trace* trace) {
  const Rows rows =
      db->select("NVTX_EVENTS", {"start", "end", "text", "textId", "globalTid"}, {"start", "end"});
  while (db->next(rows)) {
    if (is_null(rows, 1) || integer(rows, 1) <= integer(rows, 0)) continue;  // a mark
    Trace::Range range;
    range.start = integer(rows, 0);
    range.end = integer(rows, 1);
    range.name = is_null(rows, 2) ? name_of(rows, 3, strings) : text(rows, 2);
    const std::int64_t global = integer(rows, 4);
    range.thread = static_cast<std::uint32_t>(global & 0xffffff);
    range.process = process_of(global);
    if (!range.name.empty()) trace->ranges.push_back(std::move(range));
  }
}

DeviceFacts read_device(Export* db) {
  DeviceFacts facts;
  const Rows rows = db->select("TARGET_INFO_GPU",
                               {"name", "computeMajor", "computeMinor", "smCount",
                                "memoryBandwidth", "clockRate", "l2CacheSize"},
                               {"name"});
  if (!db->next(rows)) return facts;
  facts.name = text(rows, 0);
  facts.major = static_cast<int>(std::min(small(rows, 1), 99u));
  facts.minor = static_cast<int>(std::min(small(rows, 2), 99u));
  facts.multiprocessors = std::min(small(rows, 3), 100000u);
  facts.bytes_per_s = static_cast<double>(large(rows, 4));
  facts.clock_hz = static_cast<double>(large(rows, 5));
  facts.l2_bytes = static_cast<double>(large(rows, 6));
  if (facts.major == 0) {
    const DeviceFacts listed = listed_device(facts.name);
    facts.major = listed.major;
    facts.minor = listed.minor;
  }
  return facts;
}

// Negative or reversed times would corrupt every sum.
template <class Record>
int drop_impossible(std::vector<Record>* records) {
  constexpr std::int64_t latest = 4'000'000'000'000'000'000;
  return static_cast<int>(std::erase_if(
      *records, [](const Record& r) { return r.start < 0 || r.end < r.start || r.end > latest; }));
}

}  // namespace

Result<NsysImport> import_nsys_sqlite(const std::string& path) {
  if (!exists(path))
    return fail(ErrorKind::kBadInput, "there is no file " + path, "check the path");
  Export db;
  KP_TRY(db.open(path));
  NsysImport import;
  Trace& trace = import.trace;
  trace.source = "nsys export";
  const Strings strings = read_strings(&db);
  read_kernels(&db, strings, &trace);
  const std::size_t graphs = read_graphs(&db, &trace);
  read_copies(&db, &trace);
  read_memsets(&db, &trace);
  read_calls(&db, strings, &trace);
  if (trace.calls.empty()) read_waits(&db, &trace);
  read_ranges(&db, strings, &trace);
  import.device = read_device(&db);
  const int dropped = drop_impossible(&trace.kernels) + drop_impossible(&trace.copies) +
                      drop_impossible(&trace.memsets) + drop_impossible(&trace.calls) +
                      drop_impossible(&trace.ranges);
  trace.dropped = dropped;
  if (!db.intact()) {
    trace.complete = false;
    import.notes.push_back("The export is damaged (" + db.fault() +
                           "); what could be read of it was used.");
  }
  if (trace.empty()) {
    return fail(
        ErrorKind::kBadInput,
        path + (db.has("StringIds") ? " has no kernel, copy or memset in it"
                                    : " is not an export of Nsight Systems"),
        "trace with `nsys profile --trace=cuda --cuda-graph-trace=node -o FILE PROGRAM` and "
        "export with `nsys export --type sqlite FILE.nsys-rep`");
  }
  if (graphs > 0) {
    import.notes.push_back(
        "CUDA graphs were traced as a whole, without their single kernels. Trace with "
        "--cuda-graph-trace=node.");
  }
  if (trace.calls.empty()) {
    import.notes.push_back("The export has no host calls (CUPTI_ACTIVITY_KIND_RUNTIME).");
  }
  trace.sort();
  return import;
}

}  // namespace kernelpro
