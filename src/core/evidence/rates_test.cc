// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/rates.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

// y = f(x) over 1000 elements of fp32: 8000 bytes.
Task vector_task() {
  Task task;
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"n"}, {}, 0},
                  {"y", Role::kOutput, DType::kFp32, {"n"}, {}, 0}};
  task.cases = {{"large", {{"n", 1000}}, true, {}}};
  task.precision = Precision::kTf32;
  task.flops = "10*n";
  task.matmul_flops = "8*n";
  return task;
}

TEST(Floors, AreThoseOfTheTaskAndOfItsEvidence) {
  const Task task = vector_task();
  Ceilings ceilings;
  ceilings.copy_bytes_per_s = 8e9;
  ceilings.fma_flops_per_s = 1e9;
  ceilings.tensor_flops_per_s = 16e9;
  const Floors of_task = floors(task, task.cases[0], ceilings);
  EXPECT_DOUBLE_EQ(of_task.memory_us, 1);
  EXPECT_DOUBLE_EQ(of_task.compute_us, 3);  // 2 at the fma rate, 1 at TF32's
  Evidence e;
  e.set("task.compulsory_bytes", 8000, "task");
  e.set("task.flops", 10000, "task");
  e.set("task.matmul_flops", 8000, "task");
  e.set("task.tf32", 1, "task");
  e.set("ceiling.copy_bandwidth", 8e9, "ceilings");
  e.set("ceiling.fma_rate", 1e9, "ceilings");
  e.set("ceiling.tensor_rate", 16e9, "ceilings");
  EXPECT_DOUBLE_EQ(floors(e).memory_us, of_task.memory_us);
  EXPECT_DOUBLE_EQ(floors(e).compute_us, of_task.compute_us);
  e.set("task.matmul_flops", 1e9, "given");  // more than there are operations
  EXPECT_DOUBLE_EQ(floors(e).compute_us, 1.25);
}

TEST(Floors, WithHalvesOnMatrixUnits) {
  Task task = vector_task();
  Ceilings ceilings;
  ceilings.copy_bytes_per_s = 8e9;
  ceilings.fma_flops_per_s = 1e9;
  ceilings.tensor_flops_per_s = 24e9;
  EXPECT_NEAR(floor_in_halves_us(task, task.cases[0], ceilings), 2 + 8.0 / 24, 1e-12);  // TF32
  task.precision = Precision::kFp32;
  EXPECT_DOUBLE_EQ(floor_in_halves_us(task, task.cases[0], ceilings), 3);  // 2, and 8 at 8e9
  ceilings.tensor_flops_per_s = 2e9;
  EXPECT_EQ(floor_in_halves_us(task, task.cases[0], ceilings), 0) << "no faster than multiply-adds";
}

// What a candidate may reach depends on the unit that it uses.
TEST(Floors, OfACandidateInParts) {
  Evidence e;
  e.set("task.compulsory_bytes", 8000, "task");
  e.set("task.flops", 8000, "task");
  e.set("task.matmul_flops", 8000, "task");
  e.set("ceiling.fma_rate", 1e9, "ceilings");
  e.set("ceiling.tensor_rate", 24e9, "ceilings");
  EXPECT_DOUBLE_EQ(matmul_rate(e), 1e9);
  KernelEvidence& kernel = e.kernels.emplace_back();
  kernel.facts.set("sass.hgmma", 12, "nvdisasm");
  EXPECT_TRUE(multiplies_in_parts(e));
  EXPECT_DOUBLE_EQ(matmul_rate(e), 8e9);
  EXPECT_DOUBLE_EQ(floors(e).compute_us, 1);
  e.set("task.half_inputs", 1, "task");
  EXPECT_FALSE(multiplies_in_parts(e));
  EXPECT_DOUBLE_EQ(matmul_rate(e), 24e9);
}

TEST(Floors, OfACandidateThatMayUseTf32) {
  Evidence e;
  e.set("task.matmul_flops", 8000, "task");
  e.set("task.tf32", 1, "task");
  e.set("ceiling.fma_rate", 1e9, "ceilings");
  e.set("ceiling.tensor_rate", 24e9, "ceilings");
  EXPECT_DOUBLE_EQ(matmul_rate(e), 12e9);
  e.kernels.emplace_back().facts.set("sass.hgmma", 12, "nvdisasm");
  EXPECT_FALSE(multiplies_in_parts(e)) << "one product is enough";
  EXPECT_DOUBLE_EQ(matmul_rate(e), 24e9) << "of scaled fp16 operands";
}

TEST(MatrixProducts, InDoublePrecisionAreNoFasterThanMultiplyAdds) {
  Evidence kernel;
  EXPECT_FALSE(has_matrix_products(kernel));
  kernel.set("sass.hmma", 32, "test");
  kernel.set("sass.hot.hmma", 32, "test");
  EXPECT_TRUE(has_matrix_products(kernel));
  kernel.set("sass.hot.dmma", 32, "test");
  EXPECT_FALSE(has_matrix_products(kernel)) << "all of them are";
  kernel.set("sass.hot.dmma", 16, "test");
  EXPECT_TRUE(has_matrix_products(kernel));
  kernel.set("sass.hot.dmma", 32, "test");
  kernel.set("sass.hgmma", 4, "test");
  EXPECT_TRUE(has_matrix_products(kernel));
}

TEST(Floors, AreUnknownWithoutTheirCeiling) {
  const Task task = vector_task();
  Ceilings ceilings;
  ceilings.fma_flops_per_s = 1e9;
  EXPECT_EQ(floors(task, task.cases[0], ceilings).memory_us, 0);
  EXPECT_DOUBLE_EQ(floors(task, task.cases[0], ceilings).compute_us, 10);
  EXPECT_EQ(floors(Evidence()).memory_us, 0);
  EXPECT_EQ(floors(Evidence()).compute_us, 0);
}

}  // namespace
}  // namespace kernelpro
