// SPDX-License-Identifier: Apache-2.0
// Direct 3 x 3 convolution in plan form, for a landscape: every setting of its knobs is measured
// once. A block computes TILE_H x TILE_W pixels of TILE_OUT channels; a patch of the image and the
// weights pass through shared memory, CHUNK input channels at a time; each thread keeps PIXELS
// neighbours of CHANNELS channels in registers. The first value of each knob is the default.
// Register use is not bounded on purpose: what does not fit fails.
#include "task.h"

// The tile of pixels that a block computes.
// @knob TILE_W 8 14 28 56 : tile-size grid-size
// @knob TILE_H 2 4 8 : tile-size grid-size
// Output channels of a block.
// @knob TILE_OUT 16 32 64 : tile-size grid-size shared-memory
// Input channels in shared memory at a time.
// @knob CHUNK 4 8 16 : shared-memory synchronization
// Neighbouring pixels of a thread.
// @knob PIXELS 1 2 4 : block-size registers layout
// Output channels of a thread.
// @knob CHANNELS 4 8 : block-size registers

static_assert(TILE_W % PIXELS == 0, "TILE_W has to be a multiple of PIXELS");
constexpr int kAcross = TILE_W / PIXELS;  // threads of a row of pixels
constexpr int kThreads = kAcross * TILE_H * (TILE_OUT / CHANNELS);
constexpr int kPatchW = TILE_W + 2, kPatchH = TILE_H + 2;
constexpr int kTilesW = (WIDTH + TILE_W - 1) / TILE_W, kTilesH = (HEIGHT + TILE_H - 1) / TILE_H;

__global__ void convolve(const float* x, const float* w, float* y) {
  __shared__ float patch[CHUNK][kPatchH][kPatchW];
  __shared__ __align__(16) float weights[CHUNK][9][TILE_OUT];
  const int thread = threadIdx.x;
  const int across = thread % kAcross, down = thread / kAcross % TILE_H;
  const int group = thread / (kAcross * TILE_H) * CHANNELS;  // first channel in the tile
  const int first_col = blockIdx.x % kTilesW * TILE_W, first_row = blockIdx.x / kTilesW * TILE_H;
  const int first_out = blockIdx.y * TILE_OUT;
  x += 1ll * blockIdx.z * IN * HEIGHT * WIDTH;
  y += 1ll * blockIdx.z * OUT * HEIGHT * WIDTH;
  float sum[CHANNELS][PIXELS] = {};

#pragma unroll 1
  for (int c = 0; c < IN; c += CHUNK) {
    for (int i = thread; i < CHUNK * kPatchH * kPatchW; i += kThreads) {
      const int channel = c + i / (kPatchH * kPatchW);
      const int row = first_row + i / kPatchW % kPatchH - 1, col = first_col + i % kPatchW - 1;
      const bool inside = channel < IN && row >= 0 && row < HEIGHT && col >= 0 && col < WIDTH;
      (&patch[0][0][0])[i] = inside ? x[(1ll * channel * HEIGHT + row) * WIDTH + col] : 0.0f;
    }
    // A thread after the other takes the weights in the order in which they lie in memory.
    for (int i = thread; i < CHUNK * 9 * TILE_OUT; i += kThreads) {
      const int out = i / (CHUNK * 9), channel = i % (CHUNK * 9) / 9, tap = i % 9;
      const bool inside = first_out + out < OUT && c + channel < IN;
      weights[channel][tap][out] =
          inside ? w[(1ll * (first_out + out) * IN + c + channel) * 9 + tap] : 0.0f;
    }
    __syncthreads();
#pragma unroll 1
    for (int channel = 0; channel < CHUNK; ++channel) {
#pragma unroll
      for (int r = 0; r < 3; ++r) {
        float pixels[PIXELS + 2];
        for (int i = 0; i < PIXELS + 2; ++i) {
          pixels[i] = patch[channel][down + r][across * PIXELS + i];
        }
#pragma unroll
        for (int s = 0; s < 3; ++s) {
          for (int k = 0; k < CHANNELS; ++k) {
            const float weight = weights[channel][3 * r + s][group + k];
            for (int i = 0; i < PIXELS; ++i) sum[k][i] += weight * pixels[i + s];
          }
        }
      }
    }
    __syncthreads();
  }

  const int row = first_row + down, col = first_col + across * PIXELS;
  if (HEIGHT % TILE_H != 0 && row >= HEIGHT) return;
  for (int k = 0; k < CHANNELS; ++k) {
    const int out = first_out + group + k;
    for (int i = 0; i < PIXELS; ++i) {
      if (out < OUT && col + i < WIDTH) y[(1ll * out * HEIGHT + row) * WIDTH + col + i] = sum[k][i];
    }
  }
}

KP_LAUNCH(convolve, kp::dim(kTilesW* kTilesH, (OUT + TILE_OUT - 1) / TILE_OUT, IMAGES),
          kp::dim(kThreads), 0, arg::x, arg::w, arg::y)
