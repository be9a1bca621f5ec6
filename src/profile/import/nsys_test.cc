// SPDX-License-Identifier: Apache-2.0
// Exports with the schemas of several nsys versions, created here.
#include "profile/import/nsys.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cstdlib>
#include <random>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

struct NsysTest : ::testing::Test {
  TempDir dir;
  std::string path = join(dir.path(), "trace.sqlite");

  void execute(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << (message != nullptr ? message : "");
    sqlite3_free(message);
    sqlite3_close(db);
  }
};

// nsys 2024 and 2025.
constexpr const char* kRecent = R"sql(
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE TARGET_INFO_GPU(vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT,
  busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER,
  memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER, uuid TEXT,
  luid INTEGER, chipName TEXT, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
  blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER,
  graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
  srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER,
  migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL,
  bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
INSERT INTO StringIds VALUES (1, 'void axpy<float>(float *, int)'), (2, 'axpy'),
  (3, 'cudaLaunchKernel_v7000'), (4, 'cudaDeviceSynchronize_v3020'), (5, 'step'),
  (6, 'cudaMemcpyAsync_ptsz_v7000');
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
  (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
  (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'NVIDIA H200', '', 1, 62914560, 150000000000,
  4800000000000, 1980000000, 132, 0, '', 0, 'GH100', 0, 9, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 12000, 0, 1, NULL, 7, 11, 281474993487872, 1,
  2, NULL, 1, 0, 24, 528, 1, 1, 256, 1, 1, 0, 4096, 0, 0, 1, 0, NULL, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (100, 900, 0, 1, NULL, 7, 10, 281474993487872, 4096,
  1, NULL, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1000, 1500, 0, 1, NULL, 7, 12, 281474993487872, 0,
  512, NULL, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 80, 0, 281474993487872, 11, 3, 0, NULL),
  (90, 13000, 0, 281474993487872, 13, 4, 0, NULL), (10, 20, 0, 281474993487872, 10, 6, 0, NULL);
INSERT INTO NVTX_EVENTS VALUES (0, 14000, 59, NULL, NULL, NULL, NULL, 281474993487872, NULL, 5, 0),
  (5, NULL, 34, NULL, NULL, NULL, 'a mark', 281474993487872, NULL, NULL, 0);
)sql";

TEST_F(NsysTest, RecentExport) {
  execute(kRecent);
  const auto got = import_nsys_sqlite(path);
  ASSERT_TRUE(got) << got.error().text();
  const Trace& trace = got->trace;
  ASSERT_EQ(trace.kernels.size(), 1u);
  const Trace::Kernel& kernel = trace.kernels[0];
  EXPECT_EQ(kernel.name, "void axpy<float>(float *, int)");
  EXPECT_EQ(kernel.end - kernel.start, 10000);
  EXPECT_EQ(kernel.grid[0], 528u);
  EXPECT_EQ(kernel.block[0], 256u);
  EXPECT_EQ(kernel.registers, 24u);
  EXPECT_EQ(kernel.dynamic_shared, 4096u);
  EXPECT_EQ(kernel.correlation, 11u);
  ASSERT_EQ(trace.copies.size(), 1u);
  EXPECT_EQ(trace.copies[0].kind, Trace::CopyKind::kHostToDevice);
  EXPECT_TRUE(trace.copies[0].pageable);
  EXPECT_EQ(trace.copies[0].bytes, 4096u);
  ASSERT_EQ(trace.memsets.size(), 1u);
  ASSERT_EQ(trace.calls.size(), 3u);
  EXPECT_EQ(trace.calls[0].name, "cudaMemcpyAsync");
  EXPECT_EQ(trace.calls[1].name, "cudaLaunchKernel");
  EXPECT_EQ(trace.calls[2].name, "cudaDeviceSynchronize");
  EXPECT_EQ(trace.calls[0].process, kernel.process);
  ASSERT_EQ(trace.ranges.size(), 1u);
  EXPECT_EQ(trace.ranges[0].name, "step");
  EXPECT_EQ(got->device.name, "NVIDIA H200");
  EXPECT_EQ(got->device.arch(), "sm_90");
  EXPECT_DOUBLE_EQ(got->device.bytes_per_s, 4.8e12);
  EXPECT_TRUE(trace.complete);
}

TEST_F(NsysTest, SummaryHasTheSystemsFigures) {
  execute(kRecent);
  const auto got = import_nsys_sqlite(path);
  ASSERT_TRUE(got);
  const Evidence e = summarize(got->trace);
  EXPECT_DOUBLE_EQ(*e.get("trace.kernels"), 1);
  EXPECT_DOUBLE_EQ(*e.get("trace.copies_host"), 1);
  EXPECT_DOUBLE_EQ(*e.get("trace.copies_pageable"), 1);
}

// Schema of nsys 2019: no enumerations, kinds by CUPTI's numbers, names only as StringIds.
TEST_F(NsysTest, OldExport) {
  execute(R"sql(
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT NOT NULL, end INT NOT NULL,
  deviceId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, shortName INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT NOT NULL, end INT NOT NULL, bytes INT NOT NULL,
  copyKind INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT NOT NULL, end INT NOT NULL,
  syncType INT NOT NULL);
INSERT INTO StringIds VALUES (9, 'old_kernel');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, 9);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (30, 40, 8, 2), (50, 60, 8, 8);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (20, 25, 3), (26, 27, 2);
)sql");
  const auto got = import_nsys_sqlite(path);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->trace.kernels.at(0).name, "old_kernel");
  EXPECT_EQ(got->trace.copies.at(0).kind, Trace::CopyKind::kDeviceToHost);
  EXPECT_EQ(got->trace.copies.at(1).kind, Trace::CopyKind::kDeviceToDevice);
  // A stream that waits for an event blocks no thread.
  ASSERT_EQ(got->trace.calls.size(), 1u);
  EXPECT_EQ(got->trace.calls[0].name, "cudaStreamSynchronize");
}

TEST_F(NsysTest, GraphsTracedAsAWholeAreSaid) {
  execute(R"sql(
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT, deviceId INT, graphId INT,
  streamId INT, correlationId INT, globalPid INT);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 90, 0, 3, 7, 1, 0);
)sql");
  const auto got = import_nsys_sqlite(path);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->trace.kernels.at(0).name, "[graph 3]");
  EXPECT_TRUE(contains(join_text(got->notes, "\n"), "--cuda-graph-trace=node"));
}

TEST_F(NsysTest, ImpossibleTimesAreLeftOut) {
  execute(R"sql(
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, shortName TEXT, gridX INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 'good', -5), (30, 20, 'reversed', 1),
  (-9, 20, 'early', 1), (1, 9223372036854775807, 'endless', 99999999999);
)sql");
  const auto got = import_nsys_sqlite(path);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->trace.kernels.size(), 1u);
  EXPECT_EQ(got->trace.kernels[0].name, "good");
  EXPECT_EQ(got->trace.kernels[0].grid[0], 0u);
  EXPECT_EQ(got->trace.dropped, 3);
}

TEST_F(NsysTest, WhatIsNoExport) {
  EXPECT_FALSE(import_nsys_sqlite(join(dir.path(), "absent.sqlite")));
  ASSERT_TRUE(write_file(path, "no database at all, but long enough to be one"));
  EXPECT_FALSE(import_nsys_sqlite(path));
  ASSERT_TRUE(write_file(path, ""));
  execute("CREATE TABLE StringIds(id INT, value TEXT)");
  const auto empty = import_nsys_sqlite(path);
  ASSERT_FALSE(empty);
  EXPECT_TRUE(contains(empty.error().next, "nsys profile --trace=cuda")) << empty.error().next;
}

// A real export with flipped or missing bytes gives an error or the remaining data, never worse.
TEST_F(NsysTest, DamagedExports) {
  execute(kRecent);
  const std::string whole = *read_file(path);
  std::mt19937 random(5);
  for (int i = 0; i < 150; ++i) {
    std::string bytes = whole;
    for (int flips = 0; flips < 1 + i % 20; ++flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    ASSERT_TRUE(write_file(path, bytes));
    const auto got = import_nsys_sqlite(path);
    if (got) static_cast<void>(summarize(got->trace));
  }
}

constexpr const char* kCsv =
    "Generating SQLite file trace.sqlite from trace.nsys-rep\n"
    "Processing [trace.sqlite] with [reports/cuda_gpu_trace.py]... \n\n"
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
    "DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
    "100,30,11,2,3,4,64,1,1,24,0.001,0.004,,,,,NVIDIA H100 80GB HBM3 (0),1,,7,\"void "
    "moe::kernel<float, 4>(float *, int)\"\n"
    "170,5,13,,,,,,,,,,4.194,838860.800,Pageable,Device,NVIDIA H100 80GB HBM3 (0),1,,7,[CUDA "
    "memcpy Host-to-Device]\n"
    "180,4,14,,,,,,,,,,0.001,250.000,Device,,NVIDIA H100 80GB HBM3 (0),1,,7,[CUDA memset]\n";

TEST(NsysCsv, GpuTrace) {
  EXPECT_TRUE(is_nsys_csv(kCsv));
  const auto got = import_nsys_csv(kCsv);
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ(got->trace.kernels.size(), 1u);
  const Trace::Kernel& kernel = got->trace.kernels[0];
  EXPECT_EQ(kernel.name, "void moe::kernel<float, 4>(float *, int)");
  EXPECT_EQ(kernel.start, 100);
  EXPECT_EQ(kernel.end, 130);
  EXPECT_EQ(kernel.grid[2], 4u);
  EXPECT_EQ(kernel.registers, 24u);
  EXPECT_EQ(kernel.dynamic_shared, 4000u);
  EXPECT_EQ(kernel.stream, 7u);
  ASSERT_EQ(got->trace.copies.size(), 1u);
  EXPECT_EQ(got->trace.copies[0].kind, Trace::CopyKind::kHostToDevice);
  EXPECT_TRUE(got->trace.copies[0].pageable);
  EXPECT_EQ(got->trace.copies[0].bytes, 4194000u);
  EXPECT_EQ(got->trace.memsets.size(), 1u);
  EXPECT_EQ(got->device.arch(), "sm_90");
  EXPECT_TRUE(contains(join_text(got->notes, "\n"), "no host calls"));
}

TEST(NsysCsv, OtherReportsAndTimeUnits) {
  const auto summary =
      import_nsys_csv("\"Time (%)\",\"Total Time (ns)\",\"Instances\",\"Name\"\n50.0,500,1,k\n");
  ASSERT_FALSE(summary);
  EXPECT_TRUE(contains(summary.error().next, "cuda_gpu_trace"));
  // Host calls have the same first columns.
  EXPECT_FALSE(import_nsys_csv("Start (ns),Duration (ns),Name\n1,2,cudaLaunchKernel\n"));
  const auto micro = import_nsys_csv("Start (us),Duration (us),CorrId,Strm,Name\n1.5,2,1,7,k\n");
  ASSERT_TRUE(micro);
  EXPECT_EQ(micro->trace.kernels[0].start, 1500);
  EXPECT_EQ(micro->trace.kernels[0].end, 3500);
}

TEST(NsysCsv, CutOffAnywhere) {
  const std::string whole = kCsv;
  for (std::size_t length = 0; length < whole.size(); length += 3) {
    const auto got = import_nsys_csv(whole.substr(0, length));
    if (!got) {
      EXPECT_FALSE(got.error().next.empty());
    }
  }
}

TEST_F(NsysTest, ReportsAreExportedOrTheUserToldHow) {
  const std::string home = join(dir.path(), "cuda");
  ASSERT_TRUE(make_dirs(join(home, "bin")));
  execute(kRecent);
  const std::string program = join(home, "bin/nsys");
  // nsys export --type sqlite --output OUT IN
  ASSERT_TRUE(write_file(program, "#!/bin/sh\ncp " + path + " \"$5\"\n"));
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  ::setenv("CUDA_HOME", home.c_str(), 1);
  const auto got = import_nsys_report(join(dir.path(), "x.nsys-rep"));
  ::unsetenv("CUDA_HOME");
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->trace.kernels.size(), 1u);
}

}  // namespace
}  // namespace kernelpro
