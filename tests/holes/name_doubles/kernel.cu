// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct | compile-error | rejected | crashed | slow
// A kernel whose name is that of a template which repeats itself by reference: 200 characters, and
// 2^27 parts for whoever spells it out (1.4 GB; each further level doubles that). The evaluator
// must live, and in the time and memory that axpy takes: look at both.
#include "task.h"

#define NAME \
  _Z4axpyI3TwoIS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IiiES1_ES2_ES3_ES4_ES5_ES6_ES7_ES8_ES9_ESA_ESB_ESC_ESD_ESE_ESF_ESG_ESH_ESI_ESJ_ESK_ESL_ESM_ESN_ESO_ESP_ESQ_EEvPf

extern "C" __global__ void NAME(const float* x, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * x[i] + z[i];
}
KP_LAUNCH(NAME, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::z, arg::y)
