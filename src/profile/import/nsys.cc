// SPDX-License-Identifier: Apache-2.0
#include "profile/import/nsys.h"

#include <algorithm>
#include <cmath>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "profile/import/csv.h"

namespace kernelpro {

namespace {

// Columns of cuda_gpu_trace; -1 = absent. Units follow the names in brackets.
struct Columns {
  int start = -1, duration = -1, correlation = -1, name = -1, device = -1, stream = -1;
  int grid[3] = {-1, -1, -1}, block[3] = {-1, -1, -1};
  int registers = -1, static_shared = -1, dynamic_shared = -1, bytes = -1;
  int from = -1, to = -1;  // memory kinds
  double time_scale = 1;   // to nanoseconds
  double static_scale = 1, dynamic_scale = 1, bytes_scale = 1;

  bool usable() const { return start >= 0 && duration >= 0 && name >= 0; }
};

// "Start (ns)" -> "Start" and "ns".
std::pair<std::string, std::string> name_and_unit(const std::string& column) {
  const std::size_t open = column.find('(');
  const std::size_t close = column.find(')', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {column, ""};
  return {std::string(trim(column.substr(0, open))), column.substr(open + 1, close - open - 1)};
}

Columns read_columns(const std::vector<std::string>& header) {
  Columns c;
  for (int i = 0; i < static_cast<int>(header.size()); ++i) {
    const auto [name, unit] = name_and_unit(std::string(trim(header[static_cast<std::size_t>(i)])));
    const auto scale = [&, unit = unit](const char* base) {
      return convert_unit(unit, base).value_or(1);
    };
    if (name == "Start") {
      c.start = i;
      c.time_scale = scale("ns");
    } else if (name == "Duration") {
      c.duration = i;
    } else if (name == "CorrId") {
      c.correlation = i;
    } else if (name == "Name") {
      c.name = i;
    } else if (name == "Device") {
      c.device = i;
    } else if (name == "Strm") {
      c.stream = i;
    } else if (name == "Reg/Trd") {
      c.registers = i;
    } else if (name == "StcSMem") {
      c.static_shared = i;
      c.static_scale = scale("byte");
    } else if (name == "DymSMem") {
      c.dynamic_shared = i;
      c.dynamic_scale = scale("byte");
    } else if (name == "Bytes") {
      c.bytes = i;
      c.bytes_scale = scale("byte");
    } else if (name == "SrcMemKd") {
      c.from = i;
    } else if (name == "DstMemKd") {
      c.to = i;
    }
    for (int axis = 0; axis < 3; ++axis) {
      if (name == std::string("Grd") + "XYZ"[axis]) c.grid[axis] = i;
      if (name == std::string("Blk") + "XYZ"[axis]) c.block[axis] = i;
    }
  }
  return c;
}

struct Row {
  const std::vector<std::string>& fields;

  std::string text(int column) const {
    if (column < 0 || static_cast<std::size_t>(column) >= fields.size()) return "";
    return std::string(trim(fields[static_cast<std::size_t>(column)]));
  }
  std::optional<double> real(int column) const {
    return read_number(text(column), DecimalSign::kPoint);
  }
  // Non-negative and small enough to fit; 0 otherwise.
  template <class Integer>
  Integer natural(int column, double scale = 1) const {
    const double value = std::round(real(column).value_or(0) * scale);
    constexpr double most = 4294967295.0;
    const double limit = sizeof(Integer) == 8 ? 9e15 : most;
    return value > 0 && value <= limit ? static_cast<Integer>(value) : 0;
  }
};

Trace::CopyKind copy_kind(const std::string& name) {
  const auto has = [&](const char* part) { return contains(name, part); };
  if (has("HtoD") || has("Host-to-Device") || has("HtoA")) return Trace::CopyKind::kHostToDevice;
  if (has("DtoH") || has("Device-to-Host") || has("AtoH")) return Trace::CopyKind::kDeviceToHost;
  if (has("DtoD") || has("Device-to-Device") || has("PtoP") || has("Peer") || has("AtoD") ||
      has("DtoA")) {
    return Trace::CopyKind::kDeviceToDevice;
  }
  if (has("HtoH") || has("Host-to-Host")) return Trace::CopyKind::kHostToHost;
  return Trace::CopyKind::kOther;
}

template <class Record>
void set_place(const Row& row, const Columns& c, Record* record) {
  const double start = row.real(c.start).value_or(0) * c.time_scale;
  const double duration = row.real(c.duration).value_or(0) * c.time_scale;
  record->start = std::llround(start);
  record->end = record->start + std::llround(duration);
  record->correlation = row.natural<std::uint32_t>(c.correlation);
  record->stream = row.natural<std::uint32_t>(c.stream);
  // "NVIDIA H100 (0)": the number in brackets at the end.
  const std::string device = row.text(c.device);
  const std::size_t open = device.rfind('(');
  if (open != std::string::npos) {
    const auto index = read_number(device.substr(open + 1, device.find(')', open) - open - 1),
                                   DecimalSign::kPoint);
    if (index && *index >= 0 && *index < 1024) record->device = static_cast<std::uint32_t>(*index);
  }
}

bool is_time(const Row& row, const Columns& c) {
  const auto start = row.real(c.start);
  const auto duration = row.real(c.duration);
  return start && duration && *start >= 0 && *duration >= 0 && *start * c.time_scale < 4e18 &&
         *duration * c.time_scale < 4e18;
}

void add_row(const Row& row, const Columns& c, Trace* trace) {
  const std::string name = printable(row.text(c.name));
  if (name.rfind("[CUDA memcpy", 0) == 0) {
    Trace::Copy copy;
    set_place(row, c, &copy);
    copy.kind = copy_kind(name);
    copy.bytes = row.natural<std::uint64_t>(c.bytes, c.bytes_scale);
    copy.pageable = row.text(c.from) == "Pageable" || row.text(c.to) == "Pageable";
    trace->copies.push_back(copy);
  } else if (name.rfind("[CUDA memset", 0) == 0) {
    Trace::Memset memset;
    set_place(row, c, &memset);
    memset.bytes = row.natural<std::uint64_t>(c.bytes, c.bytes_scale);
    trace->memsets.push_back(memset);
  } else {
    Trace::Kernel kernel;
    set_place(row, c, &kernel);
    kernel.name = name;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      kernel.grid[axis] = row.natural<std::uint32_t>(c.grid[axis]);
      kernel.block[axis] = row.natural<std::uint32_t>(c.block[axis]);
    }
    kernel.registers = row.natural<std::uint32_t>(c.registers);
    kernel.static_shared = row.natural<std::uint32_t>(c.static_shared, c.static_scale);
    kernel.dynamic_shared = row.natural<std::uint32_t>(c.dynamic_shared, c.dynamic_scale);
    trace->kernels.push_back(std::move(kernel));
  }
}

bool is_header(std::string_view line) {
  return contains(line, "Start") && contains(line, "Duration") && contains(line, "Name") &&
         !contains(line, "Projected");
}

std::string device_name(const std::string& text) {
  return std::string(trim(text.substr(0, text.rfind('('))));
}

}  // namespace

bool is_nsys_csv(std::string_view text) {
  std::string_view rest = text.substr(0, 64 << 10);
  std::vector<std::string> fields;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (is_header(line)) {
      next_record(&rest, &fields);
      return read_columns(fields).usable();
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return false;
}

Result<NsysImport> import_nsys_csv(std::string_view text) {
  NsysImport import;
  import.trace.source = "nsys cuda_gpu_trace";
  Columns columns;
  std::vector<std::string> fields;
  int broken = 0;
  bool gpu_rows = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (trim(line).empty() || (!columns.usable() && !is_header(line))) {
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      continue;
    }
    next_record(&text, &fields);
    if (is_header(line)) {
      columns = read_columns(fields);
      // Host-call reports have the same first columns but no stream.
      gpu_rows = columns.stream >= 0 || columns.grid[0] >= 0 || columns.device >= 0 ||
                 columns.correlation >= 0;
      continue;
    }
    const Row row{fields};
    if (!is_time(row, columns) || static_cast<std::size_t>(columns.name) >= fields.size()) {
      ++broken;
      continue;
    }
    if (gpu_rows) add_row(row, columns, &import.trace);
    if (import.device.name.empty()) import.device.name = device_name(row.text(columns.device));
  }
  if (import.trace.empty()) {
    return fail(ErrorKind::kBadInput, "the file has no row of nsys's cuda_gpu_trace report",
                "make it with: nsys stats --report cuda_gpu_trace --format csv FILE.nsys-rep");
  }
  if (broken > 0) {
    import.notes.push_back(std::to_string(broken) + " rows are incomplete and were left out.");
  }
  import.notes.push_back(
      "This report has no host calls, so launches, synchronizations and allocations are unknown. "
      "The SQLite export has them.");
  const DeviceFacts listed = listed_device(import.device.name);
  if (!import.device.name.empty()) import.device = listed;
  import.trace.sort();
  return import;
}

Result<NsysImport> import_nsys_report(const std::string& path) {
  const std::string nsys = find_cuda_tool("nsys");
  if (nsys.empty()) {
    return fail(ErrorKind::kEnvironment,
                "reading " + path + " needs Nsight Systems' nsys, which was not found",
                "export it on a machine with nsys: nsys export --type sqlite " + path);
  }
  const TempDir dir;
  const std::string out = join(dir.path(), "export.sqlite");
  Command command;
  command.argv = {nsys, "export", "--type", "sqlite", "--output", out, path};
  command.limits.wall_seconds = 600;
  KP_ASSIGN(Exit exit, run(command));
  if (!exit.ok() || !exists(out)) {
    return fail(ErrorKind::kBadInput,
                "nsys could not export " + path + ": " +
                    clip(exit.output.empty() ? exit.describe(command.limits) : exit.output, 400),
                "use the version of nsys that wrote it, or give the export itself");
  }
  return import_nsys_sqlite(out);
}

}  // namespace kernelpro
