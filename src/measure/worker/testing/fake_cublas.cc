// SPDX-License-Identifier: Apache-2.0
// A cuBLAS that does not work, so that tests never load the toolkit's over the fake driver.
extern "C" __attribute__((visibility("default"))) int cublasCreate_v2(void**) { return 1; }
extern "C" __attribute__((visibility("default"))) int cublasGemmEx() { return 1; }
